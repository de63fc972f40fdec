package duologue

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func (c *Client) newID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.number++
	return "go-" + strconv.Itoa(c.number)
}

func (c *Client) send(ctx context.Context, r *request) error {
	if r.isRun() && !c.options.Queue && ctx.Err() == nil {
		c.settle(ctx, r)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	line, err := encode(r.id, r.body)
	if err != nil {
		return err
	}
	c.mu.Lock()
	limit, p, isWritten := c.requestBytesMax(), c.process, false
	switch {
	case r.status != "":
		isWritten = true // It was stopped before it was sent.
	case c.failure != nil:
		err = c.failure
	case len(line) > limit+1:
		err = fmt.Errorf("%w: the request has %d bytes, and the server takes %d", ErrTooLong, len(line)-1, limit)
	default:
		c.requests[r.id] = r
		r.isSent = true
		c.flow.Broadcast()
		select {
		case p.writes <- line: // With the lock: requests are written in the order in which they are registered.
			isWritten = true
		default:
		}
	}
	c.mu.Unlock()
	if err != nil || isWritten {
		return err
	}
	select {
	case p.writes <- line:
		return nil
	case <-p.ended:
		return nil // The end is reported as that of the request.
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.requests, r.id)
		c.mu.Unlock()
		return ctx.Err()
	}
}

// tell writes a request whose answer nobody waits for.
func (c *Client) tell(body map[string]any) {
	line, err := encode(c.newID(), body)
	if err != nil {
		return
	}
	c.mu.Lock()
	p := c.process
	c.mu.Unlock()
	select {
	case p.writes <- line:
	case <-p.ended:
	default:
		// The server reads nothing at the moment.
		go func() {
			select {
			case p.writes <- line:
			case <-p.ended:
			}
		}()
	}
}

func encode(id string, body map[string]any) ([]byte, error) {
	members := maps.Clone(body)
	members["requestId"] = id
	line, err := json.Marshal(members)
	// Strings are valid by then; JSON that the program has made is copied as it is.
	line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
	if half.Match(line) {
		line = escape.ReplaceAllFunc(line, withoutHalf)
	}
	return append(line, '\n'), err
}

var (
	// half matches what may be the escape of half a character, which the server can't read where it stands alone.
	half = regexp.MustCompile(`\\u[dD][89a-fA-F]`)
	// escape matches each escape of a line, and that of a character that has two as one.
	escape = regexp.MustCompile(`\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|` +
		`u[dD][89a-fA-F][0-9a-fA-F]{2}|.)`)
)

// halfBytes is the length of the escape of half a character.
const halfBytes = len(`\uD83D`)

func withoutHalf(escape []byte) []byte {
	if len(escape) == halfBytes {
		return []byte("\uFFFD")
	}
	return escape
}

// settle waits for the end of runs that are to stop: a prompt before that would be refused.
func (c *Client) settle(ctx context.Context, prompt *request) {
	c.mu.Lock()
	var ends []chan struct{}
	for id, r := range c.requests {
		// What is called when a context ends may not have been called yet.
		if c.stopping[id] != nil || r.ctx != nil && r.ctx.Err() != nil {
			ends = append(ends, r.done)
		}
	}
	c.mu.Unlock()
	timer := time.NewTimer(c.options.CancelTimeout)
	defer timer.Stop()
	for _, end := range ends {
		select {
		case <-end:
		case <-prompt.done:
			return
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// abandon is for a run that nobody waits for any more.
func (c *Client) abandon(r *request) {
	c.mu.Lock()
	r.dropEvents()
	c.mu.Unlock()
	c.cancel(r)
}

// marksStopping has the next prompt wait for the end of a run that the server has to stop; false if it has none to stop:
// one that has not been sent is not sent. The lock is held.
func (c *Client) marksStopping(r *request) bool {
	if !r.isSent {
		r.end("stopped")
	}
	isActive := r.status == "" && c.failure == nil
	if isActive {
		c.stopping[r.id] = r
	}
	c.flow.Broadcast()
	return isActive
}

// cancel stops a run, and does not wait for its end.
func (c *Client) cancel(r *request) {
	c.mu.Lock()
	isActive := c.marksStopping(r)
	c.mu.Unlock()
	if isActive {
		c.cancelRun(r)
	}
}

// stop stops a run; where the server does not say that it has, it counts as stopped after a while.
func (c *Client) stop(r *request) {
	c.cancel(r)
	timer := time.NewTimer(c.options.CancelTimeout)
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
		c.mu.Lock()
		defer c.mu.Unlock()
		// Its run may go on, and what nobody takes would hold up the frames of others.
		r.dropEvents()
		r.end("stopped")
		c.flow.Broadcast()
	}
}

func (c *Client) cancelRun(r *request) {
	c.tell(map[string]any{"cancel": map[string]any{"targetRequestId": r.id}})
}

func (c *Client) requestBytesMax() int {
	if limit, err := strconv.Atoi(c.capability("max-request-bytes")); err == nil {
		return limit
	}
	return requestBytesMax
}

func (c *Client) capability(name string) string {
	for _, word := range c.hello.GetCapabilities() {
		if value, ok := strings.CutPrefix(word, name+"="); ok {
			return value
		}
	}
	return ""
}
