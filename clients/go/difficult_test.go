package duologue_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	duologue "duologue/clients/go"
	"duologue/clients/go/messages"
)

const (
	linesOfARun = 10
	long        = 64 * 1024 * 1024
	// More events than may wait of a stream that is behind.
	pausedAt = 20_000
	// Patches of 10,000 bytes, more than may wait of a stream that is behind.
	longAnswer = 2000
)

func TestHalvesOfLines(t *testing.T) {
	equal(t, run(t, start(t, difficult("halves")), "x").Text, "Hello, wörld!")
}

func TestLongLines(t *testing.T) {
	equal(t, len(run(t, start(t, difficult("long:"+strconv.Itoa(long))), "x").Text), long)
}

func TestALinePastTheLimitFailsItsRunAlone(t *testing.T) {
	options := difficult("long:" + strconv.Itoa(long/16))
	options.LineBytesMax = long / 64
	chat := start(t, options)
	for range 2 {
		_, err := chat.Run(t.Context(), "x")
		equal(t, errors.Is(err, duologue.ErrTooLong), true)
	}
	if _, err := chat.Snapshot(t.Context(), duologue.Part{}); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsNewerThanTheClientIsKept(t *testing.T) {
	chat := start(t, difficult("unknown"))
	stream := chat.Stream(t.Context(), "x")
	var unknown []string
	for event := range stream.Events() {
		patch, isPatch := event.Payload().(*messages.ChatTextPatch)
		switch {
		case event.Payload() == nil:
			unknown = append(unknown, event.Type, string(event.Raw))
		case isPatch:
			contains(t, string(event.Raw), `"novelty":{"deep":[1,2]}`)
			contains(t, string(event.Raw), "SIDEWAYS")
			equal(t, int(patch.GetMode()), 0)
		}
	}
	equal(t, len(unknown), 2)
	equal(t, unknown[0], "example.mood.v9.MoodChanged")
	contains(t, unknown[1], `"mood":"curious"`)
	result, err := stream.Result()
	equal(t, []any{result.Text, err}, []any{"Hello, wörld!", nil})
	entities := history(t, chat)
	equal(t, []bool{entities[0].Payload() != nil, entities[1].Payload() != nil}, []bool{true, false})
	contains(t, strings.Join(chat.Hello().GetCapabilities(), " "), "telepathy")
}

func TestFramesOfOthersReachNobody(t *testing.T) {
	chat := start(t, difficult("leftovers"))
	for range 3 {
		var texts []string
		for event := range chat.Stream(t.Context(), "x").Events() {
			if event.Text() != "" {
				texts = append(texts, event.Text())
			}
		}
		equal(t, texts, []string{"Hello, ", "wörld!"})
	}
}

func TestAFloodOfStandardError(t *testing.T) {
	chat := start(t, difficult("flood"))
	equal(t, run(t, chat, "x").Status, "ok")
	equal(t, len(chat.Stderr()) <= 16*1024, true)
}

func TestTextAmongTheFramesIsAnError(t *testing.T) {
	_, err := start(t, difficult("garbage")).Run(t.Context(), "x")
	equal(t, errors.Is(err, duologue.ErrProtocol), true)
	contains(t, err.Error(), "INFO this is no frame")
	const kindsOfGarbage = 7
	for number := 1; number < kindsOfGarbage; number++ {
		_, err := start(t, difficult(fmt.Sprintf("garbage:%d", number))).Run(t.Context(), "x")
		equal(t, errors.Is(err, duologue.ErrProtocol), true)
	}
}

func TestAStreamThatIsNotReadIsLeftInThePipe(t *testing.T) {
	chat := start(t, difficult("endless"))
	for event := range chat.Stream(t.Context(), "x").Events() {
		if event.Text() != "" {
			break
		}
	}
	for range chat.Stream(t.Context(), "x").Events() {
		waitUntilPaused(chat)
		// A request that waits for its answer gets it, whoever is behind.
		if _, err := chat.Snapshot(t.Context(), duologue.Part{}); err != nil {
			t.Fatal(err)
		}
		break
	}
	if _, err := chat.Snapshot(t.Context(), duologue.Part{}); err != nil {
		t.Fatal(err)
	}
}

func TestAStreamThatIsAwaitedDoesNotWaitForOneThatIsNotRead(t *testing.T) {
	options := difficult("long-first:" + strconv.Itoa(longAnswer))
	options.Queue = true
	chat := start(t, options)
	patches := 0
	for event := range chat.Stream(t.Context(), "x").Events() {
		if event.Text() == "" {
			continue
		}
		if patches++; patches > 1 {
			continue
		}
		var texts []string
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for event := range chat.Stream(ctx, "y").Events() {
			if event.Text() != "" {
				texts = append(texts, event.Text())
			}
		}
		equal(t, texts, []string{"Hello, ", "wörld!"})
	}
	equal(t, patches, longAnswer)
}

func follow(stream *duologue.Stream) chan string {
	ended := make(chan string, 1)
	go func() {
		for range stream.Events() {
		}
		result, _ := stream.Result()
		ended <- result.Status
	}()
	return ended
}

// nextPrompt sends a prompt that waits for the end of a run of the server slow-stop, and has the run end.
func nextPrompt(t *testing.T, chat *duologue.Client) string {
	t.Helper()
	next := make(chan *duologue.Result)
	go func() {
		result, err := chat.Run(t.Context(), "next")
		if err != nil {
			t.Error(err)
		}
		next <- result
	}()
	time.Sleep(10 * time.Millisecond)
	if _, err := chat.Snapshot(t.Context(), duologue.Part{}); err != nil {
		t.Fatal(err)
	}
	if result := <-next; result != nil {
		return result.Text
	}
	return ""
}

func TestTheNextPromptWaitsForARunThatWasStopped(t *testing.T) {
	chat := start(t, difficult("slow-stop"))
	ways := []func(stream *duologue.Stream, cancel func()){
		func(_ *duologue.Stream, cancel func()) { cancel() },
		func(stream *duologue.Stream, _ func()) { stream.Cancel() },
		func(*duologue.Stream, func()) { _, _ = chat.Cancel(t.Context()) },
	}
	for at, stop := range ways {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		before := chat.Ordinal()
		stream := chat.Stream(ctx, "on")
		ended := follow(stream)
		for chat.Ordinal() == before {
			time.Sleep(time.Millisecond)
		}
		stop(stream, cancel)
		equal(t, nextPrompt(t, chat), fmt.Sprintf("prompt %d", 2*at+2))
		equal(t, <-ended, "stopped")
	}
}

func TestACancelBeforeThePromptIsSent(t *testing.T) {
	chat := start(t, difficult("slow-stop"))
	for range chat.Stream(t.Context(), "on").Events() {
		break
	}
	stream := chat.Stream(t.Context(), "y")
	ended := follow(stream)
	time.Sleep(10 * time.Millisecond)
	stream.Cancel()
	equal(t, <-ended, "stopped")
	// As a context that ends while the prompt waits.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	result, err := chat.Run(ctx, "z")
	equal(t, []any{result.Status, errors.Is(err, context.DeadlineExceeded)}, []any{"stopped", true})
	never := chat.Stream(t.Context(), "not yet")
	never.Cancel()
	result, err = never.Result()
	equal(t, []any{result.Status, err}, []any{"stopped", nil})
	equal(t, nextPrompt(t, chat), "prompt 2")
}

func TestAContextThatHasEndedSendsNothing(t *testing.T) {
	chat := start(t, args())
	run(t, chat, "one")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, use := range []func() error{
		func() error { return chat.DropLastTurn(ctx) },
		func() error { return chat.SetTools(ctx) },
		func() error { _, err := chat.Cancel(ctx); return err },
	} {
		equal(t, errors.Is(use(), context.Canceled), true)
	}
	equal(t, len(history(t, chat)), 2)
}

func TestTheResultOfARunThatWasLeftStaysAsItIs(t *testing.T) {
	// The race detector finds that it does not.
	chat := start(t, args(script(t, m{"text": "one", "tools": []m{{"name": "unknown", "arguments": m{}}}}, m{"text": "two"})))
	for range 3 {
		stream := chat.Stream(t.Context(), "x")
		for event := range stream.Events() {
			if _, ok := event.Payload().(*messages.ChatToolCallRequested); ok {
				break
			}
		}
		result, err := stream.Result()
		if err != nil {
			t.Fatal(err)
		}
		for before, at := result.ToolCalls[0], 0; at < 20; at++ {
			equal(t, result.ToolCalls[0], before)
			time.Sleep(time.Millisecond) // The call may be interrupted meanwhile.
		}
	}
}

func TestValuesAreThoseOfTheLastCall(t *testing.T) {
	result := run(t, start(t, difficult("calls")), "x", duologue.IntoSchema(nil, m{"type": "object"}))
	equal(t, len(result.Values), 1)
	equal(t, string(result.Values[0]), `{"call": 2}`)
}

// waitUntilPaused waits until the reader has stopped, because a stream is behind: nothing arrives any more.
func waitUntilPaused(chat *duologue.Client) {
	for before, still := uint64(0), 0; before < 1000 || still < 20; time.Sleep(5 * time.Millisecond) {
		if now := chat.Ordinal(); now != before {
			before, still = now, 0
		} else {
			still++
		}
	}
}

func TestRequestsPastTheLimitOfTheServerAreNotSent(t *testing.T) {
	chat := start(t, args("--max-request-bytes=1000"))
	_, err := chat.Run(t.Context(), strings.Repeat("x", 1000))
	equal(t, errors.Is(err, duologue.ErrTooLong), true)
	equal(t, run(t, chat, "x").Status, "ok")
}

func TestAnEndAtEveryPoint(t *testing.T) {
	for _, scenario := range []string{"die", "die-half"} {
		for number := range linesOfARun + 2 {
			chat, err := duologue.Start(t.Context(), difficult(fmt.Sprintf("%s:%d", scenario, number)))
			for at := 0; err == nil && at < 2; at++ {
				_, err = chat.Run(t.Context(), "x")
			}
			var ended *duologue.ProcessEnded
			if !errors.As(err, &ended) || !errors.Is(err, duologue.ErrProcessEnded) {
				t.Fatalf("%s:%d: %v", scenario, number, err)
			}
			equal(t, ended.Status, 9)
			contains(t, ended.Stderr, "the difficult server has died")
			contains(t, err.Error(), "the difficult server has died")
			if chat != nil {
				_ = chat.Close()
			}
		}
	}
}

func TestAServerThatNeverAnswers(t *testing.T) {
	for _, scenario := range []string{"silent", "mute"} {
		options := difficult(scenario)
		options.StartTimeout = 300 * time.Millisecond
		_, err := duologue.Start(t.Context(), options)
		equal(t, errors.Is(err, duologue.ErrProtocol), true)
		contains(t, err.Error(), "did not begin within")
	}
}

func TestAStartHasTheDeadlineOfItsContext(t *testing.T) {
	for _, scenario := range []string{"silent", "mute"} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := duologue.Start(ctx, difficult(scenario))
		equal(t, []bool{errors.Is(err, context.DeadlineExceeded), errors.Is(err, duologue.ErrProtocol)}, []bool{true, false})
	}
}

// countsAsStopped gives a stream that was cancelled, and whose server goes on with it.
func countsAsStopped(t *testing.T) (*duologue.Client, *duologue.Stream) {
	t.Helper()
	options := difficult("stubborn")
	options.CancelTimeout = 10 * time.Millisecond
	chat := start(t, options)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	stream := chat.Stream(ctx, "x")
	for event := range stream.Events() {
		if event.Text() != "" {
			cancel()
		}
	}
	return chat, stream
}

func TestARunThatCanNotBeStopped(t *testing.T) {
	chat, stream := countsAsStopped(t)
	result, err := stream.Result()
	equal(t, []any{result.Status, errors.Is(err, context.Canceled)}, []any{"stopped", true})
	// The answer of the server counts.
	_, err = chat.Run(t.Context(), "y")
	equal(t, errors.Is(err, duologue.ErrBusy), true)
}

func TestARunThatCountsAsStoppedHoldsUpNoOther(t *testing.T) {
	chat, stream := countsAsStopped(t)
	_, err := stream.Result()
	equal(t, errors.Is(err, context.Canceled), true)
	// It goes on, with more than may wait of a stream.
	for begin := time.Now(); chat.Ordinal() < pausedAt; time.Sleep(time.Millisecond) {
		if time.Since(begin) > patience {
			t.Fatal("nothing is read any more")
		}
	}
	next := chat.Stream(t.Context(), "y")
	for range next.Events() {
	}
	_, err = next.Result()
	equal(t, errors.Is(err, duologue.ErrBusy), true)
}

func TestARunThatCountsAsStoppedStaysStopped(t *testing.T) {
	options := difficult("stubborn")
	options.CancelTimeout = 10 * time.Millisecond
	chat := start(t, options)
	pid, _ := strconv.Atoi(pidOf(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream := chat.Stream(ctx, "x")
	for event := range stream.Events() {
		if event.Text() != "" && ctx.Err() == nil {
			cancel()
			time.Sleep(100 * time.Millisecond)
			_ = syscall.Kill(pid, syscall.SIGKILL)
			_, err := chat.Snapshot(t.Context(), duologue.Part{})
			equal(t, errors.Is(err, duologue.ErrProcessEnded), true)
		}
	}
	result, err := stream.Result()
	equal(t, []any{result.Status, errors.Is(err, context.Canceled)}, []any{"stopped", true})
}

func TestHelloIsChecked(t *testing.T) {
	_, err := duologue.Start(t.Context(), difficult("old"))
	equal(t, errors.Is(err, duologue.ErrVersion) && errors.Is(err, duologue.ErrProtocol), true)
	contains(t, err.Error(), `it is "0.0.1", and this package needs 0.1.0 or later`)
	for scenario, text := range map[string]string{"foreign": "speaks example.other.v1", "no-hello": "does not begin with hello"} {
		_, err = duologue.Start(t.Context(), difficult(scenario))
		equal(t, errors.Is(err, duologue.ErrProtocol), true)
		contains(t, err.Error(), text)
	}
}

func pidOf(t *testing.T) string {
	t.Helper()
	children, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
	if err != nil {
		t.Skip("the system does not list the children of a process")
	}
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, task := range tasks {
		more, _ := os.ReadFile(task)
		children = append(children, more...)
	}
	pids := strings.Fields(string(children))
	if len(pids) == 0 {
		t.Fatal("there is no child")
	}
	return pids[len(pids)-1]
}

func TestClosingGoesAsFarAsItHasTo(t *testing.T) {
	chat := start(t, args())
	pid := pidOf(t)
	_ = chat.Close()
	gone(t, pid)
	_, err := chat.Run(t.Context(), "x")
	equal(t, errors.Is(err, duologue.ErrClosed), true)
	// It hears neither the shutdown, nor the end of its input, nor SIGTERM.
	options := difficult("deaf")
	options.StartTimeout, options.CloseTimeout = 500*time.Millisecond, 50*time.Millisecond
	_, err = duologue.Start(t.Context(), options)
	equal(t, errors.Is(err, duologue.ErrProtocol), true)
}

func TestASecondCloseWaitsForTheEnd(t *testing.T) {
	program := filepath.Join(t.TempDir(), "server")
	text := `#!/bin/sh
echo '{"hello":{"protocol":"pinocchio.chatapp.rpc.v1","capabilities":["server-version=0.1.0"]}}'
read -r enable && echo '{"requestId":"go-1","done":{"status":"ok"}}'
while read -r line; do case "$line" in *shutdown*) exec sleep 0.3;; esac; done
`
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	chat := start(t, duologue.Options{Binary: program})
	pid := pidOf(t)
	go chat.Close()
	for !chat.IsClosing() {
		runtime.Gosched()
	}
	_ = chat.Close()
	if _, err := os.Stat("/proc/" + pid); err == nil {
		t.Error("the process still runs")
	}
}

func TestASignalToTheGroupOfTheProgramDoesNotReachTheProcess(t *testing.T) {
	start(t, args())
	pid, _ := strconv.Atoi(pidOf(t))
	group, err := syscall.Getpgid(pid)
	equal(t, []any{group == syscall.Getpgrp(), err}, []any{false, nil})
}

func TestClosingStopsWhatRuns(t *testing.T) {
	chat := start(t, args("--echo-delay-ms=60000"))
	stream := chat.Stream(t.Context(), "x")
	for event := range stream.Events() {
		if _, ok := event.Payload().(*messages.ChatProviderCallStarted); ok {
			_ = chat.Close()
		}
	}
	result, err := stream.Result()
	equal(t, []any{result.Status, err}, []any{"stopped", nil})
}

func TestClosingStopsARunWhoseStreamIsBehind(t *testing.T) {
	chat := start(t, difficult("endless"))
	stream := chat.Stream(t.Context(), "x")
	isClosed := false
	for range stream.Events() {
		if !isClosed {
			isClosed = true
			waitUntilPaused(chat)
			_ = chat.Close()
		}
	}
	result, err := stream.Result()
	equal(t, []any{result.Status, err}, []any{"stopped", nil})
}

func TestARunThatClosingDoesNotStopIsClosed(t *testing.T) {
	chat := start(t, difficult("stubborn"))
	stream := chat.Stream(t.Context(), "x")
	for event := range stream.Events() {
		if event.Text() != "" {
			_ = chat.Close()
		}
	}
	_, err := stream.Result()
	equal(t, []bool{errors.Is(err, duologue.ErrClosed), errors.Is(err, duologue.ErrProcessEnded)}, []bool{true, false})
}

func TestNothingIsShownTwiceAfterAReconnect(t *testing.T) {
	for _, fields := range []string{"full", "lean"} {
		t.Run(fields, func(t *testing.T) { crashAndGoOn(t, fields) })
	}
}

func crashAndGoOn(t *testing.T, fields string) {
	options := args("--echo-delay-ms=5", "--patch-fields="+fields)
	options.Store, options.Session = filepath.Join(t.TempDir(), "chat.db"), "ada"
	chat := start(t, options)
	pid, _ := strconv.Atoi(pidOf(t))
	var shown []string
	stream := chat.Stream(t.Context(), strings.Repeat("word ", 1000))
	for event := range stream.Events() {
		if event.Text() != "" {
			shown = append(shown, event.Text())
		}
		if len(shown) == 20 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	_, err := stream.Result()
	var ended *duologue.ProcessEnded
	equal(t, errors.As(err, &ended) && ended.How == "signal: killed", true)
	_, err = chat.Run(t.Context(), "next")
	equal(t, errors.Is(err, duologue.ErrProcessEnded), true)
	changes, err := chat.Reconnect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	entities := history(t, chat)
	whole := entities[len(entities)-1]
	text := strings.Join(shown, "")
	for _, change := range changes {
		equal(t, member(change.Entity, "role") == "user", false)
		if change.Entity.ID == whole.ID {
			text += change.Text
		}
	}
	equal(t, text, member(whole, "text"))
	equal(t, member(whole, "status"), "stopped")
	equal(t, run(t, chat, "hello").Status, "ok")
}

// dying starts a client whose process ends in the first answer, after the first of its patches, which is event 4; become
// chooses what the next process does.
func dying(t *testing.T) (chat *duologue.Client, become func(scenario string)) {
	return stored(t, "die:7")
}

func stored(t *testing.T, scenario string) (chat *duologue.Client, become func(scenario string)) {
	options := difficult(scenario)
	options.Store, options.Session = "chat.db", "ada"
	return start(t, options), func(scenario string) { options.Env[0] = "DIFFICULT=" + scenario }
}

func textsOf(changes []duologue.Change) []string {
	var texts []string
	for _, change := range changes {
		texts = append(texts, change.Text)
	}
	return texts
}

func TestAReconnectGivesTheTextOfARunThatShowedNone(t *testing.T) {
	chat, become := dying(t)
	_, err := chat.Run(t.Context(), "x")
	equal(t, errors.Is(err, duologue.ErrProcessEnded), true)
	become("resumed")
	changes, err := chat.Reconnect(t.Context())
	equal(t, []any{textsOf(changes), err}, []any{[]string{"Hello, since 4"}, nil})
}

func TestAReconnectThatFailsLosesNothing(t *testing.T) {
	chat, become := dying(t)
	for range chat.Stream(t.Context(), "x").Events() {
	}
	// Each in turn: it can't read the session, ends before it has said all of itself, and does not speak the protocol.
	for scenario, want := range map[string]error{
		"unreadable": duologue.ErrStore, "die:2": duologue.ErrProcessEnded, "foreign": duologue.ErrProtocol,
	} {
		become(scenario)
		_, err := chat.Reconnect(t.Context())
		equal(t, errors.Is(err, want), true)
		_, err = chat.Run(t.Context(), "x")
		equal(t, err == nil, false)
	}
	become("silent")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := chat.Reconnect(ctx)
	equal(t, errors.Is(err, context.DeadlineExceeded), true)
	// The context was that of one attempt.
	_, err = chat.Run(t.Context(), "x")
	equal(t, []bool{errors.Is(err, duologue.ErrProcessEnded), errors.Is(err, context.DeadlineExceeded)}, []bool{true, false})
	become("resumed")
	changes, err := chat.Reconnect(t.Context())
	equal(t, []any{textsOf(changes), err}, []any{[]string{"since 4"}, nil})
	equal(t, run(t, chat, "x").Text, "Hello, wörld!")
}

func TestAReaderThatIsLateDoesNothingToTheNextProcess(t *testing.T) {
	options := difficult("normal")
	options.Store, options.Session = "chat.db", "ada"
	chat := start(t, options)
	acceptLate, endLate := chat.Reader()
	_ = chat.Close()
	options.Env[0] = "DIFFICULT=mute"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := make(chan error)
	go func() {
		_, err := chat.Reconnect(ctx)
		started <- err
	}()
	for chat.Hello() != nil {
		time.Sleep(time.Millisecond)
	}
	endLate()
	equal(t, acceptLate(`{"uiEvent":{"ordinal":"1000"}}`), nil)
	equal(t, chat.Ordinal(), 0)
	accept, _ := chat.Reader()
	equal(t, accept(`{"hello":{"protocol":"pinocchio.chatapp.rpc.v1","capabilities":["server-version=0.1.0"]}}`), nil)
	cancel()
	equal(t, errors.Is(<-started, context.Canceled), true)
	options.Env[0] = "DIFFICULT=normal"
	if _, err := chat.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	endLate()
	equal(t, run(t, chat, "x").Text, "Hello, wörld!")
}

func TestReconnectsAtOnceAreOne(t *testing.T) {
	chat, become := dying(t)
	_, err := chat.Run(t.Context(), "x")
	equal(t, errors.Is(err, duologue.ErrProcessEnded), true)
	become("resumed")
	type outcome struct {
		changes []duologue.Change
		err     error
	}
	outcomes := make(chan outcome)
	for range 3 {
		go func() {
			_ = chat.Stderr()
			changes, err := chat.Reconnect(t.Context())
			outcomes <- outcome{changes, err}
		}()
	}
	given := 0
	for range 3 {
		got := <-outcomes
		if got.err == nil {
			equal(t, textsOf(got.changes), []string{"Hello, since 4"})
			given++
		} else { // It came when that of the others was over.
			contains(t, got.err.Error(), "the process runs")
		}
	}
	equal(t, given > 0, true)
	equal(t, run(t, chat, "x").Text, "Hello, wörld!")
}

func TestClosingDuringAReconnectLeavesNothingRunning(t *testing.T) {
	folder := t.TempDir()
	program, pids := filepath.Join(folder, "server"), filepath.Join(folder, "pids")
	// The first process is a while in ending: at its prompt it writes what is no frame, and hears nothing any more.
	text := `#!/bin/sh
echo $$ >> "$PIDS"
[ "$DIFFICULT" = deaf ] || exec "$SERVER"
trap "" TERM
echo '{"hello":{"protocol":"pinocchio.chatapp.rpc.v1","capabilities":["server-version=0.1.0"]}}'
read -r enable && echo '{"requestId":"go-1","done":{"status":"ok"}}'
read -r submit && echo no frame
exec sleep 60
`
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	options := duologue.Options{Binary: program, Store: "chat.db", Session: "ada"}
	options.Env = []string{"DIFFICULT=deaf", "PIDS=" + pids, "SERVER=" + difficultServer}
	chat := start(t, options)
	_, err := chat.Run(t.Context(), "x")
	equal(t, errors.Is(err, duologue.ErrProtocol), true)
	options.Env[0] = "DIFFICULT=resumed"
	reconnected := make(chan error)
	go func() {
		_, err := chat.Reconnect(t.Context())
		reconnected <- err
	}()
	for !chat.IsReconnecting() {
		runtime.Gosched()
	}
	_ = chat.Close()
	equal(t, errors.Is(<-reconnected, duologue.ErrClosed), true)
	_, err = chat.Run(t.Context(), "y")
	equal(t, errors.Is(err, duologue.ErrClosed), true)
	started, _ := os.ReadFile(pids)
	for _, pid := range strings.Fields(string(started)) {
		gone(t, pid)
	}
}

func TestAReconnectGoesOnWhereTheContextOfAnotherHasEnded(t *testing.T) {
	chat, become := dying(t)
	_, err := chat.Run(t.Context(), "x")
	equal(t, errors.Is(err, duologue.ErrProcessEnded), true)
	become("mute")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first, second := make(chan error), make(chan error)
	go func() {
		_, err := chat.Reconnect(ctx)
		first <- err
	}()
	for chat.Hello() != nil {
		time.Sleep(time.Millisecond)
	}
	become("resumed")
	var changes []duologue.Change
	go func() {
		changes, err = chat.Reconnect(t.Context())
		second <- err
	}()
	ended, cancelEnded := context.WithCancel(t.Context())
	cancelEnded()
	_, err = chat.Reconnect(ended)
	equal(t, errors.Is(err, context.Canceled), true)
	cancel()
	equal(t, errors.Is(<-first, context.Canceled), true)
	equal(t, []any{<-second, textsOf(changes)}, []any{nil, []string{"Hello, since 4"}})
}

func TestAPromptDuringAReconnectThatFails(t *testing.T) {
	options := difficult("die:7")
	options.Store, options.Session, options.StartTimeout = "chat.db", "ada", 3*time.Second
	chat := start(t, options)
	_, err := chat.Run(t.Context(), "x")
	equal(t, errors.Is(err, duologue.ErrProcessEnded), true)
	options.Env[0] = "DIFFICULT=silent"
	reconnected := make(chan error)
	go func() {
		_, err := chat.Reconnect(t.Context())
		reconnected <- err
	}()
	for chat.InFlight() == 0 {
		time.Sleep(time.Millisecond)
	}
	_, err = chat.Run(t.Context(), "y")
	equal(t, errors.Is(err, duologue.ErrProcessEnded), true)
	equal(t, errors.Is(<-reconnected, duologue.ErrProtocol), true)
}

func TestAStoreThatTheEnvironmentNames(t *testing.T) {
	t.Setenv("DUOLOGUE_STORE", "")
	variable := "DUOLOGUE_STORE=" + filepath.Join(t.TempDir(), "chat.db")
	for _, env := range [][]string{{variable}, nil} {
		if env == nil {
			_, value, _ := strings.Cut(variable, "=")
			t.Setenv("DUOLOGUE_STORE", value)
		}
		chat := start(t, duologue.Options{Session: "ada", Env: env})
		run(t, chat, "one")
		goesOn(t, chat)
		_ = chat.Close()
	}
	_, err := start(t, duologue.Options{Env: []string{"DUOLOGUE_STORE="}}).Fork(t.Context(), 0)
	contains(t, err.Error(), "only a conversation with a store")
}

// goesOn checks that a copy of a conversation, and another process, have what it has.
func goesOn(t *testing.T, chat *duologue.Client) {
	t.Helper()
	seen := len(history(t, chat))
	copied, err := chat.Fork(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	crash(t, chat)
	if _, err := chat.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, []int{len(history(t, copied)), len(history(t, chat))}, []int{seen, seen})
}

func TestAProgramThatChangesItsFolder(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "inner"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(os.Getenv("DUOLOGUE_BIN"), filepath.Join(folder, "program")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", "inner"} {
		t.Chdir(folder)
		chat := start(t, duologue.Options{Binary: "./program", Store: "chat.db", Session: "ada", Dir: dir})
		run(t, chat, "one")
		t.Chdir("/")
		goesOn(t, chat)
		_ = chat.Close()
		if _, err := os.Stat(filepath.Join(folder, dir, "chat.db")); err != nil {
			t.Error(err)
		}
	}
}

func TestARefusedPromptDoesNotForgetWhatWasShown(t *testing.T) {
	chat, become := stored(t, "die-asked")
	var texts []string
	for event := range chat.Stream(t.Context(), "x").Events() {
		if event.Text() == "" {
			continue
		}
		texts = append(texts, event.Text())
		_, err := chat.Run(t.Context(), "y")
		equal(t, errors.Is(err, duologue.ErrBusy), true)
		_, err = chat.Snapshot(t.Context(), duologue.Part{})
		equal(t, errors.Is(err, duologue.ErrProcessEnded), true)
	}
	become("resumed")
	changes, err := chat.Reconnect(t.Context())
	equal(t, []any{append(texts, textsOf(changes)...), err}, []any{[]string{"Hello, ", "since 4"}, nil})
}

func TestTheErrorOfACopyIsThatOfWhatFailed(t *testing.T) {
	program := filepath.Join(t.TempDir(), "server")
	text := "#!/bin/sh\n[ \"$1\" = rpc ] && exec " + difficultServer + "\nexec sleep 60\n"
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	chat := start(t, duologue.Options{Binary: program, Store: "chat.db", Session: "ada"})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := chat.Fork(ctx, 0)
	equal(t, []bool{errors.Is(err, context.DeadlineExceeded), errors.Is(err, duologue.ErrStore)}, []bool{true, false})
	_ = os.Remove(program)
	_, err = chat.Fork(t.Context(), 0)
	equal(t, errors.Is(err, duologue.ErrNotInstalled), true)
}

func TestOnlyAStoredSessionGoesOn(t *testing.T) {
	if _, err := start(t, args()).Reconnect(t.Context()); err == nil {
		t.Error("there is nothing to go on with")
	}
}

// TestHold is the program that the next test kills.
func TestHold(t *testing.T) {
	if os.Getenv("DUOLOGUE_TEST_HOLD") == "" {
		t.Skip("only as a program of its own")
	}
	chat, err := duologue.Start(context.Background(), args("--echo-delay-ms=60000"))
	if err != nil {
		t.Fatal(err)
	}
	for event := range chat.Stream(context.Background(), "x").Events() {
		if _, ok := event.Payload().(*messages.ChatProviderCallStarted); ok {
			fmt.Println("pid", pidOf(t))
		}
	}
}

func TestTheProcessEndsWithAProgramThatIsKilled(t *testing.T) {
	program := exec.Command(os.Args[0], "-test.run=^TestHold$", "-test.v")
	program.Env = append(os.Environ(), "DUOLOGUE_TEST_HOLD=1")
	stdout, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	var pid string
	for lines := bufio.NewScanner(stdout); pid == "" && lines.Scan(); {
		pid, _ = strings.CutPrefix(lines.Text(), "pid ")
		if pid == lines.Text() {
			pid = ""
		}
	}
	_ = program.Process.Kill()
	_ = program.Wait()
	gone(t, pid)
}
