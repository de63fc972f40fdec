package duologue

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
)

const (
	readBytes = 256 * 1024
	headBytes = 4096
)

// lines splits bytes at LF alone, into lines of at most limit bytes.
type lines struct {
	reader *bufio.Reader
	limit  int
	buffer []byte
}

func newLines(r io.Reader, limit int) *lines {
	return &lines{reader: bufio.NewReaderSize(r, readBytes), limit: limit}
}

// next returns a line without its LF, which is valid until the next call. Of a line past the limit it returns the head
// and true: the rest is gone. Bytes after the last LF are no line.
func (l *lines) next() (line []byte, isOverlong bool, err error) {
	part, err := l.reader.ReadSlice('\n')
	if err == nil && len(part)-1 <= l.limit {
		return part[:len(part)-1], false, nil // Most lines: not copied.
	}
	l.buffer = l.buffer[:0]
	size := 0
	for {
		size += len(part)
		if size-1 <= l.limit || len(l.buffer) < headBytes {
			l.buffer = append(l.buffer, part...)
		}
		if err != bufio.ErrBufferFull {
			break
		}
		part, err = l.reader.ReadSlice('\n')
	}
	if err != nil {
		return nil, false, err
	}
	if size-1 > l.limit {
		head := l.buffer[:min(len(l.buffer), headBytes)]
		l.buffer = nil // What it has grown to is not needed for other lines.
		return head, true, nil
	}
	return bytes.TrimSuffix(l.buffer, []byte("\n")), false, nil
}

var requestID = regexp.MustCompile(`"requestId"\s*:\s*"([^"\\]*)"`)

// requestOf returns the request of a frame of which only the head is left; "" if it can't be read.
func requestOf(head []byte) string {
	if found := requestID.FindSubmatch(head); found != nil {
		return string(found[1])
	}
	return ""
}
