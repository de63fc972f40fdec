package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"
)

func prompt(s *stage) {
	agent := s.start(echo)
	it := agent.open(s.folder)
	same(agent.say(it, "hello"), "Turn 1. You said: hello")
	matches(agent.say(it, "again"), `^Turn 2\. You said: again`)
	same(agent.prompts(it), "")
	titles, ids := []string{}, map[string]bool{}
	for _, update := range agent.since(it, 0) {
		if update.SessionInfoUpdate != nil {
			titles = append(titles, *update.SessionInfoUpdate.Title)
		}
	}
	for _, chunk := range agent.answers(it, 0) {
		expect(chunk.MessageId != nil, "a message id")
		ids[*chunk.MessageId] = true
	}
	same(titles, []string{"hello"})
	same(len(ids), 2)
}

func thought(s *stage) {
	agent := s.start(append(echo[:2:2], "--echo-reasoning"))
	it := agent.open(s.folder)
	agent.say(it, "hello")
	text, id := "", ""
	for _, update := range agent.since(it, 0) {
		if chunk := update.AgentThoughtChunk; chunk != nil {
			text, id = text+chunk.Content.Text.Text, *chunk.MessageId
		}
		expect(update.AgentMessageChunk == nil || text != "", "thought first")
	}
	contains(text, "This is turn 1")
	expect(id != *agent.answers(it, 0)[0].MessageId, "a message of its own")
}

func allowed(s *stage) {
	agent := s.start(tools())
	it := agent.open(s.folder)
	contains(agent.say(it, "What time is it?"), "It is noon in Berlin")
	// The SDK asks all questions at a time.
	byCity := map[any]acp.RequestPermissionRequest{}
	for _, question := range agent.questions {
		byCity[question.ToolCall.RawInput.(map[string]any)["city"]] = question
	}
	first, kinds := byCity["Berlin"], []string{}
	same(len(byCity), 2)
	for _, option := range first.Options {
		kinds = append(kinds, string(option.Kind))
	}
	same(kinds, []string{"allow_once", "allow_always", "reject_once", "reject_always"})
	same(*first.ToolCall.Title, `get_time: {"city":"Berlin"}`)
	contains(first.ToolCall.Content[0].Content.Content.Text.Text, "Berlin")
	same(agent.calls(it, 0), []string{"get_time pending in_progress completed", "get_time pending in_progress failed"})
	same(agent.results(it), []string{"12:00"})
}

func always(s *stage) {
	agent := s.start(tools())
	for _, it := range [][2]string{{"allow_always", "completed"}, {"reject_always", "failed"}} {
		decision, state := it[0], it[1]
		it := agent.open(s.folder)
		agent.decide = func(context.Context, acp.ToolCallUpdate) string { return decision }
		agent.say(it, "What time is it?")
		asked, before := len(agent.questions), agent.seen()
		agent.say(it, "And now?")
		same(len(agent.questions), asked)
		matches(agent.calls(it, before)[0], state+"$")
	}
}

func refused(s *stage) {
	agent := s.start(tools())
	it := agent.open(s.folder)
	agent.decide = func(context.Context, acp.ToolCallUpdate) string { return "reject_once" }
	contains(agent.say(it, "What time is it?"), "It is noon")
	same(agent.calls(it, 0), []string{"get_time pending failed", "get_time pending failed"})
	agent.decide = func(context.Context, acp.ToolCallUpdate) string { return "allow_once" }
	agent.say(it, "And now?")
	same(len(agent.questions), 4)
}

func dismissed(s *stage) {
	agent := s.start(tools())
	it := agent.open(s.folder)
	// The first question is closed by the person, and the second one by the editor, as it is withdrawn.
	agent.decide = func(ctx context.Context, call acp.ToolCallUpdate) string {
		if call.RawInput.(map[string]any)["city"] == "Berlin" {
			return ""
		}
		return agent.untilWithdrawn(ctx, call)
	}
	same(<-agent.begin(background, it, "What time is it?"), "cancelled")
	for _, call := range agent.calls(it, 0) {
		matches(call, "failed$")
	}
	agent.decide = func(context.Context, acp.ToolCallUpdate) string { return "allow_once" }
	contains(agent.say(it, "And now?"), "It is noon")
}

func clientServers(s *stage) {
	configured := []string{"--mcp", "python3 " + fixtures + "/server.py configured_tool", "--approval", "auto"}
	agent := s.start(append(script("two_tools.jsonl"), configured...))
	with, without := agent.open(s.folder, ownServer("client_tool")), agent.open(s.folder)
	contains(agent.say(with, "Call both."), "Done")
	contains(agent.say(without, "Call both."), "Done")
	first := "configured_tool pending in_progress completed"
	same(agent.calls(with, 0), []string{first, "client_tool pending in_progress completed"})
	same(agent.calls(without, 0)[0], first)
	matches(agent.calls(without, 0)[1], "^client_tool.*failed$")
	same(len(agent.questions), 0)
}

func cancel(s *stage) {
	agent := s.start(slow)
	it := agent.open(s.folder)
	agent.cancel(it)
	cancelled(agent, it, func() bool { return true })
	before := agent.seen()
	cancelled(agent, it, func() bool { return len(agent.answers(it, before)) > 2 })
	said := agent.text(it)
	agent.cancel(it)
	contains(agent.say(it, "hello"), "hello")
	expect(strings.HasPrefix(agent.text(it), said) && len(said) < len(longPrompt), "%s", said)
	// While questions are open, which are withdrawn, and while a tool works.
	asking := s.start(tools())
	it = asking.open(s.folder)
	asking.decide = asking.untilWithdrawn
	cancelled(asking, it, func() bool { return len(asking.questions) == 2 })
	asking.until(func() bool { return asking.withdrawn == 2 })
	waits := s.start(append(script("wait.jsonl"), "--approval", "auto"))
	it = waits.open(s.folder, ownServer("wait"))
	cancelled(waits, it, waits.isAtWork(it))
	matches(waits.calls(it, 0)[0], "failed$")
}

func waiting(s *stage) {
	agent := s.start(slow)
	it := agent.open(s.folder)
	for _, end := range []<-chan string{agent.begin(background, it, "one"), agent.begin(background, it, "two"), agent.begin(background, it, "three")} {
		same(<-end, "end_turn")
	}
	matches(agent.text(it), `^Turn 1\. You said: one.*Turn 2\. You said: two.*Turn 3\. You said: three`)
	both := []<-chan string{agent.begin(background, it, longPrompt), agent.begin(background, it, "four")}
	agent.until(func() bool { return strings.Contains(agent.text(it), "word") })
	agent.cancel(it)
	same([]string{<-both[0], <-both[1]}, []string{"cancelled", "cancelled"})
	contains(agent.say(it, "five"), "You said: five")
}

func killed(s *stage) {
	first := s.start(slow)
	it := first.open(s.folder)
	live := first.say(it, "hello")
	id := *first.answers(it, 0)[0].MessageId
	lost := first.begin(background, it, longPrompt)
	first.until(func() bool { return strings.Contains(first.text(it), "word word") })
	first.kill()
	<-lost
	second := s.start(slow)
	loaded := must(second.load(it, s.folder))
	same(current(loaded.ConfigOptions, "mode"), "ask")
	same(second.prompts(it), "hello"+longPrompt)
	same(*second.answers(it, 0)[0].MessageId, id)
	expect(strings.HasPrefix(second.text(it), live+"Turn 2. You said: "), "%s", second.text(it))
	matches(second.say(it, "go on"), `^Turn 3\.`)
}

func resume(s *stage) {
	first := s.start(echo)
	it := first.open(s.folder)
	first.say(it, "hello")
	same(first.end(), 0)
	second := s.start(echo)
	resumed := must(second.ResumeSession(background, acp.ResumeSessionRequest{SessionId: it, Cwd: s.folder}))
	same(current(resumed.ConfigOptions, "mode"), "ask")
	said := second.say(it, "go on")
	matches(said, `^Turn 2\..*hello`)
	same([]string{second.text(it), second.prompts(it)}, []string{said, ""})
}

func list(s *stage) {
	agent := s.start(echo)
	here, there := s.folder+"/here", s.folder+"/there"
	ids := []acp.SessionId{}
	for _, it := range [][2]string{{here, "first"}, {there, "second"}, {here, "third"}} {
		os.MkdirAll(it[0], 0o777)
		id := agent.open(it[0])
		ids = append([]acp.SessionId{id}, ids...)
		agent.say(id, it[1])
	}
	found, titles := []acp.SessionId{}, []string{}
	for _, it := range must(agent.ListSessions(background, acp.ListSessionsRequest{})).Sessions {
		found = append(found, it.SessionId)
	}
	same(found, ids)
	for _, it := range must(agent.ListSessions(background, acp.ListSessionsRequest{Cwd: &here})).Sessions {
		titles = append(titles, *it.Title)
		same(it.Cwd, here)
		expect(must(time.Parse(time.RFC3339, *it.UpdatedAt)).Year() > 2020, "%s", *it.UpdatedAt)
	}
	same(titles, []string{"third", "first"})
}

func delete_(s *stage) {
	agent := s.start(echo)
	it := agent.open(s.folder)
	agent.say(it, "hello")
	for range 2 {
		must(agent.request("session/delete", map[string]any{"sessionId": it}))
	}
	same(len(must(agent.ListSessions(background, acp.ListSessionsRequest{})).Sessions), 0)
	fails(agent.load(it, s.folder))(-32002)
}

func close_(s *stage) {
	agent := s.start(slow)
	it := agent.open(s.folder)
	end := agent.begin(background, it, longPrompt)
	agent.until(func() bool { return strings.Contains(agent.text(it), "word") })
	must(agent.CloseSession(background, acp.CloseSessionRequest{SessionId: it}))
	same(<-end, "cancelled")
	fails(agent.Prompt(background, acp.PromptRequest{SessionId: it, Prompt: []acp.ContentBlock{acp.TextBlock("hello")}}))(-32002)
	must(agent.load(it, s.folder))
	matches(agent.say(it, "hello"), `^Turn 2\.`)
}

func twoSessions(s *stage) {
	agent := s.start(slow)
	one, two := agent.open(s.folder), agent.open(s.folder)
	end := agent.begin(background, one, longPrompt)
	agent.until(func() bool { return agent.text(one) != "" })
	same(agent.say(two, "hello to the other"), "Turn 1. You said: hello to the other")
	same(len(end), 0)
	agent.cancel(one)
	same(<-end, "cancelled")
	matches(agent.say(two, "still there?"), `^Turn 2\.`)
}

func twoFolders(s *stage) {
	agent := s.start(append(script("two_tools.jsonl"), "--approval", "auto"))
	for _, name := range []string{"here", "there"} {
		path := s.folder + "/" + name
		expect(os.Mkdir(path, 0o777) == nil, "a folder")
		expect(os.WriteFile(path+"/own.py", must(os.ReadFile(fixtures+"/server.py")), 0o666) == nil, "a server")
		it := agent.open(path, server("client_tool", "own.py"))
		agent.say(it, "Where are you?")
		same(agent.results(it), []string{"client_tool in " + path})
	}
}

func image(s *stage) {
	agent := s.start(echo)
	expect(agent.initialized.AgentCapabilities.PromptCapabilities.Image, "images")
	it := agent.open(s.folder)
	picture := acp.ImageBlock(png, "image/png")
	contains(agent.ask(it, acp.TextBlock("look"), picture), "image/png, 1x1, 70 bytes")
	contains(agent.ask(it, picture), "image/png")
}

func resource(s *stage) {
	agent := s.start(echo)
	expect(agent.initialized.AgentCapabilities.PromptCapabilities.EmbeddedContext, "embedded context")
	it := agent.open(s.folder)
	plain, picture := "text/plain", "image/png"
	text := acp.EmbeddedResourceResource{TextResourceContents: &acp.TextResourceContents{Uri: "file:///nowhere/a.txt", Text: "some text", MimeType: &plain}}
	contains(agent.ask(it, acp.TextBlock("Read "), acp.ResourceBlock(text)), "Attached: a.txt (text/plain, 9 bytes)")
	blob := acp.EmbeddedResourceResource{BlobResourceContents: &acp.BlobResourceContents{Uri: "file:///nowhere/b.png", Blob: png, MimeType: &picture}}
	contains(agent.ask(it, acp.TextBlock("Read "), acp.ResourceBlock(blob)), "Attached: b.png (image/png, 1x1, 70 bytes)")
}

func link(s *stage) {
	path := s.folder + "/notes.txt"
	expect(os.WriteFile(path, []byte("on disk\n"), 0o666) == nil, "a file")
	blocks := []acp.ContentBlock{
		acp.TextBlock("Read "), acp.ResourceLinkBlock("notes.txt", "file://"+path), acp.ResourceLinkBlock("lost.txt", "file://"+s.folder+"/lost.txt"),
	}
	plain := s.start(echo)
	said := plain.ask(plain.open(s.folder), blocks...)
	contains(said, "notes.txt (text/plain, 8 bytes)")
	expect(strings.Contains(said, "lost.txt") && !strings.Contains(said, "Attached: lost.txt"), "%s", said)
	editor := s.startWith(echo, true)
	editor.buffer = func(path string) string {
		if strings.HasSuffix(path, "notes.txt") {
			return "not saved yet"
		}
		return ""
	}
	contains(editor.ask(editor.open(s.folder), blocks...), "notes.txt (text/plain, 13 bytes)")
	expect(slices.Contains(editor.reads, path), "%v", editor.reads)
}

func errors_(s *stage) {
	agent := s.start(echo)
	it := agent.open(s.folder)
	hello := []acp.ContentBlock{acp.TextBlock("hello")}
	refused := fails(agent.Prompt(background, acp.PromptRequest{SessionId: "no such session", Prompt: hello}))(-32002)
	contains(refused.Data.(map[string]any)["details"].(string), "no such session")
	fails(agent.load("nor this", s.folder))(-32002)
	fails(agent.request("session/prompt", map[string]any{"sessionId": it}))(-32602)
	fails(agent.request("session/prompt", map[string]any{"prompt": hello}))(-32602)
	fails(agent.Prompt(background, acp.PromptRequest{SessionId: it, Prompt: []acp.ContentBlock{acp.TextBlock("  \n")}}))(-32602)
	fails(agent.NewSession(background, acp.NewSessionRequest{Cwd: "relative", McpServers: []acp.McpServer{}}))(-32602)
	fails(set(agent, it, "mode", "yolo"))(-32602)
	fails(setMode(agent, it, "yolo"))(-32602)
	fails(agent.request("session/no_such_method", map[string]any{}))(-32601)
	fails(agent.CallExtension(background, "_vendor/method", map[string]any{}))(-32601)
	expect(agent.NotifyExtension(background, "_vendor/notification", map[string]any{}) == nil, "notified")
	matches(agent.say(it, "hello"), `^Turn 1\.`)
}

func provider(s *stage) {
	key := "key-that-nobody-sees"
	nowhere := []string{"--engine", "openai", "--base-url", "http://127.0.0.1:1/v1", "--model", "any", "--retries", "0"}
	agent := s.startWith(nowhere, false, "DUOLOGUE_API_KEY="+key)
	it := agent.open(s.folder)
	hello := []acp.ContentBlock{acp.TextBlock("hello")}
	for range 2 {
		refused := fails(agent.Prompt(background, acp.PromptRequest{SessionId: it, Prompt: hello}))(-32603)
		same(len(refused.Data.(map[string]any)), 1)
		expect(!strings.Contains(refused.Error(), key), "%v", refused)
	}
	keyless := s.start([]string{"--engine", "anthropic"})
	fails(keyless.Prompt(background, acp.PromptRequest{SessionId: keyless.open(s.folder), Prompt: hello}))(-32603)
}

func cancelRequest(s *stage) {
	agent := s.start(slow)
	it := agent.open(s.folder)
	// The SDK numbers requests from 1: initialize, session/new, and these.
	ends := []<-chan string{}
	for _, text := range []string{longPrompt, longPrompt, "hello"} {
		ends = append(ends, agent.begin(background, it, text))
	}
	agent.until(func() bool { return strings.Contains(agent.text(it), "word") })
	for _, id := range []int{4, 3} {
		agent.notify("$/cancel_request", map[string]any{"requestId": id})
	}
	for _, end := range ends[:2] {
		matches(<-end, "^cancelled$|-32800")
	}
	same(<-ends[2], "end_turn")
	contains(agent.text(it), "You said: hello")
	// Its own way is session/cancel before the notification, and no wait for the answer.
	ctx, stop := context.WithCancel(background)
	ended := agent.begin(ctx, it, longPrompt)
	stop()
	contains(<-ended, "-32800")
	contains(agent.say(it, "and on"), "You said: and on")
}

func options(s *stage) {
	agent := s.start(tools())
	it := agent.open(s.folder)
	for _, option := range [][2]string{{"thought_level", "high"}, {"mode", "auto"}} {
		changed := must(set(agent, it, option[0], option[1]))
		same(current(changed.ConfigOptions, acp.SessionConfigId(option[0])), option[1])
	}
	agent.say(it, "What time is it?")
	same([]int{len(agent.questions), len(agent.results(it))}, []int{0, 1})
	must(setMode(agent, it, "deny"))
	agent.say(it, "And now?")
	same(len(agent.results(it)), 1)
	agent.say(agent.open(s.folder), "And here?")
	same(len(agent.questions), 2)
	same(agent.end(), 0)
	loaded := must(s.start(tools()).load(it, s.folder))
	same([]string{current(loaded.ConfigOptions, "thought_level"), current(loaded.ConfigOptions, "mode")}, []string{"high", "deny"})
}

func long(s *stage) {
	var text strings.Builder
	for n := range 20_000 {
		fmt.Fprintf(&text, "%d \"quoted\" \\ \t \U0001F600\n", n)
	}
	path := s.folder + "/answer.txt"
	expect(os.WriteFile(path, []byte(text.String()), 0o666) == nil, "a file")
	agent := s.start(append(echo[:2:2], "--echo-answer", path))
	it := agent.open(s.folder)
	expect(agent.say(it, "Tell me everything.") == text.String(), "all text arrives")
	must(agent.CloseSession(background, acp.CloseSessionRequest{SessionId: it}))
	before := agent.seen()
	must(agent.load(it, s.folder))
	expect(agent.textFrom(it, before) == text.String(), "and again")
}

func end(s *stage) {
	agent := s.start(append(script("wait.jsonl"), "--approval", "auto"))
	it := agent.open(s.folder, ownServer("wait"))
	ended := agent.begin(background, it, "Wait.")
	agent.until(agent.isAtWork(it))
	same(agent.end(), 0)
	same(<-ended, "cancelled")
	pids := strings.Fields(string(must(os.ReadFile(s.folder + "/servers.pid"))))
	expect(len(pids) == 1 && isGone(pids[0]), "still there: %v", pids)
}
