package duologue_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	duologue "duologue/clients/go"
)

func TestBusy(t *testing.T) {
	chat := start(t, args("--echo-delay-ms=60000"))
	for range chat.Stream(t.Context(), "x").Events() {
		_, err := chat.Run(t.Context(), "y")
		equal(t, errors.Is(err, duologue.ErrBusy), true)
		break
	}
}

func TestAnotherSession(t *testing.T) {
	chat := start(t, args())
	run(t, chat, "x")
	_, err := chat.Request(t.Context(), m{"sessionId": "another", "snapshot": m{}})
	equal(t, errors.Is(err, duologue.ErrSessionMismatch), true)
}

func TestErrorsOfAProvider(t *testing.T) {
	address := provider(t, 429, "retry-after", "90")
	chat := start(t, duologue.Options{
		Engine: "openai", Model: "m", Args: []string{"--base-url=" + address}, Env: []string{"OPENAI_API_KEY=not-a-secret"},
	})
	_, err := chat.Run(t.Context(), "x")
	var failed *duologue.ProviderError
	equal(t, errors.As(err, &failed) && errors.Is(err, duologue.ErrProvider), true)
	equal(t, []any{failed.Class, failed.RetryAfter, failed.Retryable}, []any{"rate_limited", 90 * time.Second, true})
	_, err = start(t, unreachable).Run(t.Context(), "x")
	equal(t, errors.As(err, &failed), true)
	equal(t, []any{failed.Class, failed.RetryAfter}, []any{"network", time.Duration(0)})
}

func TestErrorsOfTools(t *testing.T) {
	chat := start(t, args())
	_, err := chat.Request(t.Context(), m{"toolResult": m{"toolCallId": "unknown"}})
	equal(t, errors.Is(err, duologue.ErrTool), true)
	err = chat.SetTools(t.Context(), duologue.Tool{Name: "no name"})
	equal(t, errors.Is(err, duologue.ErrTool), true)
}

func TestErrorsOfAStore(t *testing.T) {
	options := duologue.Options{Store: filepath.Join(t.TempDir(), "chat.db"), Session: "ada"}
	start(t, options)
	_, err := duologue.Start(t.Context(), options)
	var failed *duologue.RequestError
	equal(t, errors.Is(err, duologue.ErrStore) && errors.As(err, &failed) && failed.Code == "session_locked", true)
}

const startsAtOnce = 16

func TestErrorsOfACommandLine(t *testing.T) {
	// Many at once, so that some processes have ended before their first frame is read.
	failures := make(chan error, startsAtOnce)
	for range startsAtOnce {
		go func() {
			_, err := duologue.Start(t.Context(), args("--nonsense"))
			failures <- err
		}()
	}
	for range startsAtOnce {
		err := <-failures
		equal(t, errors.Is(err, duologue.ErrConfig), true)
		contains(t, err.Error(), "--nonsense")
	}
}

func TestAnEchoNobodyAskedForIsAWarning(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	duologue.ForgetWarning()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	unchosen := duologue.Options{Binary: filepath.Join(root, "clients/without_provider"), Env: []string{"DUOLOGUE_BIN=" + os.Getenv("DUOLOGUE_BIN")}}
	chosen := unchosen
	chosen.Engine = "echo"
	for _, options := range []duologue.Options{unchosen, unchosen, chosen} {
		chat := start(t, options)
		equal(t, run(t, chat, "x").Text, "Turn 1. You said: x")
		_ = chat.Close() // Standard error is read then.
	}
	equal(t, strings.Count(log.String(), "the built-in echo engine of duologue answers"), 1)
	unchosen.Args = []string{"--require-provider"}
	_, err := duologue.Start(t.Context(), unchosen)
	equal(t, errors.Is(err, duologue.ErrConfig), true)
}

func TestNotInstalled(t *testing.T) {
	_, err := duologue.Start(t.Context(), duologue.Options{Binary: "/nowhere/duologue"})
	equal(t, errors.Is(err, duologue.ErrNotInstalled), true)
	contains(t, err.Error(), "the option Binary")
	t.Setenv("PATH", "/nowhere")
	t.Setenv("DUOLOGUE_BIN", "/nowhere/duologue")
	_, err = duologue.Start(t.Context(), duologue.Options{})
	contains(t, err.Error(), "the variable DUOLOGUE_BIN")
	t.Setenv("DUOLOGUE_BIN", "")
	_, err = duologue.Start(t.Context(), duologue.Options{})
	equal(t, errors.Is(err, duologue.ErrNotInstalled), true)
	contains(t, err.Error(), "not on the PATH")
}

func TestAFolderThatIsNotThere(t *testing.T) {
	_, err := duologue.Start(t.Context(), duologue.Options{Dir: "/nowhere"})
	contains(t, err.Error(), "can't be run in /nowhere, which is no folder that can be used")
	equal(t, errors.Is(err, duologue.ErrNotInstalled), false)
}

func TestARelativePathToTheProgramAndAnotherFolder(t *testing.T) {
	t.Chdir(filepath.Join(root, "clients"))
	t.Setenv("DUOLOGUE_BIN", "./difficult_server.py")
	for _, binary := range []string{"./difficult_server.py", ""} {
		options := difficult("normal")
		options.Binary, options.Dir = binary, "/"
		equal(t, run(t, start(t, options), "x").Status, "ok")
	}
}
