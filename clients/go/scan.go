package duologue

import (
	"bytes"
	"encoding/json"
	"strconv"

	"duologue/clients/go/messages"
)

// Patches are most of a stream, and encoding/json with protojson takes twice as long as parsing their lines alone. A scan
// reads frames with events, and patches, in one pass. It knows what the server writes; what else it meets it leaves to
// those libraries, errors included.
type scan struct {
	text []byte
	at   int
	// isOdd: something that a scan does not know.
	isOdd bool
}

// members calls read with each key of an object; read takes the value.
func (s *scan) members(read func(key string)) {
	for more := s.take('{') && !s.take('}'); more; more = s.take(',') {
		key := s.string()
		if s.isOdd || !s.must(':') {
			return
		}
		read(key)
		if s.isOdd || s.take('}') {
			return
		}
	}
	s.isOdd = s.isOdd || s.at == 0 || s.text[s.at-1] != '}'
}

func (s *scan) take(char byte) bool {
	if s.at < len(s.text) && s.text[s.at] == char {
		s.at++
		return true
	}
	return false
}

func (s *scan) must(char byte) bool {
	if !s.take(char) {
		s.isOdd = true
	}
	return !s.isOdd
}

func (s *scan) string() string {
	if !s.must('"') {
		return ""
	}
	begin := s.at
	end := bytes.IndexByte(s.text[begin:], '"')
	if end < 0 {
		s.isOdd = true
		return ""
	}
	if bytes.IndexByte(s.text[begin:begin+end], '\\') < 0 {
		s.at = begin + end + 1
		return string(s.text[begin : begin+end])
	}
	s.skipString()
	var text string
	s.isOdd = s.isOdd || json.Unmarshal(s.text[begin-1:s.at], &text) != nil
	return text
}

// skipString moves past the end of a string that has begun.
func (s *scan) skipString() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '"':
			s.at++
			return
		case '\\':
			s.at++
		}
		s.at++
	}
	s.isOdd = true
}

func (s *scan) uint() uint64 {
	number, err := strconv.ParseUint(s.string(), 10, 64)
	s.isOdd = s.isOdd || err != nil
	return number
}

// object returns an object as it stands.
func (s *scan) object() json.RawMessage {
	begin, depth := s.at, 0
	for s.at < len(s.text) {
		char := s.text[s.at]
		s.at++
		switch char {
		case '"':
			s.skipString()
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth == 0 {
			break
		}
	}
	if depth != 0 || s.at == begin || s.text[begin] != '{' {
		s.isOdd = true
		return nil
	}
	return bytes.Clone(s.text[begin:s.at])
}

// scanEvent reads a frame with an event.
func scanEvent(line []byte) (*frame, bool) {
	s, f, event := &scan{text: line}, &frame{}, &eventFrame{}
	s.members(func(key string) {
		switch key {
		case "version":
			s.isOdd = !s.take('1')
		case "sessionId":
			f.SessionID = s.string()
		case "requestId":
			f.RequestID = s.string()
		case "uiEvent":
			f.UIEvent = event
			s.members(func(key string) {
				switch key {
				case "ordinal":
					event.Ordinal = s.string()
				case "name":
					s.string()
				case "payload":
					event.Payload = s.object()
				default:
					s.isOdd = true
				}
			})
		default:
			s.isOdd = true
		}
	})
	return f, !s.isOdd && s.at == len(line) && f.UIEvent != nil
}

// scanTextPatch reads a patch of the answer.
func scanTextPatch(raw []byte) (*messages.ChatTextPatch, bool) {
	s, patch := &scan{text: raw}, &messages.ChatTextPatch{}
	s.members(func(key string) {
		switch key {
		case "@type":
			s.string()
		case "messageId":
			patch.MessageId = s.string()
		case "role":
			patch.Role = s.string()
		case "streamId":
			patch.StreamId = s.string()
		case "sequence":
			patch.Sequence = s.uint()
		case "offset":
			patch.Offset = s.uint()
		case "text":
			patch.Text = s.string()
		case "mode":
			mode, isKnown := messages.ChatStreamPatchMode_value[s.string()]
			patch.Mode, s.isOdd = messages.ChatStreamPatchMode(mode), s.isOdd || !isKnown
		case "status":
			patch.Status = s.string()
		case "correlation":
			patch.Correlation = s.correlation()
		default:
			s.isOdd = true
		}
	})
	return patch, !s.isOdd && s.at == len(raw)
}

func (s *scan) correlation() *messages.CorrelationInfo {
	correlation := &messages.CorrelationInfo{}
	s.members(func(key string) {
		switch key {
		case "sessionId":
			correlation.SessionId = s.string()
		case "runId":
			correlation.RunId = s.string()
		case "turnId":
			correlation.TurnId = s.string()
		case "providerCallId":
			correlation.ProviderCallId = s.string()
		case "segmentId":
			correlation.SegmentId = s.string()
		case "toolCallId":
			correlation.ToolCallId = s.string()
		default:
			s.isOdd = true
		}
	})
	return correlation
}
