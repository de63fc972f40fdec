package duologue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"duologue/clients/go/messages"
)

// read is the one reader of the process: it fills the requests, whoever waits for them. A reader may be late, and the
// client have another process: then it does nothing.
func (c *Client) read(p *process) {
	lines := newLines(p.stdout, c.options.LineBytesMax)
	for {
		line, isOverlong, err := lines.next()
		if err != nil {
			break
		}
		if isOverlong {
			c.overlong(p, requestOf(line))
			continue
		}
		if err := c.accept(p, line); err != nil {
			c.broken(p, err)
			break
		}
	}
	// Output is over; the process may not be.
	go p.end(c.options.CloseTimeout)
	c.ended(p, p.wait())
}

func (c *Client) ended(p *process, ended *ProcessEnded) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.process != p:
	case c.isClosing: // As it was told to.
		c.fail(ErrClosed)
	default:
		ended.Cause = c.fatal
		c.fail(ended)
	}
}

func (c *Client) accept(p *process, line []byte) error {
	f, isScanned := scanEvent(line)
	if !isScanned {
		f = new(frame)
		// A null is read into any type.
		if err := json.Unmarshal(line, f); err != nil || bytes.Equal(bytes.TrimSpace(line), []byte("null")) {
			return fmt.Errorf("%w: the process wrote a line that is no frame: %.200q%s", ErrProtocol, line, tail(p.tail()))
		}
	}
	c.mu.Lock()
	if c.process != p || c.failure != nil {
		c.mu.Unlock()
		return nil
	}
	if c.hello == nil {
		defer c.mu.Unlock()
		return c.greet(p, f)
	}
	r := c.requests[f.RequestID]
	var notice *Event
	var failure error
	switch {
	case f.UIEvent != nil:
		event := newEvent(f)
		if event.RequestID == "" || r != nil && !r.isStreamed && !r.isPrompt() {
			notice = event
		}
		c.event(p, r, event, len(line))
	case r != nil:
		c.answer(r, f)
	case f.RequestID == "":
		failure = c.ofSession(f)
	}
	c.mu.Unlock()
	// Without the lock: they may look at the client.
	if failure != nil && c.options.OnError != nil {
		c.options.OnError(failure)
	}
	if notice != nil && c.options.OnEvent != nil {
		c.options.OnEvent(notice)
	}
	return nil
}

func (c *Client) greet(p *process, f *frame) error {
	hello := new(messages.HelloFrame)
	if f.Hello == nil || unmarshal.Unmarshal(f.Hello, hello) != nil {
		return fmt.Errorf("%w: the process does not begin with hello%s", ErrProtocol, tail(p.tail()))
	}
	if hello.GetProtocol() != protocol {
		return fmt.Errorf("%w: the process speaks %s; this package needs %s", ErrProtocol, hello.GetProtocol(), protocol)
	}
	c.hello, c.sessionID = hello, f.SessionID
	if version := c.capability("server-version"); isOlder(version) {
		least := strings.Trim(strings.ReplaceAll(fmt.Sprint(serverVersionMin), " ", "."), "[]")
		return fmt.Errorf("%w: it is %q, and this package needs %s or later", ErrVersion, version, least)
	}
	close(c.begun)
	return nil
}

func isOlder(version string) bool {
	version, _, _ = strings.Cut(version, "-")
	version, _, _ = strings.Cut(version, "+")
	numbers := strings.Split(version, ".")
	for at, least := range serverVersionMin {
		number := 0
		if at < len(numbers) {
			var err error
			if number, err = strconv.Atoi(numbers[at]); err != nil {
				return true
			}
		}
		if number != least {
			return number < least
		}
	}
	return false
}

func (c *Client) event(p *process, r *request, event *Event, size int) {
	c.seen.ordinal = max(c.seen.ordinal, event.Ordinal)
	c.act(event, r)
	if r == nil {
		return
	}
	r.event(event, size)
	if r.waiting > queueBytesMax {
		r.fail(fmt.Errorf("%w: more than %d bytes of events wait to be read", ErrTooLong, queueBytesMax))
		r.dropEvents()
		go c.abandon(r)
	}
	for c.process == p && c.isBehind() {
		c.flow.Wait()
	}
}

// isBehind reports that a stream is behind, and that nobody waits for anything, be it for the end of the client or of a run.
func (c *Client) isBehind() bool {
	isBehind := false
	for _, r := range c.requests {
		if !r.isStreamed || r.isAwaited && len(r.events) == 0 {
			return false
		}
		isBehind = isBehind || r.waiting > pauseBytes
	}
	return isBehind && !c.isClosing && len(c.stopping) == 0
}

// take waits for events of a stream, or its end.
func (c *Client) take(r *request) (events []*Event, isLast bool) {
	c.mu.Lock()
	for len(r.events) == 0 && r.status == "" {
		r.isAwaited = true
		c.flow.Broadcast()
		c.mu.Unlock()
		select {
		case <-r.news:
		case <-r.done:
		}
		c.mu.Lock()
	}
	events, isLast = r.events, r.status != ""
	r.events, r.waiting, r.isAwaited = nil, 0, false
	c.flow.Broadcast()
	c.mu.Unlock()
	return events, isLast
}

func (c *Client) resultOf(r *request) *Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	result := r.summary.result
	result.Status = r.status
	// Of a run that was left more may come.
	result.Texts, result.ToolCalls = slices.Clone(result.Texts), slices.Clone(result.ToolCalls)
	result.Values = slices.Clone(result.Values)
	return &result
}

func (c *Client) act(event *Event, r *request) {
	switch event.Type {
	case textPatch, reasoningPatch:
		if r != nil && r.isStreamed {
			c.seen.show(event)
		}
	case "pinocchio.chatapp.frontendtools.v1.FrontendToolCallRequested":
		if call, ok := event.Payload().(*messages.FrontendToolCallRequested); ok {
			go c.runTool(c.begins(call.GetToolCallId(), r), call, event.Raw)
		}
	case "duologue.tools.v1.ToolApprovalRequested":
		if request, ok := event.Payload().(*messages.ToolApprovalRequested); ok {
			go c.decide(c.begins(request.GetToolCallId()+":approval", r), request)
		}
	case "pinocchio.chatapp.v1.ChatToolResultReady":
		if ready, ok := event.Payload().(*messages.ChatToolResultReady); ok {
			c.over(ready.GetToolCallId())
		}
	case "duologue.tools.v1.ToolApprovalResolved":
		if resolved, ok := event.Payload().(*messages.ToolApprovalResolved); ok {
			c.over(resolved.GetToolCallId() + ":approval")
		}
	case "pinocchio.chatapp.frontendtools.v1.FrontendToolManifestUpdated":
		if updated, ok := event.Payload().(*messages.FrontendToolManifestUpdated); ok && event.RequestID == "" {
			c.hasEarlierTools = len(updated.GetTools()) > 0
		}
	case "duologue.session.v1.StoreDegraded":
		// The ordinals from there on are given out again.
		if degraded, ok := event.Payload().(*messages.StoreDegraded); ok && degraded.GetFirstMissingOrdinal() > 0 {
			c.seen.ordinal = degraded.GetFirstMissingOrdinal() - 1
		}
	}
}

func (c *Client) answer(r *request, f *frame) {
	switch {
	case f.Done != nil:
		delete(c.requests, r.id)
		delete(c.stopping, r.id)
		c.seen.over(r.id)
		r.end(f.Done.Status)
	case f.Error != nil:
		r.fail(errorOf(f.Error))
		if f.Error.Terminal {
			c.fatal = errorOf(f.Error)
		}
	case f.Snapshot != nil:
		r.snapshot = f.Snapshot
	}
}

func (c *Client) ofSession(f *frame) error {
	if f.Snapshot != nil {
		snapshot, err := readSnapshot(f.Snapshot)
		if err != nil {
			return err
		}
		c.initial, c.sessionID = snapshot, f.SessionID
		c.seen.ordinal = max(c.seen.ordinal, snapshot.Ordinal)
	}
	if f.Error == nil {
		return nil
	}
	err := errorOf(f.Error)
	if f.Error.Terminal {
		c.fatal = err
	}
	if errors.Is(err, ErrStore) {
		c.storeError = err
	}
	return err
}

// fail ends all that waits. The lock is held.
func (c *Client) fail(failure error) {
	if c.failure == nil {
		c.failure = failure
	}
	c.endWork()
	for _, r := range c.requests {
		r.fail(c.failure)
		r.end("failed")
	}
	clear(c.requests)
	clear(c.stopping)
	c.flow.Broadcast()
	select {
	case <-c.begun:
	default:
		close(c.begun)
	}
}

// broken is for a process whose output can't be read any more.
func (c *Client) broken(p *process, failure error) {
	c.mu.Lock()
	if c.process == p {
		c.fail(failure)
	}
	c.mu.Unlock()
	go p.end(0)
}

func (c *Client) overlong(p *process, id string) {
	c.mu.Lock()
	var hit []*request
	for _, r := range c.requests {
		if c.process == p && (id == "" || id == r.id) {
			r.fail(fmt.Errorf("%w: the server wrote a line of more than %d bytes", ErrTooLong, c.options.LineBytesMax))
			hit = append(hit, r)
		}
	}
	c.mu.Unlock()
	for _, r := range hit {
		if r.isRun() {
			c.abandon(r)
		}
	}
}

// Tools and approvals

func (c *Client) runTool(ctx context.Context, call *messages.FrontendToolCallRequested, raw json.RawMessage) {
	c.mu.Lock()
	tool, isKnown := c.tools[call.GetToolName()]
	c.mu.Unlock()
	result := toolError("there is no tool " + call.GetToolName())
	if isKnown {
		var members struct {
			Input json.RawMessage `json:"input"`
		}
		_ = json.Unmarshal(raw, &members)
		if members.Input == nil {
			members.Input = json.RawMessage("{}")
		}
		result = tool.call(ctx, members.Input)
	}
	if ctx.Err() != nil {
		return
	}
	result["toolCallId"] = call.GetToolCallId()
	_, err := c.Request(ctx, map[string]any{"toolResult": result})
	if why := notTaken(err); why != nil {
		result := toolError(why.Error())
		result["toolCallId"] = call.GetToolCallId()
		_, _ = c.Request(ctx, map[string]any{"toolResult": result})
	}
}

// notTaken is why the server does not have a result, of which the model has to know; nil if the call does not wait.
func notTaken(err error) error {
	var refused *RequestError
	switch {
	case errors.Is(err, ErrTooLong):
		return err
	case errors.As(err, &refused) && !errors.Is(err, ErrTool):
		return fmt.Errorf("the server does not take the result: %w", refused)
	default:
		return nil
	}
}

func (c *Client) decide(ctx context.Context, request *messages.ToolApprovalRequested) {
	decision := c.options.Approve.decide(ctx, request, c.options.ApproveTimeout)
	if ctx.Err() != nil {
		return
	}
	_, _ = c.Request(ctx, map[string]any{"approve": map[string]any{
		"toolCallId": request.GetToolCallId(), "decision": decision.decision, "reason": decision.reason,
	}})
}

// begins returns the context of a call or a decision: it has the values of the prompt's context, and ends when the run
// does not wait any more.
func (c *Client) begins(id string, r *request) context.Context {
	asking := context.Background()
	if r != nil && r.ctx != nil {
		asking = context.WithoutCancel(r.ctx)
	}
	ctx, cancel := context.WithCancel(asking)
	c.work[id] = cancel
	return ctx
}

// over is for a call or a decision that the run does not wait for any more.
func (c *Client) over(id string) {
	if cancel, ok := c.work[id]; ok {
		cancel()
		delete(c.work, id)
	}
}

func (c *Client) endWork() {
	for id := range c.work {
		c.over(id)
	}
}

// show notes a patch that a stream shows.
func (s *seen) show(patch *Event) {
	if patch.Type == textPatch {
		s.text = patch
	} else {
		s.reasoning = patch
	}
}

// over is for the end of a request: what another run has shown is not over.
func (s *seen) over(id string) {
	if s.text != nil && s.text.RequestID == id {
		s.text = nil
	}
	if s.reasoning != nil && s.reasoning.RequestID == id {
		s.reasoning = nil
	}
}

// rest returns the part of an entity's text that was not shown.
func (s *seen) rest(entity *Entity) string {
	message, ok := entity.Payload().(*messages.ChatMessageEntity)
	if !ok {
		return ""
	}
	for _, event := range []*Event{s.text, s.reasoning} {
		if event == nil {
			continue
		}
		// Both kinds of patches have these.
		patch, ok := event.Payload().(interface {
			GetMessageId() string
			GetMode() messages.ChatStreamPatchMode
			GetOffset() uint64
			GetText() string
		})
		if ok && patch.GetMessageId() == entity.ID {
			shown := uint64(len(patch.GetText()))
			switch patch.GetMode() {
			case messages.ChatStreamPatchMode_CHAT_STREAM_PATCH_MODE_APPEND,
				messages.ChatStreamPatchMode_CHAT_STREAM_PATCH_MODE_UNSPECIFIED: // A lean patch has none.
				shown += patch.GetOffset()
			}
			return message.GetText()[min(shown, uint64(len(message.GetText()))):]
		}
	}
	return message.GetText()
}
