package duologue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/netip"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	duologue "duologue/clients/go"
	"duologue/clients/go/messages"
)

type m = map[string]any

func calls(arguments any, names ...string) []any {
	var tools []any
	for _, name := range names {
		tools = append(tools, m{"name": name, "arguments": arguments})
	}
	return []any{m{"text": "Let me look.", "tools": tools}, m{"text": "It is noon."}}
}

var berlin = calls(m{"city": "Berlin"}, "get_time")

type city struct {
	City string `json:"city"`
}

func tool(name string, run func(ctx context.Context, args city) (any, error)) duologue.Tool {
	return duologue.NewTool(name, "", run)
}

func TestARunHasAResult(t *testing.T) {
	chat := start(t, args("--echo-reasoning"))
	result := run(t, chat, "hello")
	equal(t, []string{result.Status, result.Text}, []string{"ok", "Turn 1. You said: hello"})
	equal(t, result.Reasoning, "This is turn 1. I repeat what I was told.")
	equal(t, result.Usage.GetUncountedCalls(), 1)
}

func TestAStreamHasTypedEventsAndEndsAtItsDone(t *testing.T) {
	chat := start(t, args())
	stream := chat.Stream(t.Context(), "hello")
	var events []*duologue.Event
	var text strings.Builder
	for event := range stream.Events() {
		events = append(events, event)
		if patch, ok := event.Payload().(*messages.ChatTextPatch); ok {
			text.WriteString(patch.GetText())
		}
		equal(t, event.RequestID, stream.RequestID())
		equal(t, event.Ordinal > 0, true)
	}
	equal(t, text.String(), "Turn 1. You said: hello")
	if _, ok := events[0].Payload().(*messages.ChatUserMessageAccepted); !ok {
		t.Errorf("the first is a %s", events[0].Type)
	}
	if _, ok := events[len(events)-1].Payload().(*messages.ChatRunFinished); !ok {
		t.Errorf("the last is a %s", events[len(events)-1].Type)
	}
	result, err := stream.Result()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, result.Text, "Turn 1. You said: hello")
}

func TestEventsOfTheEnvironmentAreNotFiltered(t *testing.T) {
	t.Setenv("DUOLOGUE_EVENTS", "ChatRun*")
	t.Setenv("DUOLOGUE_PATCH_MODE", "snapshot")
	get := tool("get_time", func(context.Context, city) (any, error) { return "12:00", nil })
	chat := start(t, duologue.Options{Args: []string{script(t, berlin...)}, Tools: []duologue.Tool{get}})
	result := run(t, chat, "What time is it?")
	equal(t, []string{result.Text, result.ToolCalls[0].Status}, []string{"It is noon.", "success"})
	texts := ""
	for event := range start(t, args("--echo-delay-ms=1")).Stream(t.Context(), "hello").Events() {
		texts += event.Text()
	}
	equal(t, texts, "Turn 1. You said: hello")
}

func TestRequestsInFlightGetTheirOwnFrames(t *testing.T) {
	chat := start(t, duologue.Options{Queue: true, Args: []string{"--echo-delay-ms=1"}})
	second := make(chan string, 1)
	var text string
	for event := range chat.Stream(t.Context(), "one").Events() {
		if event.Text() == "" {
			continue
		}
		if text == "" {
			go func() {
				result, _ := chat.Run(context.Background(), "two")
				second <- result.Text
			}()
		}
		text += event.Text()
		snapshot, err := chat.Snapshot(t.Context(), duologue.Part{})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, member(snapshot.Entities[0], "text"), "one")
	}
	equal(t, text, "Turn 1. You said: one")
	contains(t, <-second, "Turn 2. You said: two")
}

func TestLeavingAStreamStopsItsRunAndTheNextPromptWorks(t *testing.T) {
	chat := start(t, args("--echo-delay-ms=20"))
	stream := chat.Stream(t.Context(), strings.Repeat("one ", 1000))
	for event := range stream.Events() {
		if event.Text() != "" {
			break
		}
	}
	result, err := stream.Result()
	equal(t, []any{result.Status, err}, []any{"stopped", nil})
	contains(t, run(t, chat, "two").Text, "Turn 2. You said: two")
	var statuses []string
	for _, entity := range history(t, chat) {
		statuses = append(statuses, member(entity, "status"))
	}
	equal(t, statuses, []string{"accepted", "stopped", "accepted", "finished"})
}

func TestAContextStopsItsRun(t *testing.T) {
	chat := start(t, duologue.Options{Queue: true, Args: []string{"--echo-delay-ms=60000"}})
	first, cancelFirst := context.WithCancel(t.Context())
	second, cancelSecond := context.WithCancel(t.Context())
	waiting := make(chan error, 1)
	defer cancelFirst()
	defer cancelSecond()
	stream := chat.Stream(first, "one")
	for event := range stream.Events() {
		if _, ok := event.Payload().(*messages.ChatProviderCallStarted); ok {
			go func() {
				_, err := chat.Run(second, "two")
				waiting <- err
			}()
			cancelSecond()
			equal(t, errors.Is(<-waiting, context.Canceled), true)
			cancelFirst()
		}
	}
	result, err := stream.Result()
	equal(t, []any{result.Status, errors.Is(err, context.Canceled)}, []any{"stopped", true})
	result, err = chat.Run(first, "three")
	equal(t, []any{result.Status, errors.Is(err, context.Canceled)}, []any{"stopped", true})
	isActive, err := chat.Cancel(t.Context())
	equal(t, []any{isActive, err}, []any{false, nil})
	equal(t, len(history(t, chat)), 1)
}

func TestACancelIsAStatusAndNoError(t *testing.T) {
	chat := start(t, args("--echo-delay-ms=60000"))
	for _, isOwn := range []bool{true, false} {
		stream := chat.Stream(t.Context(), "one")
		for event := range stream.Events() {
			if _, ok := event.Payload().(*messages.ChatProviderCallStarted); !ok {
				continue
			}
			if isOwn {
				stream.Cancel()
			} else if _, err := chat.Cancel(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		result, err := stream.Result()
		equal(t, []any{result.Status, err}, []any{"stopped", nil})
	}
}

func TestSteeringJoinsTheRun(t *testing.T) {
	var chat *duologue.Client
	var stream *duologue.Stream
	steered := make(chan bool, 1)
	get := tool("get_time", func(ctx context.Context, _ city) (any, error) {
		go func() {
			result, _ := stream.Steer(context.Background(), "And in Oz?")
			steered <- result.Joined
		}()
		for chat.InFlight() < 2 {
			runtime.Gosched()
		}
		// The server has read the prompt before it answers this.
		_, err := chat.Snapshot(ctx, duologue.Part{})
		return "12:00", err
	})
	chat = start(t, duologue.Options{Args: []string{script(t, berlin...)}, Tools: []duologue.Tool{get}})
	stream = chat.Stream(t.Context(), "What time is it?")
	if _, err := stream.Result(); err != nil {
		t.Fatal(err)
	}
	equal(t, <-steered, true)
}

func TestAFailedRunIsAnErrorAfterItsEvents(t *testing.T) {
	chat := start(t, unreachable)
	stream := chat.Stream(t.Context(), "hello")
	var last *duologue.Event
	for event := range stream.Events() {
		last = event
	}
	if _, ok := last.Payload().(*messages.ChatRunFailed); !ok {
		t.Errorf("the last is a %s", last.Type)
	}
	_, err := stream.Result()
	var failed *duologue.ProviderError
	if !errors.As(err, &failed) {
		t.Fatal(err)
	}
	equal(t, []any{failed.Class, failed.Retryable}, []any{"network", true})
}

func TestToolsAreFunctions(t *testing.T) {
	get := duologue.NewTool("get_time", "The local time in a city.", func(_ context.Context, args city) (any, error) {
		return map[string]string{"Berlin": "12:00"}[args.City], nil
	})
	chat := start(t, duologue.Options{Args: []string{script(t, berlin...)}, Tools: []duologue.Tool{get}})
	result := run(t, chat, "What time is it?")
	equal(t, result.ToolCalls[0].Result, `{"result":"12:00"}`)
	equal(t, result.Text, "It is noon.")
	equal(t, result.Texts, []string{"Let me look.", "It is noon."})
	schema, _ := json.Marshal(get.Parameters)
	want := `{"additionalProperties":false,"properties":{"city":{"type":"string"}},"required":["city"],"type":"object"}`
	equal(t, string(schema), want)
}

// broken is an error and a value whose methods panic; that of a nil pointer does so by accident.
type broken struct{ text string }

func (b *broken) Error() string { return b.text }

func (b broken) MarshalJSON() ([]byte, error) { panic("no JSON") }

func TestAToolThatFailsOrTakesTooLongIsAResult(t *testing.T) {
	slow := tool("slow", func(ctx context.Context, _ city) (any, error) { <-ctx.Done(); return nil, ctx.Err() })
	slow.Timeout = 10 * time.Millisecond
	var nested any
	for range 200 {
		nested = []any{nested}
	}
	tools := []duologue.Tool{
		tool("broken", func(context.Context, city) (any, error) { return nil, errors.New("no such city") }),
		tool("panics", func(context.Context, city) (any, error) { panic("no map") }),
		slow,
		tool("nested", func(context.Context, city) (any, error) { return nested, nil }),
		tool("wordless", func(context.Context, city) (any, error) { return nil, (*broken)(nil) }),
		tool("unmade", func(context.Context, city) (any, error) { return broken{}, nil }),
		tool("ended", func(context.Context, city) (any, error) { runtime.Goexit(); return nil, nil }),
		tool("unreadable", func(context.Context, city) (any, error) { return func() {}, nil }),
		duologue.NewTool("picky", "", func(context.Context, struct{ City int }) (any, error) { return nil, nil }),
	}
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	chat := start(t, duologue.Options{Args: []string{script(t, calls(m{"city": "x"}, names...)...)}, Tools: tools})
	want := map[string]string{
		"broken": "no such city", "panics": "no map", "slow": "the tool took longer than 10ms",
		"nested": "the server does not take the result", "unreadable": "the result is no JSON", "picky": "cannot unmarshal string",
		"wordless": "an error of the type *duologue_test.broken", "unmade": "the tool panicked: no JSON", "ended": "returned nothing",
	}
	for _, call := range run(t, chat, "x").ToolCalls {
		equal(t, call.Status, "error")
		contains(t, call.Result, want[call.Name])
	}
}

func TestWhatAToolGivesIsWhatItsJSONIs(t *testing.T) {
	values := map[string]any{
		"date": time.Unix(0, 0).UTC(), "list": []int{1}, "nothing": nil, "object": json.RawMessage(` {"a":1}`), "struct": city{"Cork"},
	}
	var tools []duologue.Tool
	var names []string
	for name, value := range values {
		tools = append(tools, tool(name, func(context.Context, city) (any, error) { return value, nil }))
		names = append(names, name)
	}
	chat := start(t, duologue.Options{Args: []string{script(t, calls(m{"city": "x"}, names...)...)}, Tools: tools})
	want := map[string]string{
		"date": `{"result":"1970-01-01T00:00:00Z"}`, "list": `{"result":[1]}`, "nothing": `{"result":null}`, "object": `{"a":1}`,
		"struct": `{"city":"Cork"}`,
	}
	for _, call := range run(t, chat, "x").ToolCalls {
		equal(t, []string{call.Status, call.Result}, []string{"success", want[call.Name]})
	}
}

func TestAToolEndsWithItsRun(t *testing.T) {
	ended := make(chan struct{})
	get := tool("get_time", func(ctx context.Context, _ city) (any, error) {
		<-ctx.Done()
		close(ended)
		return nil, nil
	})
	chat := start(t, duologue.Options{Args: []string{script(t, berlin...)}, Tools: []duologue.Tool{get}})
	stream := chat.Stream(t.Context(), "x")
	for event := range stream.Events() {
		if _, ok := event.Payload().(*messages.FrontendToolCallRequested); ok {
			stream.Cancel()
		}
	}
	<-ended
	result, err := stream.Result()
	equal(t, []any{result.Status, err}, []any{"stopped", nil})
}

func TestTextWithHalfACharacterIsSent(t *testing.T) {
	half := "hello 😀"[:7]
	equal(t, run(t, start(t, args()), half).Text, "Turn 1. You said: hello \uFFFD")
	tools := []duologue.Tool{
		tool("text", func(context.Context, city) (any, error) { return half, nil }),
		tool("json", func(context.Context, city) (any, error) { return json.RawMessage(`{"a":"` + half + `"}`), nil }),
		tool("error", func(context.Context, city) (any, error) { return nil, errors.New(half) }),
		tool("escape", func(context.Context, city) (any, error) {
			return json.RawMessage(`{"a":"\ud83d cut \uD83D\uDE00 \uDE00\ud83d\ud83d\ude00 \\ud83d \\\uD83D\n"}`), nil
		}),
	}
	calls := calls(m{"city": "x"}, "text", "json", "error", "escape")
	var results []string
	for _, call := range run(t, start(t, duologue.Options{Args: []string{script(t, calls...)}, Tools: tools}), "x").ToolCalls {
		results = append(results, call.Result)
	}
	equal(t, results, []string{"{\"result\":\"hello \uFFFD\"}", "{\"a\":\"hello \uFFFD\"}", "hello \uFFFD",
		"{\"a\":\"\uFFFD cut 😀 \uFFFD\uFFFD😀 \\\\ud83d \\\\\uFFFD\\n\"}"})
}

// askedBy is the key of a value of contexts.
type askedBy struct{}

func TestAToolHasTheContextOfItsPrompt(t *testing.T) {
	ctx := context.WithValue(t.Context(), askedBy{}, "ada")
	get := tool("get_time", func(ctx context.Context, _ city) (any, error) { return ctx.Value(askedBy{}), nil })
	chat := start(t, duologue.Options{Args: []string{script(t, berlin...)}, Tools: []duologue.Tool{get}})
	result, err := chat.Run(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, result.ToolCalls[0].Result, `{"result":"ada"}`)
	options := args(script(t, berlin...), "--mcp", "python3 "+filepath.Join(root, "examples/clock.py"))
	options.Approve = func(ctx context.Context, _ *messages.ToolApprovalRequested) duologue.Decision {
		return duologue.Deny(fmt.Sprint("Not for ", ctx.Value(askedBy{})))
	}
	if result, err = start(t, options).Run(ctx, "x"); err != nil {
		t.Fatal(err)
	}
	contains(t, result.ToolCalls[0].Result, "Not for ada")
}

func TestToolsCanBeReplaced(t *testing.T) {
	chat := start(t, args(script(t, berlin...)))
	get := tool("get_time", func(context.Context, city) (any, error) { return "12:00", nil })
	if err := chat.SetTools(t.Context(), get); err != nil {
		t.Fatal(err)
	}
	equal(t, run(t, chat, "x").ToolCalls[0].Status, "success")
}

func TestToolsOfAnEarlierProgramAreOfferedNoMore(t *testing.T) {
	options := duologue.Options{Store: filepath.Join(t.TempDir(), "chat.db"), Session: "ada"}
	first := options
	first.Tools = []duologue.Tool{tool("delete_file", func(context.Context, city) (any, error) { return "deleted", nil })}
	chat := start(t, first)
	run(t, chat, "x")
	_ = chat.Close()
	// The session has it when the first of these begins, which takes it back.
	for _, want := range [][][]string{{{"delete_file"}, nil}, {nil}} {
		var names [][]string
		options.OnEvent = func(event *duologue.Event) {
			if updated, ok := event.Payload().(*messages.FrontendToolManifestUpdated); ok {
				var list []string
				for _, tool := range updated.GetTools() {
					list = append(list, tool.GetName())
				}
				names = append(names, list)
			}
		}
		chat := start(t, options)
		run(t, chat, "x")
		_ = chat.Close()
		equal(t, names, want)
	}
}

func TestAReconnectAndAForkHaveTheToolsThatWereSet(t *testing.T) {
	named := func(name string) duologue.Tool {
		return tool(name, func(context.Context, city) (any, error) { return name, nil })
	}
	chat := start(t, duologue.Options{
		Store: filepath.Join(t.TempDir(), "chat.db"), Session: "ada", Tools: []duologue.Tool{named("earlier")},
		Args: []string{script(t, calls(m{"city": "x"}, "later")...)},
	})
	if err := chat.SetTools(t.Context(), named("later")); err != nil {
		t.Fatal(err)
	}
	equal(t, run(t, chat, "x").ToolCalls[0].Result, `{"result":"later"}`)
	copied, err := chat.Fork(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	equal(t, run(t, copied, "x").ToolCalls[0].Result, `{"result":"later"}`)
	crash(t, chat)
	if _, err := chat.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, run(t, chat, "x").ToolCalls[0].Result, `{"result":"later"}`)
}

// crash kills the process.
func crash(t *testing.T, chat *duologue.Client) {
	t.Helper()
	if err := chat.Kill(); err != nil {
		t.Fatal(err)
	}
	_, err := chat.Run(t.Context(), "lost")
	equal(t, errors.Is(err, duologue.ErrProcessEnded), true)
}

func TestWhatBelongsToNoRequestIsANotice(t *testing.T) {
	var states []messages.ToolServerState
	options := args("--mcp", "python3 "+filepath.Join(root, "examples/clock.py"))
	options.OnEvent = func(event *duologue.Event) {
		if changed, ok := event.Payload().(*messages.ToolServerChanged); ok {
			states = append(states, changed.GetState())
		}
	}
	chat := start(t, options)
	run(t, chat, "x")
	_ = chat.Close()
	equal(t, slices.Contains(states, messages.ToolServerState_READY), true)
}

func decide(t *testing.T, timeout time.Duration, approve duologue.Approve) duologue.ToolCall {
	clock := "python3 " + filepath.Join(root, "examples/clock.py")
	options := args(script(t, berlin...), "--mcp", clock)
	options.Approve, options.ApproveTimeout = approve, timeout
	return run(t, start(t, options), "x").ToolCalls[0]
}

func TestApprovalsAreACallback(t *testing.T) {
	var seen []string
	call := decide(t, patience, func(_ context.Context, request *messages.ToolApprovalRequested) duologue.Decision {
		seen = append(seen, request.GetToolName(), request.GetInput())
		return duologue.Allow
	})
	equal(t, call.Status, "success")
	equal(t, seen, []string{"get_time", `{"city":"Berlin"}`})
	call = decide(t, patience, func(context.Context, *messages.ToolApprovalRequested) duologue.Decision {
		return duologue.Deny("Not now.")
	})
	contains(t, call.Result, "Not now.")
}

func TestWithoutADecisionCallsAreDenied(t *testing.T) {
	contains(t, decide(t, patience, nil).Result, "approves no tool calls")
	call := decide(t, patience, func(context.Context, *messages.ToolApprovalRequested) duologue.Decision { panic("a secret") })
	contains(t, call.Result, "could not decide")
	equal(t, strings.Contains(call.Result, "secret"), false)
	call = decide(t, 10*time.Millisecond, func(ctx context.Context, _ *messages.ToolApprovalRequested) duologue.Decision {
		select {} // Not even when the context ends.
	})
	contains(t, call.Result, "Nobody decided within")
}

type place struct {
	Name  string   `json:"name" description:"in its own language"`
	Kind  string   `json:"kind,omitempty" enum:"city,town"`
	Twins []string `json:"twins,omitempty"`
}

func TestAnAnswerIsAValueOfAType(t *testing.T) {
	chat := start(t, args(script(t, m{"text": `{"name": "Köln", "twins": ["Cork"]}`}, m{"text": "[1, 2]"})))
	var where place
	run(t, chat, "Where?", duologue.Into(&where))
	equal(t, where, place{Name: "Köln", Twins: []string{"Cork"}})
	chat = start(t, args(script(t, m{"text": "[1, 2]"})))
	var numbers []int
	run(t, chat, "Which?", duologue.Into(&numbers))
	equal(t, numbers, []int{1, 2})
	result := run(t, chat, "Which?", duologue.IntoSchema(nil, m{"type": "array"}))
	equal(t, string(result.Values[0]), "[1, 2]")
}

type tree struct {
	Name     string          `json:"name"`
	Children []tree          `json:"children,omitempty" description:"below it"`
	Best     *tree           `json:"best,omitempty"`
	More     map[string]tree `json:"more,omitempty"`
}

type nested []nested

func TestATypeThatIsAPartOfItselfHasASchema(t *testing.T) {
	chat := start(t, args(script(t, m{"text": `{"name": "a", "children": [{"name": "b"}]}`})))
	var family tree
	run(t, chat, "Who?", duologue.Into(&family))
	equal(t, []string{family.Name, family.Children[0].Name}, []string{"a", "b"})
	chat = start(t, args(script(t, m{"text": `{"name": "a", "children": [{"name": 3}]}`})))
	_, err := chat.Run(t.Context(), "Who?", duologue.Into(&family))
	equal(t, errors.Is(err, duologue.ErrAnswer), true)
	schema, err := duologue.SchemaOf(reflect.TypeFor[nested]())
	text, _ := json.Marshal(schema)
	want := `{"$defs":{"nested":{"items":{"$ref":"#/$defs/nested"},"type":"array"}},"items":{"$ref":"#/$defs/nested"},"type":"array"}`
	equal(t, []any{string(text), err}, []any{want, nil})
}

func TestAnAnswerHasNothingOfAnEarlierOne(t *testing.T) {
	var where place
	for _, answer := range []m{{"name": "Köln", "twins": []string{"Cork"}}, {"name": "Bonn"}} {
		text, _ := json.Marshal(answer)
		run(t, start(t, args(script(t, m{"text": string(text)}))), "Where?", duologue.Into(&where))
		equal(t, where.Name, answer["name"].(string))
	}
	equal(t, where, place{Name: "Bonn"})
}

// anyJSON reads JSON by its own method.
type anyJSON struct{ raw string }

func (a *anyJSON) UnmarshalJSON(raw []byte) error { a.raw = string(raw); return nil }

func TestASchemaIsWhatIsRead(t *testing.T) {
	type Hue string
	type Extra any
	type Shape struct {
		Corners int `json:"corners"`
	}
	type all struct {
		Hue
		Extra
		*Shape
		Price    json.Number        `json:"price"`
		Level    slog.Level         `json:"level"`
		Address  netip.Addr         `json:"address"`
		Pointer  *netip.Addr        `json:"pointer"`
		By       map[netip.Addr]int `json:"by"`
		Whatever anyJSON            `json:"whatever"`
		Huge     big.Int            `json:"huge"`
		When     time.Time          `json:"when"`
		Number   int                `json:"number,string"`
		Optional *float64           `json:"optional,string"`
		Bytes    []byte             `json:"bytes"`
		Colors   []string           `json:"colors" enum:"red,blue"`
		Sizes    [][]int            `json:"sizes" enum:"1,2"`
		Color    string             `json:"color" enum:"red,1"`
	}
	schema, err := duologue.SchemaOf(reflect.TypeFor[all]())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"level": `{"type":"string"}`, "address": `{"type":"string"}`, "pointer": `{"type":"string"}`,
		"by": `{"additionalProperties":{"type":"integer"},"type":"object"}`, "whatever": `{}`, "huge": `{}`,
		"when": `{"format":"date-time","type":"string"}`, "number": `{"type":"string"}`, "optional": `{"type":"string"}`,
		"bytes":  `{"contentEncoding":"base64","type":"string"}`,
		"colors": `{"items":{"enum":["red","blue"],"type":"string"},"type":"array"}`,
		"sizes":  `{"items":{"items":{"enum":[1,2],"type":"integer"},"type":"array"},"type":"array"}`,
		"color":  `{"enum":["red","1"],"type":"string"}`,
		"Hue":    `{"type":"string"}`, "Extra": `{}`, "corners": `{"type":"integer"}`, "price": `{"type":"number"}`,
	}
	properties := schema["properties"].(m)
	for name, text := range want {
		raw, _ := json.Marshal(properties[name])
		equal(t, name+string(raw), name+text)
	}
	equal(t, len(properties), len(want))
	answer := `{"level": "WARN", "address": "::1", "pointer": "::1", "by": {"::1": 1}, "whatever": [1], "huge": 1, "when": "2026-01-02T03:04:05Z",
		"number": "7", "optional": "1.5", "bytes": "aGk=", "colors": ["red"], "sizes": [[2]], "color": "1",
		"Hue": "blue", "Extra": true, "corners": 4, "price": 12.5}`
	chat := start(t, args(script(t, m{"text": strings.ReplaceAll(answer, "\n", "")})))
	var got all
	run(t, chat, "What?", duologue.Into(&got))
	equal(t, []any{got.Level.String(), got.Address.String(), got.Whatever.raw, got.Number, string(got.Bytes), got.Sizes[0][0]},
		[]any{"WARN", "::1", "[1]", 7, "hi", 2})
	equal(t, []any{got.Hue, got.Extra, got.Corners, got.Price.String()}, []any{Hue("blue"), true, 4, "12.5"})
}

func TestAReplacedPromptHasNoAnswerOfATypeAndNoSettings(t *testing.T) {
	chat := start(t, args(script(t, m{"text": `{"name": "Bonn"}`})))
	first := run(t, chat, "Where?")
	where := place{Name: "old"}
	for _, option := range []duologue.PromptOption{
		duologue.Into(&where), duologue.IntoSchema(nil, m{"type": "object"}), duologue.Settings(m{"temperature": 0.5}),
	} {
		stream := chat.Replace(t.Context(), first.MessageID, "And now?", option)
		for range stream.Events() {
			t.Error("an event")
		}
		if _, err := stream.Result(); err == nil {
			t.Fatal("no error")
		} else {
			contains(t, err.Error(), "Replace takes no Into and no Settings")
		}
	}
	equal(t, where.Name, "old")
	equal(t, member(history(t, chat)[0], "text"), "Where?")
}

func TestAnotherAnswerIsAnError(t *testing.T) {
	chat := start(t, args(script(t, m{"text": `{"name": 3}`})))
	var where place
	_, err := chat.Run(t.Context(), "Where?", duologue.Into(&where))
	var failed *duologue.RequestError
	equal(t, errors.Is(err, duologue.ErrAnswer) && errors.As(err, &failed), true)
	equal(t, failed.Answer, `{"name": 3}`)
}
