// Package duologue holds conversations with language models, by the program duologue in a process of its own.
//
//	chat, err := duologue.Start(ctx, duologue.Options{Store: "chat.db", Session: "ada"})
//	if err != nil {
//		return err
//	}
//	defer chat.Close()
//	stream := chat.Stream(ctx, "What is a duologue?")
//	for event := range stream.Events() {
//		fmt.Print(event.Text())
//	}
//	result, err := stream.Result()
//
// The package messages has all events.
package duologue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"duologue/clients/go/messages"
)

const (
	protocol        = "pinocchio.chatapp.rpc.v1"
	requestBytesMax = 10 * 1024 * 1024
	forkTime        = time.Minute
	// echo is what the program writes to standard error where nobody has chosen what answers.
	echo = "the built-in echo engine answers"
)

var serverVersionMin = [3]int{0, 1, 0}

// A Client is a conversation with a model. Its methods may be called by several goroutines.
type Client struct {
	options Options

	mu        sync.Mutex
	flow      sync.Cond // the reader may read on
	tools     map[string]Tool
	number    int
	process   *process
	failure   error // why no request can be sent
	fatal     error // what the process reported as terminal
	hello     *messages.HelloFrame
	begun     chan struct{}
	isClosing bool
	closes    int // calls of Close
	requests  map[string]*request
	stopping  map[string]*request // runs that are to stop, and have not yet
	work      map[string]context.CancelFunc
	seen      seen
	// seenBefore is what was seen of processes that have ended, until Reconnect has told what was not.
	seenBefore *seen
	// reconnecting is the Reconnect that is under way.
	reconnecting *attempt
	sessionID    string
	initial      *Snapshot
	storeError   error
	// hasEarlierTools reports that the session has tools of an earlier program.
	hasEarlierTools bool
}

// seen is what a client has seen of a conversation.
type seen struct {
	ordinal uint64 // of the last event that was received
	// The last patches of the active run that a stream has shown: of the text, or the reasoning, that is not finished.
	text, reasoning *Event
}

// attempt is a Reconnect that others may wait for.
type attempt struct {
	done    chan struct{} // closed at its end
	changes []Change
	err     error
}

// Start starts the process, and checks what it is. The context is that of the start alone; its error is returned if it
// ends before Options.StartTimeout. Where no provider is configured, and nobody has chosen the built-in engine, this
// answers, and slog.Warn says so; with "--require-provider" in Options.Args it is an ErrConfig.
func Start(ctx context.Context, options Options) (*Client, error) {
	options.setDefaults()
	// Later processes have the same program, whatever the folder of this one is then.
	binary, err := findBinary(options.Binary)
	if err != nil {
		return nil, err
	}
	options.Binary = binary
	c := &Client{options: options}
	c.flow.L = &c.mu
	c.keepTools(options.Tools)
	if err := c.start(ctx, 0); err != nil {
		return nil, err
	}
	return c, nil
}

// start starts the process, unless Close was called since there were so many calls of it.
func (c *Client) start(ctx context.Context, closes int) error {
	p, err := startProcess(append([]string{c.options.Binary}, c.options.args()...), c.options.environment(), c.options.Dir, warn)
	if err != nil {
		return err
	}
	c.mu.Lock()
	if c.closes != closes {
		c.mu.Unlock()
		go c.read(p)
		p.end(0)
		return ErrClosed
	}
	c.process, c.failure, c.fatal, c.hello, c.isClosing = p, nil, nil, nil, false
	c.begun = make(chan struct{})
	c.requests, c.stopping, c.work = map[string]*request{}, map[string]*request{}, map[string]context.CancelFunc{}
	c.seen.text, c.seen.reasoning = nil, nil
	c.hasEarlierTools = false
	c.mu.Unlock()
	go c.read(p)

	limited, cancel := context.WithTimeout(ctx, c.options.StartTimeout)
	defer cancel()
	if err = c.begin(limited); err == nil {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("%w: %s did not begin within %v%s", ErrProtocol, c.options.Binary, c.options.StartTimeout, tail(p.tail()))
	}
	c.giveUp(p, err)
	return err
}

// warned is done once the program was warned of the built-in engine: that is enough, however many clients it has.
var warned sync.Once

// warn logs, once, that the built-in engine answers though nobody has chosen it.
func warn(stderr string) {
	if strings.Contains(stderr, echo) {
		warned.Do(func() {
			slog.Warn("no provider is configured, so the built-in echo engine of duologue answers with what it was asked: " +
				"run `duologue profiles init`, or set the key of a provider; \"--require-provider\" in Options.Args makes " +
				"this an error, and Options.Engine \"echo\" has no warning")
		})
	}
}

// giveUp ends a process that could not be gone on with.
func (c *Client) giveUp(p *process, err error) {
	c.mu.Lock()
	if c.process == p {
		// The error is none of later requests, as that of a context that has ended.
		c.fail(fmt.Errorf("%w: no other could be started: %v", ErrProcessEnded, err))
	}
	c.mu.Unlock()
	p.end(0)
}

func (c *Client) begin(ctx context.Context) error {
	select {
	case <-c.begun:
	case <-ctx.Done():
		return ctx.Err()
	}
	// The first answers: until then a wrong command line, or a store that can't be opened, would not be noticed.
	err := c.enableNewer(ctx)
	c.mu.Lock()
	tools, hasEarlierTools := c.options.Tools, c.hasEarlierTools
	c.mu.Unlock()
	// Without tools of its own it takes back those of an earlier program: nobody would run them.
	if err == nil && (len(tools) > 0 || hasEarlierTools) {
		_, err = c.Request(ctx, declaration(tools))
	}
	if ended := new(ProcessEnded); errors.As(err, &ended) && ended.Cause != nil {
		return ended.Cause // It says more.
	}
	return err
}

// enableNewer turns on extensions of later servers: each is asked for by itself, and may be unknown.
func (c *Client) enableNewer(ctx context.Context) error {
	for _, name := range newerExtensions {
		_, err := c.Request(ctx, map[string]any{"enable": map[string]any{"extensions": []string{name}}})
		if request := new(RequestError); errors.As(err, &request) && request.Code == "unknown_extension" {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Close stops what runs, and ends the process: shutdown, then SIGTERM, then SIGKILL. Nothing is left running. A
// Reconnect that is under way fails with ErrClosed. Any number of calls wait for the same end.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closes++
	reconnecting := c.reconnecting
	c.mu.Unlock()
	c.endProcess()
	if reconnecting != nil {
		<-reconnecting.done // It ends the process that it has started.
	}
	return nil
}

func (c *Client) endProcess() {
	c.mu.Lock()
	p := c.process
	if p == nil || c.isClosing {
		c.mu.Unlock()
		if p != nil {
			// Another call ends it, and takes no longer.
			p.hasEndedWithin(c.options.CloseTimeout + 2*termTime)
		}
		return
	}
	c.isClosing = true
	c.endWork()
	c.flow.Broadcast()
	isAlive := c.failure == nil
	c.mu.Unlock()
	if isAlive {
		c.tell(map[string]any{"cancel": map[string]any{"waiting": true}})
		c.tell(map[string]any{"cancel": map[string]any{}})
		c.tell(map[string]any{"shutdown": map[string]any{}})
		// The shutdown is answered by the end; only then is there nothing left to write.
		p.hasEndedWithin(c.options.CloseTimeout)
	}
	p.end(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == p {
		c.failure = nil
		c.fail(ErrClosed)
	}
}

// A Change is an entity that is new or different after Reconnect.
type Change struct {
	Entity Entity
	// Text is the part of its text that was not shown before.
	Text string
}

// Reconnect starts the process again after its end, and goes on with the stored session. It returns what has changed
// since the last event that this client had; text that no stream has shown, as that of Run, is new. Requests that were in
// flight are not sent again. If it fails, no process is left, and the next attempt returns what this one would have. One
// that is called while another is under way waits for that, and returns the same; if that fails, it is the next attempt.
func (c *Client) Reconnect(ctx context.Context) ([]Change, error) {
	if c.options.store() == "" || c.options.Session == "" {
		return nil, errors.New("only a conversation with a store and Session can go on in another process")
	}
	own := &attempt{done: make(chan struct{})}
	c.mu.Lock()
	closes := c.closes
	c.mu.Unlock()
	for {
		c.mu.Lock()
		other := c.reconnecting
		if other == nil {
			c.reconnecting = own
		}
		c.mu.Unlock()
		if other == nil {
			break
		}
		select {
		case <-other.done:
			if other.err == nil {
				return slices.Clone(other.changes), nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	own.changes, own.err = c.goOn(ctx, closes)
	c.mu.Lock()
	c.reconnecting = nil
	c.mu.Unlock()
	close(own.done)
	return own.changes, own.err
}

// goOn starts another process, and returns what has changed.
func (c *Client) goOn(ctx context.Context, closes int) ([]Change, error) {
	c.mu.Lock()
	failure, p := c.failure, c.process
	// The next process has ordinals and texts of its own as soon as it begins.
	if failure != nil && c.seenBefore == nil {
		before := c.seen
		c.seenBefore = &before
	}
	before := c.seenBefore
	c.mu.Unlock()
	if failure == nil {
		return nil, errors.New("the process runs")
	}
	p.end(c.options.CloseTimeout)
	if err := c.start(ctx, closes); err != nil {
		return nil, err
	}
	snapshot, err := c.Snapshot(ctx, Part{Since: before.ordinal})
	if err != nil {
		c.mu.Lock()
		p = c.process
		c.mu.Unlock()
		c.giveUp(p, err)
		return nil, err
	}
	c.mu.Lock()
	c.seenBefore = nil
	c.mu.Unlock()
	changes := make([]Change, 0, len(snapshot.Entities))
	for _, entity := range snapshot.Entities {
		changes = append(changes, Change{entity, before.rest(&entity)})
	}
	return changes, nil
}

// Hello returns what the process said of itself.
func (c *Client) Hello() *messages.HelloFrame {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hello
}

// SessionID returns the id of the session.
func (c *Client) SessionID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessionID
}

// Initial returns the conversation that the process began with, in a stored session; otherwise nil.
func (c *Client) Initial() *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.initial
}

// Ordinal returns that of the last event that was received.
func (c *Client) Ordinal() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen.ordinal
}

// StoreError returns what the store of this conversation has last complained of.
func (c *Client) StoreError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.storeError
}

// Stderr returns the end of what the process wrote to standard error, warnings among it.
func (c *Client) Stderr() string {
	c.mu.Lock()
	p := c.process
	c.mu.Unlock()
	return p.tail()
}

// Run asks the model, and returns what the run came to. The context stops the run; then the status of the result is
// "stopped", and the error is that of the context.
func (c *Client) Run(ctx context.Context, prompt string, options ...PromptOption) (*Result, error) {
	return c.Stream(ctx, prompt, options...).Result()
}

// Stream is like Run, as the events come.
func (c *Client) Stream(ctx context.Context, prompt string, options ...PromptOption) *Stream {
	submit := map[string]any{"prompt": prompt}
	var into any
	for _, option := range options {
		option(submit, &into)
	}
	return c.stream(ctx, map[string]any{"submit": submit}, into)
}

func (c *Client) stream(ctx context.Context, body map[string]any, into any) *Stream {
	return &Stream{client: c, ctx: ctx, request: newRequest(c.newID(), body), into: into}
}

// Cancel stops the active run, whoever has started it; false if there is none.
func (c *Client) Cancel(ctx context.Context) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	c.mu.Lock()
	for id, r := range c.requests {
		if r.isRun() {
			c.stopping[id] = r
		}
	}
	c.mu.Unlock()
	_, err := c.Request(ctx, map[string]any{"cancel": map[string]any{}})
	if request := new(RequestError); errors.As(err, &request) && request.Code == "no_active_request" {
		return false, nil
	}
	return err == nil, err
}

// Request sends any request, as {"enable": {"extensions": ["timing"]}}, and returns its snapshot if it has one. The
// context stops a run that the request has begun.
func (c *Client) Request(ctx context.Context, body map[string]any) (json.RawMessage, error) {
	r := newRequest(c.newID(), body)
	if r.isRun() {
		r.ctx = ctx
	}
	if err := c.send(ctx, r); err != nil {
		return nil, err
	}
	select {
	case <-r.done:
		return r.snapshot, r.err
	case <-ctx.Done():
		if r.isRun() {
			c.abandon(r)
		}
		return nil, ctx.Err()
	}
}

// DropLastTurn drops the last prompt and its answer.
func (c *Client) DropLastTurn(ctx context.Context) error {
	_, err := c.Request(ctx, map[string]any{"edit": map[string]any{"dropLastTurn": map[string]any{}}})
	return err
}

// Regenerate drops the last answer, and asks its prompt again.
func (c *Client) Regenerate(ctx context.Context) *Stream {
	return c.stream(ctx, map[string]any{"edit": map[string]any{"regenerate": map[string]any{}}}, nil)
}

// Replace drops the turn that the prompt messageID began and all after it, and asks another prompt in its place. The
// attachments of the earlier prompt stay, but for those of Remove. With Into or Settings, which an edit can't have,
// nothing is sent, and Result returns an error.
func (c *Client) Replace(ctx context.Context, messageID, prompt string, options ...PromptOption) *Stream {
	replace := map[string]any{"messageId": messageID, "prompt": prompt}
	var into any
	for _, option := range options {
		option(replace, &into)
	}
	_, hasSchema := replace["responseSchema"]
	_, hasSettings := replace["settings"]
	if hasSchema || hasSettings {
		return failedStream(ctx, c, errors.New("Replace takes no Into and no Settings, as an edit has neither a schema nor "+
			"settings; drop the turns with DropLastTurn, and Run the prompt with them"))
	}
	return c.stream(ctx, map[string]any{"edit": map[string]any{"replace": replace}}, nil)
}

// Compact has the model sent a summary in place of the earlier turns, which people see as before. The instructions say
// what the summary should keep, and keepTurns how many of the last turns are sent as they are; 0: as many as have room.
// The stream has CompactionStarted and Compacted; where only its Result is asked for, Options.OnEvent gets them.
func (c *Client) Compact(ctx context.Context, instructions string, keepTurns int) *Stream {
	body := map[string]any{"instructions": instructions, "keepTurns": keepTurns}
	return c.stream(ctx, map[string]any{"compact": body}, nil)
}

// Fork starts a client of a copy of this stored conversation, or of its first turns; 0: all of them.
func (c *Client) Fork(ctx context.Context, turns int) (*Client, error) {
	store := c.options.store()
	if store == "" {
		return nil, errors.New("only a conversation with a store can be copied")
	}
	args := []string{"sessions", "fork", "--store", store}
	if turns > 0 {
		args = append(args, "--turns", strconv.Itoa(turns))
	}
	limited, cancel := context.WithTimeout(ctx, forkTime)
	defer cancel()
	command := exec.CommandContext(limited, c.options.Binary, append(args, "--", c.SessionID())...)
	command.Env, command.Dir = c.options.environment(), c.options.Dir
	id, err := command.Output()
	if err != nil {
		return nil, c.forkError(ctx, limited, err)
	}
	c.mu.Lock()
	options := c.options
	c.mu.Unlock()
	options.Session = strings.TrimSpace(string(id))
	return Start(ctx, options)
}

// forkError returns the error of a copy that failed; limited is ctx with the longest time of a copy.
func (c *Client) forkError(ctx, limited context.Context, err error) error {
	failed := new(exec.ExitError)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return &RequestError{Code: "store_failed", Message: fmt.Sprintf("the copy took longer than %v", forkTime)}
	case errors.As(err, &failed):
		return &RequestError{Code: "store_failed", Message: strings.TrimSpace(string(failed.Stderr))}
	default:
		return notRun(c.options.Binary, c.options.Dir, err)
	}
}

// A Choice is what answers: what is empty stays as it is.
type Choice struct {
	Model, Profile, Engine string
	Settings               map[string]any
}

// SwitchModel chooses what answers from the next prompt on.
func (c *Client) SwitchModel(ctx context.Context, choice Choice) error {
	body := map[string]any{"model": choice.Model, "profile": choice.Profile, "engine": choice.Engine}
	if choice.Settings != nil {
		body["settings"] = choice.Settings
	}
	_, err := c.Request(ctx, map[string]any{"switchModel": body})
	return err
}

// SetTools replaces the tools, from the next call of the model on.
func (c *Client) SetTools(ctx context.Context, tools ...Tool) error {
	if _, err := c.Request(ctx, declaration(tools)); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keepTools(tools)
	return nil
}

// keepTools notes the tools, also for processes that are started later. The lock is held, or nobody else has the client.
func (c *Client) keepTools(tools []Tool) {
	c.options.Tools, c.tools = slices.Clone(tools), map[string]Tool{}
	for _, tool := range tools {
		c.tools[tool.Name] = tool
	}
}

func declaration(tools []Tool) map[string]any {
	descriptors := make([]map[string]any, 0, len(tools))
	for _, tool := range tools {
		descriptors = append(descriptors, tool.descriptor())
	}
	return map[string]any{"declareTools": map[string]any{"tools": descriptors}}
}
