// The scenarios of ../README.md, driven by an SDK for Go.
//
//	go run . DUOLOGUE REPOSITORY [NAME...]
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"
)

const (
	png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg=="
	// How long a scenario may take.
	timeMax = 60 * time.Second
)

var (
	binary, repository, fixtures string
	echo                         = []string{"--engine", "echo"}
	slow                         = append(echo[:2:2], "--echo-delay-ms", "20")
	longPrompt                   = strings.Repeat("word ", 500)
)

func main() {
	binary, repository = os.Args[1], os.Args[2]
	fixtures = repository + "/tests/clients/acp/fixtures"
	named := os.Args[3:]
	failed := false
	for _, it := range scenarios {
		if len(named) > 0 && !slices.Contains(named, it.name) {
			continue
		}
		if problem := run(it.play); problem != nil {
			fmt.Printf("FAILED %s: %v\n", it.name, problem)
			failed = true
		} else {
			fmt.Printf("ok %s\n", it.name)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// stage is a folder, and the processes that a scenario has started.
type stage struct {
	folder string
	agents []*Agent
}

func (s *stage) start(args []string) *Agent { return s.startWith(args, false) }

func (s *stage) startWith(args []string, readsFiles bool, environment ...string) *Agent {
	agent := startAgent(s.folder, args, readsFiles, environment)
	s.agents = append(s.agents, agent)
	return agent
}

func run(play func(*stage)) (problem any) {
	folder := must(filepath.EvalSymlinks(must(os.MkdirTemp("", "acp-"))))
	defer os.RemoveAll(folder)
	s := &stage{folder: folder}
	defer func() {
		for _, agent := range s.agents {
			if problem != nil {
				agent.process.Process.Kill()
			} else if status := agent.end(); status != 0 && status != -1 {
				problem = fmt.Sprintf("exit status %d", status)
			}
		}
	}()
	ended := make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		play(s)
	}()
	select {
	case problem = <-ended:
		return problem
	case <-time.After(timeMax):
		return fmt.Sprintf("not done after %s", timeMax)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func expect(condition bool, format string, arguments ...any) {
	if !condition {
		panic(fmt.Sprintf(format, arguments...))
	}
}

func same(found, expected any) {
	expect(reflect.DeepEqual(found, expected), "%v, expected %v", found, expected)
}

func contains(text, part string) { expect(strings.Contains(text, part), "no %q in %q", part, text) }

func matches(text, pattern string) {
	expect(regexp.MustCompile("(?s)"+pattern).MatchString(text), "%q is not like %s", text, pattern)
}

func fails[T any](result T, err error) func(code int) *acp.RequestError {
	return func(code int) *acp.RequestError {
		var refused *acp.RequestError
		expect(errors.As(err, &refused), "no error of the process: %v %v", result, err)
		expect(refused.Code == code, "%v, expected %d", refused, code)
		return refused
	}
}

func script(name string) []string {
	return append(echo[:2:2], "--echo-script", fixtures+"/"+name)
}

func tools() []string {
	clock := "python3 " + repository + "/examples/clock.py"
	return append(echo[:2:2], "--echo-script", repository+"/examples/tool_calls.jsonl", "--mcp", clock)
}

func server(name string, path string) acp.McpServer {
	return acp.McpServer{Stdio: &acp.McpServerStdio{Name: name, Command: "python3", Args: []string{path, name}, Env: []acp.EnvVariable{}}}
}

func ownServer(name string) acp.McpServer { return server(name, fixtures+"/server.py") }

func current(options []acp.SessionConfigOption, id acp.SessionConfigId) string {
	for _, option := range options {
		if option.Select != nil && option.Select.Id == id {
			return string(option.Select.CurrentValue)
		}
	}
	return ""
}

func set(agent *Agent, it acp.SessionId, id, value string) (acp.SetSessionConfigOptionResponse, error) {
	option := acp.SetSessionConfigOptionValueId{SessionId: it, ConfigId: acp.SessionConfigId(id), Value: acp.SessionConfigValueId(value)}
	return agent.SetSessionConfigOption(background, acp.SetSessionConfigOptionRequest{ValueId: &option})
}

func setMode(agent *Agent, it acp.SessionId, mode string) (acp.SetSessionModeResponse, error) {
	return agent.SetSessionMode(background, acp.SetSessionModeRequest{SessionId: it, ModeId: acp.SessionModeId(mode)})
}

func isGone(pid string) bool {
	state, err := os.ReadFile("/proc/" + pid + "/stat")
	return err != nil || strings.Contains(string(state), " Z ")
}

func cancelled(agent *Agent, it acp.SessionId, when func() bool) {
	end := agent.begin(background, it, longPrompt)
	agent.until(when)
	agent.cancel(it)
	same(<-end, "cancelled")
}

var scenarios = []struct {
	name string
	play func(*stage)
}{
	{"prompt", prompt},
	{"thought", thought},
	{"allowed", allowed},
	{"always", always},
	{"refused", refused},
	{"dismissed", dismissed},
	{"client-servers", clientServers},
	{"cancel", cancel},
	{"waiting", waiting},
	{"killed", killed},
	{"resume", resume},
	{"list", list},
	{"delete", delete_},
	{"close", close_},
	{"two-sessions", twoSessions},
	{"two-folders", twoFolders},
	{"image", image},
	{"resource", resource},
	{"link", link},
	{"errors", errors_},
	{"provider", provider},
	{"cancel-request", cancelRequest},
	{"options", options},
	{"long", long},
	{"end", end},
}
