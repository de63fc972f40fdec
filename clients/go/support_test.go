package duologue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	duologue "duologue/clients/go"
)

const patience = 30 * time.Second

var root, _ = filepath.Abs("../..")

var difficultServer = filepath.Join(root, "clients/difficult_server.py")

func TestMain(m *testing.M) {
	if os.Getenv("DUOLOGUE_BIN") == "" {
		_ = os.Setenv("DUOLOGUE_BIN", filepath.Join(root, "target/debug/duologue"))
	}
	_ = os.Setenv("DUOLOGUE_ENGINE", "echo")
	status := m.Run()
	for _, path := range leftovers {
		_ = os.Remove(path)
	}
	os.Exit(status)
}

// leftovers are files of examples.
var leftovers []string

// start starts a client that ends with its test.
func start(t *testing.T, options duologue.Options) *duologue.Client {
	t.Helper()
	chat, err := duologue.Start(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = chat.Close() })
	return chat
}

func args(args ...string) duologue.Options { return duologue.Options{Args: args} }

func difficult(scenario string) duologue.Options {
	return duologue.Options{Binary: difficultServer, Env: []string{"DIFFICULT=" + scenario}}
}

var unreachable = duologue.Options{
	Engine: "openai", Model: "m", Args: []string{"--base-url=http://127.0.0.1:9", "--retries=0"},
}

// script is an option that has the built-in engine play these calls of a model.
func script(t *testing.T, calls ...any) string {
	path := filepath.Join(t.TempDir(), "script.jsonl")
	var lines []byte
	for _, call := range calls {
		line, err := json.Marshal(call)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
	}
	if err := os.WriteFile(path, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	return "--echo-script=" + path
}

// provider is the address of one that refuses every request.
func provider(t *testing.T, status int, header, value string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(header, value)
		w.WriteHeader(status)
		fmt.Fprint(w, "{}")
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

func run(t *testing.T, chat *duologue.Client, prompt string, options ...duologue.PromptOption) *duologue.Result {
	t.Helper()
	result, err := chat.Run(t.Context(), prompt, options...)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func history(t *testing.T, chat *duologue.Client) []duologue.Entity {
	t.Helper()
	entities, err := chat.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return entities
}

// member returns a member of the payload of an entity.
func member(entity duologue.Entity, name string) string {
	var members map[string]any
	_ = json.Unmarshal(entity.Raw, &members)
	text, _ := members[name].(string)
	return text
}

func equal[T any](t *testing.T, got, want T) {
	t.Helper()
	if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
		t.Errorf("got %#v, want %#v", got, want)
	}
}

func contains(t *testing.T, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%q does not contain %q", text, part)
	}
}

// gone waits until a process does not run any more.
func gone(t *testing.T, pid string) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Since(begin) > patience {
			t.Fatalf("the process %s still runs", pid)
		}
	}
}

func TestTheReadmeHasCodeOfTheExamples(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, block, isThere := strings.Cut(string(readme), "```go\n")
	block, _, _ = strings.Cut(block, "```")
	equal(t, isThere, true)
	contains(t, string(examples), block)
}
