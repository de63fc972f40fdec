// Follows a conversation: rebuilds it from the frames of one process, whatever else is in them.
//
//	follow DESCRIPTORS < frames.jsonl
//
// Prints a line for each message: role, status, text. docs/clients.md quotes this file.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

const appendMode = 1 // CHAT_STREAM_PATCH_MODE_APPEND; 0, unspecified, means the same

// types are those that this program knows; in a program with generated code protoregistry.GlobalTypes.
var types *dynamicpb.Types

var options = protojson.UnmarshalOptions{DiscardUnknown: true}

// readFrame returns the frame on line, and the payload of its event or of each of its entities.
func readFrame(line []byte) (protoreflect.Message, []protoreflect.Message, error) {
	var members map[string]any
	if err := json.Unmarshal(line, &members); err != nil {
		return nil, nil, err
	}
	var payloads []protoreflect.Message
	for _, holder := range holders(members) {
		payload, err := takePayload(holder)
		if err != nil {
			return nil, nil, err
		}
		payloads = append(payloads, payload)
	}
	frame, err := read("pinocchio.chatapp.rpc.v1.RpcLine", members)
	return frame, payloads, err
}

// holders are the parts of a frame that have a payload.
func holders(members map[string]any) []map[string]any {
	snapshot, _ := members["snapshot"].(map[string]any)
	entities, _ := snapshot["entities"].([]any)
	var all []map[string]any
	for _, part := range append([]any{members["uiEvent"], members["backendEvent"]}, entities...) {
		if holder, ok := part.(map[string]any); ok {
			all = append(all, holder)
		}
	}
	return all
}

// takePayload takes the payload out of holder: an Any of an unknown type would make the whole frame
// unreadable. It returns nil if this program does not know the type.
func takePayload(holder map[string]any) (protoreflect.Message, error) {
	payload, _ := holder["payload"].(map[string]any)
	delete(holder, "payload")
	url, _ := payload["@type"].(string)
	delete(payload, "@type")
	known, err := types.FindMessageByURL(url)
	if err != nil {
		return nil, nil
	}
	return read(known.Descriptor().FullName(), payload)
}

func read(name protoreflect.FullName, members map[string]any) (protoreflect.Message, error) {
	known, err := types.FindMessageByName(name)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	message := known.New()
	return message, options.Unmarshal(text, message.Interface())
}

// applyPatch returns the text of a segment after a patch. The offset counts bytes, as Go's strings do.
func applyPatch(text, patch string, offset uint64, mode protoreflect.EnumNumber) string {
	if mode > appendMode {
		return patch
	}
	return text[:min(offset, uint64(len(text)))] + patch
}

type message struct{ id, role, status, text string }

// view has the messages of a conversation in the order in which they were created.
type view struct {
	ordinal  uint64 // of the last event that is in it
	messages []*message
}

func (v *view) apply(line []byte) error {
	frame, payloads, err := readFrame(line)
	if err != nil {
		return err
	}
	// Neither is set in a frame of a newer version.
	if has(frame, "snapshot") {
		snapshot := field(frame, "snapshot").Message()
		v.ordinal = max(v.ordinal, field(snapshot, "snapshot_ordinal").Uint())
		entities := field(snapshot, "entities").List()
		for i := range entities.Len() {
			v.put(entities.Get(i).Message(), payloads[i])
		}
	} else if has(frame, "ui_event") {
		// Several events may share an ordinal, so equal ones count; applied twice they change nothing.
		ordinal := field(field(frame, "ui_event").Message(), "ordinal").Uint()
		if ordinal >= v.ordinal && payloads[0] != nil {
			v.update(payloads[0])
		}
		v.ordinal = max(v.ordinal, ordinal)
	}
	return nil
}

// put has an entity take the place of the one with its id.
func (v *view) put(entity, payload protoreflect.Message) {
	id := field(entity, "id").String()
	if field(entity, "tombstone").Bool() {
		v.drop(id)
	} else if payload != nil && field(entity, "kind").String() == "ChatMessage" {
		v.set(id, payload, field(payload, "text").String())
	}
}

func (v *view) update(event protoreflect.Message) {
	switch event.Descriptor().Name() {
	case "ChatUserMessageAccepted", "ChatTextSegmentFinished", "ChatReasoningSegmentFinished":
		v.set(field(event, "message_id").String(), event, field(event, "text").String())
	case "ChatTextSegmentStarted", "ChatReasoningSegmentStarted":
		v.find(event)
	case "ChatTextPatch", "ChatReasoningPatch":
		known := v.find(event)
		offset, mode := field(event, "offset").Uint(), field(event, "mode").Enum()
		known.text = applyPatch(known.text, field(event, "text").String(), offset, mode)
	}
}

// find returns the message that event is about, which may be new.
func (v *view) find(event protoreflect.Message) *message {
	id := field(event, "message_id").String()
	for _, known := range v.messages {
		if known.id == id {
			return known
		}
	}
	known := &message{id, field(event, "role").String(), field(event, "status").String(), ""}
	v.messages = append(v.messages, known)
	return known
}

func (v *view) set(id string, payload protoreflect.Message, text string) {
	known := v.find(payload)
	*known = message{id, field(payload, "role").String(), field(payload, "status").String(), text}
}

func (v *view) drop(id string) {
	for i, known := range v.messages {
		if known.id == id {
			v.messages = append(v.messages[:i], v.messages[i+1:]...)
			return
		}
	}
}

// field returns a field by its name; generated code has a method for each.
func field(message protoreflect.Message, name protoreflect.Name) protoreflect.Value {
	return message.Get(message.Descriptor().Fields().ByName(name))
}

func has(message protoreflect.Message, name protoreflect.Name) bool {
	return message.Has(message.Descriptor().Fields().ByName(name))
}

func load(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(data, set); err != nil {
		return err
	}
	files, err := protodesc.NewFiles(set)
	types = dynamicpb.NewTypes(files)
	return err
}

func main() {
	log.SetFlags(0)
	if err := load(os.Args[1]); err != nil {
		log.Fatal(err)
	}
	var v view
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = v.apply(line)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	for _, message := range v.messages {
		fmt.Printf("%s %s: %s\n", message.role, message.status, message.text)
	}
}
