package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

const (
	frameType = "pinocchio.chatapp.rpc.v1.RpcLine"
	anyType   = "google.protobuf.Any"
	// Extensions have field numbers from here up, and files of their own.
	extensionNumberMin = 200
	// What one reader or another takes for the end of a line, beside LF.
	separators = "\r\u0085\u2028\u2029"
)

// client parses lines as a client that knows the published messages and nothing else.
type client struct {
	types *dynamicpb.Types
	frame protoreflect.MessageType
}

func newClient(descriptors string) (*client, error) {
	data, err := os.ReadFile(descriptors)
	if err != nil {
		return nil, err
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(data, set); err != nil {
		return nil, err
	}
	files, err := protodesc.NewFiles(knownMessages(set))
	if err != nil {
		return nil, err
	}
	types := dynamicpb.NewTypes(files)
	frame, err := types.FindMessageByName(frameType)
	return &client{types, frame}, err
}

// knownMessages keeps what is published: a default stream that needs more is an error of the server.
func knownMessages(set *descriptorpb.FileDescriptorSet) *descriptorpb.FileDescriptorSet {
	known := &descriptorpb.FileDescriptorSet{}
	for _, file := range set.File {
		if !isKnown(file.GetName()) {
			continue
		}
		for _, message := range file.MessageType {
			dropExtensions(message)
		}
		file.Dependency = slices.DeleteFunc(file.Dependency, func(path string) bool {
			return !isKnown(path)
		})
		known.File = append(known.File, file)
	}
	return known
}

func isKnown(path string) bool {
	return strings.HasPrefix(path, "pinocchio/") || strings.HasPrefix(path, "google/protobuf/")
}

func dropExtensions(message *descriptorpb.DescriptorProto) {
	isExtension := func(field *descriptorpb.FieldDescriptorProto) bool {
		return field.GetNumber() >= extensionNumberMin
	}
	message.Field = slices.DeleteFunc(message.Field, isExtension)
}

// parse returns the frame on line.
func (c *client) parse(line string) (protoreflect.Message, error) {
	if strings.ContainsAny(line, separators) {
		return nil, fmt.Errorf("some readers see more than one line")
	}
	frame := c.frame.New()
	options := protojson.UnmarshalOptions{DiscardUnknown: false, Resolver: c.types}
	if err := options.Unmarshal([]byte(line), frame.Interface()); err != nil {
		return nil, err
	}
	if err := c.unpackPayloads(frame); err != nil {
		return nil, err
	}
	return frame, c.compareWithCanonical(frame, line)
}

// unpackPayloads turns every Any in message into its own type: a wrong type name or wrong bytes fail.
func (c *client) unpackPayloads(message protoreflect.Message) error {
	if message.Descriptor().FullName() == anyType {
		payload, err := c.unpack(message)
		if err != nil {
			return err
		}
		message = payload
	}
	var failed error
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		for _, child := range children(field, value) {
			if failed == nil {
				failed = c.unpackPayloads(child)
			}
		}
		return failed == nil
	})
	return failed
}

func (c *client) unpack(any protoreflect.Message) (protoreflect.Message, error) {
	fields := any.Descriptor().Fields()
	payload, err := c.types.FindMessageByURL(any.Get(fields.ByName("type_url")).String())
	if err != nil {
		return nil, err
	}
	message := payload.New()
	return message, proto.Unmarshal(any.Get(fields.ByName("value")).Bytes(), message.Interface())
}

// children returns the messages in a field; entries of maps hold none in this protocol.
func children(field protoreflect.FieldDescriptor, value protoreflect.Value) []protoreflect.Message {
	if field.Message() == nil || field.IsMap() {
		return nil
	}
	if !field.IsList() {
		return []protoreflect.Message{value.Message()}
	}
	var messages []protoreflect.Message
	for i := range value.List().Len() {
		messages = append(messages, value.List().Get(i).Message())
	}
	return messages
}

func (c *client) compareWithCanonical(frame protoreflect.Message, line string) error {
	canonical, err := protojson.MarshalOptions{Resolver: c.types}.Marshal(frame.Interface())
	if err != nil {
		return err
	}
	expected, err := parsed(string(canonical))
	if err != nil {
		return err
	}
	found, err := parsed(line)
	if err == nil && !reflect.DeepEqual(found, expected) {
		err = fmt.Errorf("not canonical protobuf JSON, which is %s", canonical)
	}
	return err
}

// parsed keeps numbers as they are written: 1.0 is not 1.
func parsed(text string) (any, error) {
	var value any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	err := decoder.Decode(&value)
	return value, err
}
