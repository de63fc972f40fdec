package main

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	protocolVersion = 1
	lineBytesMax    = 1 << 30
)

type failure struct {
	line   int
	reason string
}

// stream is what the frames of one process owe each other.
type stream struct {
	lastLines      map[string]int // request id -> line of its last frame
	done           map[string]bool
	ordinal        uint64
	ordinalRequest string
	backendOrdinal uint64
	lastFrame      protoreflect.Message
}

// check returns the failures in data, all that a process wrote, and the number of its lines.
func check(client *client, data []byte) ([]failure, int) {
	var failures []failure
	stream := &stream{lastLines: map[string]int{}, done: map[string]bool{}}
	scanner := bufio.NewScanner(bytes.NewReader(data))
	scanner.Buffer(nil, lineBytesMax)
	scanner.Split(scanLineFeeds)
	number := 0
	for scanner.Scan() {
		number++
		if err := addLine(client, stream, number, scanner.Text()); err != nil {
			failures = append(failures, failure{number, err.Error()})
		}
	}
	if err := scanner.Err(); err != nil {
		failures = append(failures, failure{number + 1, err.Error()})
	}
	return append(failures, stream.unfinished(number)...), number
}

// scanLineFeeds is bufio.ScanLines that keeps a CR and fails on a last line without LF.
func scanLineFeeds(data []byte, atEOF bool) (int, []byte, error) {
	if end := bytes.IndexByte(data, '\n'); end >= 0 {
		return end + 1, data[:end], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, fmt.Errorf("no line feed after the last frame")
	}
	return 0, nil, nil
}

func addLine(client *client, stream *stream, number int, line string) error {
	if !utf8.ValidString(line) {
		return fmt.Errorf("not UTF-8")
	}
	frame, err := client.parse(line)
	if err != nil {
		return err
	}
	return stream.add(number, frame)
}

// add takes the next frame; it fails if the frame cannot follow those before it.
func (s *stream) add(number int, frame protoreflect.Message) error {
	first := s.lastFrame == nil
	s.lastFrame = frame
	kind := kindOf(frame)
	if (kind == "hello") != first {
		return fmt.Errorf("hello is the first frame and no other")
	}
	if version := get(frame, "version").Uint(); version != protocolVersion {
		return fmt.Errorf("version %d", version)
	}
	request := get(frame, "request_id").String()
	if err := s.addToRequest(number, request, kind); err != nil {
		return err
	}
	switch kind {
	case "ui_event", "backend_event":
		return s.addEvent(request, kind, get(frame, kind).Message())
	case "":
		return fmt.Errorf("a line without a frame")
	}
	return nil
}

func (s *stream) addToRequest(number int, request string, kind protoreflect.Name) error {
	if request == "" {
		return nil
	}
	if s.done[request] {
		return fmt.Errorf("request %s is done already", request)
	}
	s.lastLines[request] = number
	s.done[request] = kind == "done"
	return nil
}

func (s *stream) addEvent(request string, kind protoreflect.Name, event protoreflect.Message) error {
	url := get(get(event, "payload").Message(), "type_url").String()
	name, messageName := get(event, "name").String(), url[strings.LastIndexAny(url, "./")+1:]
	if name != messageName {
		return fmt.Errorf("event %s carries a %s", name, messageName)
	}
	ordinal := get(event, "ordinal").Uint()
	if ordinal == 0 || ordinal < s.ordinal {
		return fmt.Errorf("ordinal %d after %d", ordinal, s.ordinal)
	}
	if ordinal == s.ordinal && request != s.ordinalRequest {
		return fmt.Errorf("ordinal %d belongs to %s", ordinal, s.ordinalRequest)
	}
	if kind == "backend_event" {
		if ordinal == s.backendOrdinal {
			return fmt.Errorf("a second backend event %d", ordinal)
		}
		s.backendOrdinal = ordinal
	}
	s.ordinal, s.ordinalRequest = ordinal, request
	return nil
}

// unfinished returns what is missing after the last frame, which stood on line number.
func (s *stream) unfinished(number int) []failure {
	var failures []failure
	for request, line := range s.lastLines {
		if !s.done[request] {
			failures = append(failures, failure{line, fmt.Sprintf("request %s has no done", request)})
		}
	}
	if !isLastFrame(s.lastFrame) {
		failures = append(failures, failure{number, "the stream breaks off"})
	}
	return failures
}

// isLastFrame reports whether a process may end with frame.
func isLastFrame(frame protoreflect.Message) bool {
	if frame == nil {
		return false
	}
	kind := kindOf(frame)
	if kind == "error" {
		return get(get(frame, "error").Message(), "terminal").Bool()
	}
	return kind == "hello" || kind == "done"
}

// kindOf returns the name of the member that is set, or "".
func kindOf(frame protoreflect.Message) protoreflect.Name {
	member := frame.WhichOneof(frame.Descriptor().Oneofs().ByName("frame"))
	if member == nil {
		return ""
	}
	return member.Name()
}

func get(message protoreflect.Message, field protoreflect.Name) protoreflect.Value {
	return message.Get(message.Descriptor().Fields().ByName(field))
}
