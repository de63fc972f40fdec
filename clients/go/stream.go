package duologue

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"reflect"
)

// A Stream is a run: range over Events, or call Result. It is sent when that begins, and can be used once.
type Stream struct {
	client  *Client
	ctx     context.Context
	request *request
	into    any

	hasBegun bool
	isOver   bool
	result   *Result
	err      error
}

// failedStream returns a stream whose request is never sent.
func failedStream(ctx context.Context, c *Client, err error) *Stream {
	return &Stream{client: c, ctx: ctx, request: newRequest(c.newID(), nil), hasBegun: true, isOver: true, err: err}
}

// RequestID returns the id of the request.
func (s *Stream) RequestID() string { return s.request.id }

// Events returns the events of the run, up to its end. Leaving the loop stops the run, and so does the context. Result
// says afterwards how the run ended.
func (s *Stream) Events() iter.Seq[*Event] {
	return func(yield func(*Event) bool) {
		unlisten, ok := s.begin(true)
		defer unlisten()
		if !ok {
			return
		}
		defer func() {
			if !s.isOver {
				s.leave()
			}
		}()
		for {
			events, isLast := s.client.take(s.request)
			for _, event := range events {
				if !yield(event) {
					return
				}
			}
			if isLast {
				s.finish()
				return
			}
		}
	}
}

// Result returns what the run came to; of a stream whose events nobody has ranged over it waits for the end. A run that
// was cancelled has the status "stopped", and the error of the context if that has cancelled it.
func (s *Stream) Result() (*Result, error) {
	if unlisten, ok := s.begin(false); ok {
		<-s.request.done
		unlisten()
		s.finish()
	}
	if !s.isOver {
		return nil, errors.New("the run has not ended: range over its events first")
	}
	return s.result, s.err
}

// Cancel stops the run, or withdraws it if it waits. The loop over its events goes on to its end.
func (s *Stream) Cancel() {
	s.client.cancel(s.request)
}

// Steer adds a prompt to the run, which joins it at its next boundary. Result.Joined is false if the run was over.
func (s *Stream) Steer(ctx context.Context, prompt string) (*Result, error) {
	body := map[string]any{"submit": map[string]any{"prompt": prompt, "targetRequestId": s.request.id}}
	return s.client.stream(ctx, body, nil).Result()
}

// begin sends the request, and has the context stop it.
func (s *Stream) begin(isStreamed bool) (unlisten func(), ok bool) {
	unlisten = func() {}
	if s.hasBegun {
		return unlisten, false
	}
	s.hasBegun = true
	s.request.isStreamed, s.request.ctx = isStreamed, s.ctx
	err := s.ctx.Err()
	if err == nil {
		err = s.client.send(s.ctx, s.request)
	}
	if err != nil {
		s.isOver, s.err = true, err
		if s.ctx.Err() != nil {
			s.result, s.err = &Result{Status: "stopped"}, context.Cause(s.ctx)
		}
		return unlisten, false
	}
	stop := context.AfterFunc(s.ctx, func() { s.client.stop(s.request) })
	return func() { stop() }, true
}

func (s *Stream) leave() {
	s.client.abandon(s.request)
	s.isOver = true
	s.result = s.client.resultOf(s.request)
	s.result.Status = "stopped"
}

func (s *Stream) finish() {
	s.isOver = true
	s.result, s.err = s.client.resultOf(s.request), s.request.err
	if request := new(RequestError); errors.As(s.err, &request) && request.Code == "invalid_answer" {
		request.Answer = s.result.Text
	}
	switch {
	case s.err != nil:
	case s.result.Status == "stopped" && s.ctx.Err() != nil:
		s.err = context.Cause(s.ctx)
	case s.into != nil && len(s.result.Values) > 0:
		value := s.result.Values[len(s.result.Values)-1]
		if err := decode(value, s.into); err != nil {
			message := "the answer is not what was asked for: " + err.Error()
			s.err = &RequestError{Code: "invalid_answer", Message: message, Answer: s.result.Text}
		}
	}
}

// decode stores a value where target points to. What is there may be an earlier answer, whose members are none of this one.
func decode(value []byte, target any) error {
	to := reflect.ValueOf(target)
	if to.Kind() != reflect.Pointer || to.IsNil() || to.Elem().Kind() == reflect.Interface {
		return json.Unmarshal(value, target)
	}
	fresh := reflect.New(to.Type().Elem())
	if err := json.Unmarshal(value, fresh.Interface()); err != nil {
		return err
	}
	to.Elem().Set(fresh.Elem())
	return nil
}
