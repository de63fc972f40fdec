package duologue_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	duologue "duologue/clients/go"
	"duologue/clients/go/messages"
)

func TestASessionGoesOn(t *testing.T) {
	options := duologue.Options{Store: filepath.Join(t.TempDir(), "chat.db"), Session: "ada"}
	chat := start(t, options)
	run(t, chat, "one")
	seen := chat.Ordinal()
	_ = chat.Close()
	chat = start(t, options)
	equal(t, []any{chat.SessionID(), chat.Ordinal(), len(chat.Initial().Entities)}, []any{"ada", seen, 2})
	contains(t, run(t, chat, "two").Text, "Turn 2. You said: two")
	changed, err := chat.Snapshot(t.Context(), duologue.Part{Since: seen})
	equal(t, []any{len(changed.Entities), err}, []any{2, nil})
	equal(t, member(changed.Entities[0], "role"), "user")
	last, err := chat.Snapshot(t.Context(), duologue.Part{Limit: 1})
	equal(t, []any{len(last.Entities), err}, []any{1, nil})
	equal(t, len(history(t, chat)), 4)
}

func TestTheEndOfAConversationIsEdited(t *testing.T) {
	chat := start(t, args())
	first := run(t, chat, "one")
	run(t, chat, "two")
	again, err := chat.Regenerate(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	contains(t, again.Text, "Turn 2. You said: two")
	if _, err := chat.Replace(t.Context(), first.MessageID, "three").Result(); err != nil {
		t.Fatal(err)
	}
	entities := history(t, chat)
	equal(t, len(entities), 2)
	equal(t, member(entities[1], "text"), "Turn 1. You said: three")
	if err := chat.DropLastTurn(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, len(history(t, chat)), 0)
}

func TestACompactionIsStoppedLikeARun(t *testing.T) {
	options := duologue.Options{Store: filepath.Join(t.TempDir(), "chat.db"), Session: "ada"}
	chat := start(t, options)
	run(t, chat, "one")
	_ = chat.Close()
	requestCtx, cancelRequest := context.WithCancel(t.Context())
	defer cancelRequest()
	options.Args = []string{"--echo-delay-ms=60000"}
	options.OnEvent = func(event *duologue.Event) {
		if _, ok := event.Payload().(*messages.CompactionStarted); ok {
			cancelRequest()
		}
	}
	chat = start(t, options)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream := chat.Compact(ctx, "", 0)
	for event := range stream.Events() {
		if _, ok := event.Payload().(*messages.CompactionStarted); ok {
			cancel()
		}
	}
	result, err := stream.Result()
	equal(t, []any{result.Status, errors.Is(err, context.Canceled)}, []any{"stopped", true})
	_, err = chat.Request(requestCtx, m{"compact": m{}})
	equal(t, errors.Is(err, context.Canceled), true)
	for range chat.Compact(t.Context(), "", 0).Events() {
		break
	}
	// No prompt is refused.
	stream = chat.Stream(t.Context(), "two")
	for event := range stream.Events() {
		if _, ok := event.Payload().(*messages.ChatProviderCallStarted); ok {
			break
		}
	}
	result, err = stream.Result()
	equal(t, []any{result.Status, err}, []any{"stopped", nil})
}

func TestEventsOfOtherRequestsAreNotices(t *testing.T) {
	var types []string
	chat := start(t, duologue.Options{OnEvent: func(event *duologue.Event) { types = append(types, event.Type) }})
	run(t, chat, "one")
	if _, err := chat.Compact(t.Context(), "", 0).Result(); err != nil {
		t.Fatal(err)
	}
	if err := chat.SwitchModel(t.Context(), duologue.Choice{Engine: "echo"}); err != nil {
		t.Fatal(err)
	}
	if err := chat.DropLastTurn(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, types, []string{
		"duologue.session.v1.CompactionStarted", "duologue.session.v1.UsageTotals", "duologue.session.v1.Compacted",
		"duologue.provider.v1.ModelSwitched", "duologue.session.v1.TurnDropped",
	})
}

func TestASessionIsCopied(t *testing.T) {
	chat := start(t, duologue.Options{Store: filepath.Join(t.TempDir(), "chat.db"), Session: "ada"})
	run(t, chat, "one")
	run(t, chat, "two")
	other, err := chat.Fork(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	equal(t, []any{other.SessionID() == "ada", len(other.Initial().Entities)}, []any{false, 2})
	equal(t, len(history(t, chat)), 4)
}

func TestHistoryComesInPages(t *testing.T) {
	chat := start(t, duologue.Options{PageEntities: 3})
	var want []string
	for _, prompt := range []string{"one", "two", "three", "four"} {
		want = append(want, prompt)
		run(t, chat, prompt)
	}
	var prompts []string
	for at, entity := range history(t, chat) {
		if at%2 == 0 {
			prompts = append(prompts, member(entity, "text"))
		}
	}
	equal(t, prompts, want)
}

func TestAHistoryInPagesIsThatOfASnapshot(t *testing.T) {
	chat := start(t, duologue.Options{PageEntities: 2})
	for turn := range 4 {
		run(t, chat, "x")
		if turn > 1 {
			if _, err := chat.Compact(t.Context(), "", 1).Result(); err != nil {
				t.Fatal(err)
			}
		}
	}
	snapshot, err := chat.Snapshot(t.Context(), duologue.Part{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, history(t, chat), snapshot.Entities)
	var compactions []bool
	for _, entity := range snapshot.Entities {
		compactions = append(compactions, entity.Kind == "Compaction")
	}
	equal(t, compactions, append(make([]bool, 8), true, true))
}

func TestAStoreThatFailsIsANotice(t *testing.T) {
	var notices []error
	options := duologue.Options{Store: filepath.Join(t.TempDir(), "chat.db"), Session: "ada"}
	options.OnError = func(err error) { notices = append(notices, err) }
	chat := start(t, options)
	run(t, chat, "one")
	if err := os.Remove(options.Store); err != nil {
		t.Fatal(err)
	}
	equal(t, run(t, chat, "two").Status, "ok")
	// The error comes before the answer to a later request.
	history(t, chat)
	equal(t, errors.Is(chat.StoreError(), duologue.ErrStore), true)
	equal(t, len(notices) > 0 && notices[len(notices)-1] == chat.StoreError(), true)
}

func TestModelsAndSettings(t *testing.T) {
	chat := start(t, args())
	if err := chat.SwitchModel(t.Context(), duologue.Choice{Engine: "echo"}); err != nil {
		t.Fatal(err)
	}
	equal(t, run(t, chat, "x", duologue.Settings(m{"temperature": 0.5})).Status, "ok")
	_, err := chat.Run(t.Context(), "x", duologue.Settings(m{"nonsense": 1}))
	var failed *duologue.RequestError
	equal(t, errors.As(err, &failed) && failed.Code == "invalid_settings", true)
}

func TestTheTextOfAnErrorHasItsReason(t *testing.T) {
	chat := start(t, args())
	_, err := chat.Run(t.Context(), "x", duologue.Settings(m{"temprature": 1}))
	contains(t, err.Error(), `(there is no setting "temprature"; the settings are `)
	var failed *duologue.RequestError
	equal(t, errors.As(err, &failed), true)
	equal(t, err.Error(), failed.Message+" ("+failed.Detail+")")
	err = chat.SwitchModel(t.Context(), duologue.Choice{Profile: "nope"})
	contains(t, err.Error(), `(there is no profile "nope"; there are: `)
	content, err := os.ReadFile(filepath.Join(root, "clients/error_texts.json"))
	equal(t, err, nil)
	var cases []struct{ Message, Detail, Text string }
	equal(t, json.Unmarshal(content, &cases), nil)
	for _, it := range cases {
		equal(t, (&duologue.RequestError{Code: "run_failed", Message: it.Message, Detail: it.Detail}).Error(), it.Text)
	}
}

func TestAnAccountWithoutCreditIsNotRetryable(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "clients/retryable_errors.json"))
	equal(t, err, nil)
	var cases []struct {
		Detail      string
		IsRetryable bool
	}
	equal(t, json.Unmarshal(content, &cases), nil)
	for _, it := range cases {
		failed := new(duologue.ProviderError)
		equal(t, errors.As(duologue.RunFailed(it.Detail), &failed), true)
		equal(t, []any{it.Detail, failed.Retryable}, []any{it.Detail, it.IsRetryable})
	}
}

func TestResourcesOfToolServersGoWithAPrompt(t *testing.T) {
	text := run(t, start(t, difficult("repeat")), "x", duologue.Resource("docs", "file:///a.md")).Text
	contains(t, text, `"resources": [{"server": "docs", "uri": "file:///a.md"}]`)
}

func TestAnAttachmentsPathIsTheProgramsOwn(t *testing.T) {
	chat, elsewhere := start(t, args()), start(t, duologue.Options{Dir: "/"})
	t.Chdir(filepath.Join(root, "examples"))
	for _, chat := range []*duologue.Client{chat, elsewhere} {
		contains(t, run(t, chat, "What?", duologue.Attach("squares.png")).Text, "squares.png (image/png")
	}
	for _, url := range []string{"https://example.org/a.png", "DATA:text/plain,a"} {
		contains(t, run(t, start(t, difficult("repeat")), "x", duologue.Attach(url)).Text, `{"url": "`+url+`"}`)
	}
}

func TestAttachments(t *testing.T) {
	chat := start(t, args())
	result := run(t, chat, "What?", duologue.Attach(filepath.Join(root, "examples/squares.png")))
	contains(t, result.Text, "squares.png (image/png, 8x8, 82 bytes)")
	clock := duologue.Attach(filepath.Join(root, "examples/clock.py"))
	again, err := chat.Replace(t.Context(), result.MessageID, "And this?", clock, duologue.Remove("attachment-1")).Result()
	if err != nil {
		t.Fatal(err)
	}
	contains(t, again.Text, "Attached: clock.py")
	equal(t, strings.Contains(again.Text, "squares.png"), false)
}
