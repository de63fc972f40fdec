package duologue

import (
	"context"
	"encoding/json"
)

const (
	pauseBytes    = 8 * 1024 * 1024
	queueBytesMax = 256 * 1024 * 1024
)

// request is a request in flight. The client's mutex guards all of it but done and news. What comes after its end, of a run
// that counts as stopped, changes nothing.
type request struct {
	id         string
	body       map[string]any
	isStreamed bool
	isSent     bool
	isAwaited  bool            // a stream: its next event is waited for
	ctx        context.Context // its end stops the run; nil: nothing does
	status     string
	err        error
	snapshot   json.RawMessage
	summary    summary
	events     []*Event
	waiting    int // bytes of the lines of events
	// done is closed at the end; news has a value when there are events.
	done chan struct{}
	news chan struct{}
}

func newRequest(id string, body map[string]any) *request {
	return &request{id: id, body: body, done: make(chan struct{}), news: make(chan struct{}, 1)}
}

// isRun reports whether the request starts a run, or waits for one.
func (r *request) isRun() bool {
	_, isEdit := r.body["edit"]
	_, isCompaction := r.body["compact"]
	submit, isSubmit := r.body["submit"].(map[string]any)
	_, isSteering := submit["targetRequestId"]
	return isEdit || isCompaction || isSubmit && !isSteering
}

// isPrompt reports whether the model answers the request, so that its events make a Result.
func (r *request) isPrompt() bool {
	edit, _ := r.body["edit"].(map[string]any)
	_, isDrop := edit["dropLastTurn"]
	_, isSubmit := r.body["submit"]
	return isSubmit || edit != nil && !isDrop
}

func (r *request) event(event *Event, size int) {
	if r.status != "" {
		return
	}
	r.summary.apply(event)
	if !r.isStreamed {
		return
	}
	r.events = append(r.events, event)
	r.waiting += size
	select {
	case r.news <- struct{}{}:
	default:
	}
}

func (r *request) dropEvents() {
	r.isStreamed, r.events, r.waiting = false, nil, 0
}

func (r *request) fail(err error) {
	if r.err == nil && r.status == "" { // The first error is the cause of those that follow.
		r.err = err
	}
}

func (r *request) end(status string) {
	if r.status != "" {
		return
	}
	if status == "" {
		status = "failed"
	}
	r.status = status
	close(r.done)
}
