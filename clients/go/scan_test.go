package duologue

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"duologue/clients/go/messages"

	"google.golang.org/protobuf/proto"
)

// goldenLines returns the frames of the golden streams.
func goldenLines(t testing.TB) [][]byte {
	paths, err := filepath.Glob("../../tests/golden/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("there are no golden streams", err)
	}
	var lines [][]byte
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range bytes.Split(text, []byte("\n")) {
			if frame, ok := bytes.CutPrefix(line, []byte("< ")); ok && bytes.HasPrefix(frame, []byte("{")) {
				lines = append(lines, frame)
			}
		}
	}
	return lines
}

func TestAScanReadsWhatTheLibrariesRead(t *testing.T) {
	events, patches := 0, 0
	for _, line := range goldenLines(t) {
		want := new(frame)
		if err := json.Unmarshal(line, want); err != nil {
			t.Fatal(err)
		}
		got, ok := scanEvent(line)
		if ok != (want.UIEvent != nil) {
			t.Errorf("%v: %s", ok, line)
		}
		if !ok {
			continue
		}
		events++
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n%+v\n%+v", line, got, want)
		}
		if typeOf(got.UIEvent.Payload) != textPatch {
			continue
		}
		patches++
		patch, ok := scanTextPatch(got.UIEvent.Payload)
		read := new(messages.ChatTextPatch)
		if err := unmarshal.Unmarshal(got.UIEvent.Payload, read); err != nil {
			t.Fatal(err)
		}
		if !ok || !proto.Equal(patch, read) {
			t.Errorf("%v: %s", ok, line)
		}
	}
	if events < 100 || patches < 20 {
		t.Errorf("only %d events and %d patches", events, patches)
	}
}

// Whatever the text is, a scan reads it as the library does, or leaves it to the library.
func FuzzScan(f *testing.F) {
	for _, line := range goldenLines(f) {
		f.Add(line)
	}
	f.Add([]byte(`{"version":1,"uiEvent":{"payload":{"text":"a\"\\\u2028"}}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		got, ok := scanEvent(line)
		want := new(frame)
		if err := json.Unmarshal(line, want); err != nil || !ok {
			return // What is in a payload is checked when it is read.
		}
		if got.RequestID != want.RequestID || got.UIEvent.Ordinal != want.UIEvent.Ordinal {
			if !strings.Contains(string(line), "\ufffd") && bytes.Equal(line, bytes.ToValidUTF8(line, nil)) {
				t.Errorf("%s: %+v, %+v", line, got, want)
			}
		}
		_, _ = scanTextPatch(got.UIEvent.Payload)
	})
}

func TestLinesOfAllSizesInChunksOfAllSizes(t *testing.T) {
	const limit = 10
	var text []byte
	for size := range 20 {
		text = append(append(text, bytes.Repeat([]byte("x"), size)...), '\n')
	}
	text = append(text, "rest"...)
	for chunk := 1; chunk <= len(text); chunk++ {
		lines := newLines(&chunks{text, chunk}, limit)
		for size := range 20 {
			line, isOverlong, err := lines.next()
			if err != nil || isOverlong != (size > limit) || !isOverlong && len(line) != size {
				t.Fatalf("chunks of %d, line of %d: %q %v %v", chunk, size, line, isOverlong, err)
			}
		}
		if line, _, err := lines.next(); err == nil {
			t.Fatalf("%q is no line", line)
		}
	}
}

// chunks is a reader that gives so many bytes at a time.
type chunks struct {
	text []byte
	size int
}

func (c *chunks) Read(into []byte) (int, error) {
	n := copy(into, c.text[:min(c.size, len(c.text))])
	c.text = c.text[n:]
	if n == 0 {
		return 0, os.ErrClosed
	}
	return n, nil
}
