package duologue

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"duologue/clients/go/messages"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// An Event is one step of a run, or of the session.
type Event struct {
	// Ordinal numbers the events of a session.
	Ordinal uint64
	// RequestID is the request whose event this is; empty for an event of the session.
	RequestID string
	// Type is the full name of the payload's type, as "pinocchio.chatapp.v1.ChatTextPatch".
	Type string
	// Raw is the payload as JSON, with the fields that this version of the package does not know.
	Raw json.RawMessage

	once    sync.Once
	payload proto.Message
}

// Payload returns the message, as *messages.ChatTextPatch. It is nil if this version of the package does not know its
// type.
func (e *Event) Payload() proto.Message {
	e.once.Do(func() { e.payload = readPayload(e.Type, e.Raw) })
	return e.payload
}

// Text returns the text of a patch of the answer; "" for any other event.
func (e *Event) Text() string {
	if e.Type != textPatch {
		return ""
	}
	patch, _ := e.Payload().(*messages.ChatTextPatch)
	return patch.GetText()
}

const (
	textPatch      = "pinocchio.chatapp.v1.ChatTextPatch"
	reasoningPatch = "pinocchio.chatapp.v1.ChatReasoningPatch"
)

// frame is one line of the server. Payloads are read when they are asked for.
type frame struct {
	SessionID string          `json:"sessionId"`
	RequestID string          `json:"requestId"`
	Hello     json.RawMessage `json:"hello"`
	Snapshot  json.RawMessage `json:"snapshot"`
	UIEvent   *eventFrame     `json:"uiEvent"`
	Error     *errorFrame     `json:"error"`
	Done      *doneFrame      `json:"done"`
}

type eventFrame struct {
	Ordinal string          `json:"ordinal"`
	Payload json.RawMessage `json:"payload"`
}

type errorFrame struct {
	Code     string `json:"code"`
	Message  string `json:"message"`
	Detail   string `json:"detail"`
	Terminal bool   `json:"terminal"`
}

type doneFrame struct {
	Status string `json:"status"`
}

func newEvent(f *frame) *Event {
	ordinal, _ := strconv.ParseUint(f.UIEvent.Ordinal, 10, 64)
	return &Event{Ordinal: ordinal, RequestID: f.RequestID, Type: typeOf(f.UIEvent.Payload), Raw: f.UIEvent.Payload}
}

var typePrefix = []byte(`{"@type":"`)

// typeOf returns the name of the type of an Any.
func typeOf(raw json.RawMessage) string {
	var url string
	if rest, ok := bytes.CutPrefix(raw, typePrefix); ok { // As the server writes it.
		url = string(rest[:max(bytes.IndexByte(rest, '"'), 0)])
	} else {
		var any struct {
			Type string `json:"@type"`
		}
		_ = json.Unmarshal(raw, &any)
		url = any.Type
	}
	return url[strings.LastIndexByte(url, '/')+1:]
}

var unmarshal = protojson.UnmarshalOptions{DiscardUnknown: true}

func readPayload(name string, raw json.RawMessage) proto.Message {
	if name == textPatch {
		if patch, ok := scanTextPatch(raw); ok {
			return patch
		}
	}
	known, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
	if err != nil {
		return nil
	}
	payload := known.New().Interface()
	// The field @type is one that no message has, and discarded as such.
	if unmarshal.Unmarshal(raw, payload) != nil {
		return nil
	}
	return payload
}
