package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/coder/acp-go-sdk"
)

// Agent is a `duologue acp` process behind the SDK, with what its client has seen.
type Agent struct {
	*acp.ClientSideConnection
	process     *exec.Cmd
	input       *lockedWriter
	ended       sync.Once
	initialized acp.InitializeResponse

	// What the person, and the editor, answer. An empty decision closes the question.
	decide func(context.Context, acp.ToolCallUpdate) string
	buffer func(path string) string

	changed   *sync.Cond
	updates   []acp.SessionNotification
	questions []acp.RequestPermissionRequest
	reads     []string
	withdrawn int
	// Responses to requests that the SDK has no function for.
	asked     int
	responses map[string]response
}

type response struct {
	Id     json.RawMessage   `json:"id"`
	Result json.RawMessage   `json:"result"`
	Error  *acp.RequestError `json:"error"`
}

// lockedWriter takes lines of the SDK and our own, and tells of each prompt that is written.
type lockedWriter struct {
	sync.Mutex
	io.WriteCloser
	prompts chan struct{}
}

func (w *lockedWriter) Write(line []byte) (int, error) {
	w.Lock()
	defer w.Unlock()
	count, err := w.WriteCloser.Write(line)
	if bytes.Contains(line, []byte(`"session/prompt"`)) {
		select {
		case w.prompts <- struct{}{}:
		default:
		}
	}
	return count, err
}

var background = context.Background()

func startAgent(folder string, args []string, readsFiles bool, environment []string) *Agent {
	process := exec.Command(binary, append([]string{"acp"}, args...)...)
	process.Dir = folder
	process.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "XDG_DATA_HOME=" + folder + "/data"}, environment...)
	process.Stderr = os.Stderr
	input := &lockedWriter{WriteCloser: must(process.StdinPipe()), prompts: make(chan struct{}, 1)}
	output := must(process.StdoutPipe())
	agent := &Agent{process: process, input: input, changed: sync.NewCond(&sync.Mutex{}), responses: map[string]response{}}
	agent.decide = func(context.Context, acp.ToolCallUpdate) string { return "allow_once" }
	expect(process.Start() == nil, "the process starts")
	seen, copied := io.Pipe()
	go agent.look(seen)
	agent.ClientSideConnection = acp.NewClientSideConnection(agent, input, io.TeeReader(output, copied))
	agent.SetLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	files := acp.FileSystemCapabilities{ReadTextFile: readsFiles}
	agent.initialized = must(agent.Initialize(background, acp.InitializeRequest{
		ProtocolVersion:    acp.ProtocolVersionNumber,
		ClientCapabilities: acp.ClientCapabilities{Fs: files},
	}))
	expect(agent.initialized.ProtocolVersion == 1, "version 1")
	return agent
}

// look finds the responses to our own requests in what the process writes.
func (a *Agent) look(lines io.Reader) {
	for reader := bufio.NewReader(lines); ; {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			return
		}
		var it response
		if json.Unmarshal(line, &it) == nil && strings.HasPrefix(string(it.Id), `"own-`) {
			a.note(func() { a.responses[string(it.Id)] = it })
		}
	}
}

func (a *Agent) note(change func()) {
	a.changed.L.Lock()
	defer a.changed.L.Unlock()
	change()
	a.changed.Broadcast()
}

// until waits for something that the process says.
func (a *Agent) until(found func() bool) {
	a.changed.L.Lock()
	defer a.changed.L.Unlock()
	for !found() {
		a.changed.Wait()
	}
}

// end ends the input and gives the exit status.
func (a *Agent) end() int {
	a.ended.Do(func() {
		a.input.Close()
		<-a.Done()
		a.process.Wait()
	})
	return a.process.ProcessState.ExitCode()
}

func (a *Agent) kill() {
	a.process.Process.Kill()
	a.end()
}

// What the process asks and says.

func (a *Agent) SessionUpdate(_ context.Context, params acp.SessionNotification) error {
	a.note(func() { a.updates = append(a.updates, params) })
	return nil
}

func (a *Agent) RequestPermission(ctx context.Context, params acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	a.note(func() { a.questions = append(a.questions, params) })
	outcome := acp.NewRequestPermissionOutcomeCancelled()
	if decision := a.decide(ctx, params.ToolCall); decision != "" {
		outcome = acp.NewRequestPermissionOutcomeSelected(acp.PermissionOptionId(decision))
	}
	return acp.RequestPermissionResponse{Outcome: outcome}, nil
}

// untilWithdrawn is a decision that waits until nobody wants it any more.
func (a *Agent) untilWithdrawn(ctx context.Context, _ acp.ToolCallUpdate) string {
	<-ctx.Done()
	a.note(func() { a.withdrawn++ })
	return ""
}

func (a *Agent) ReadTextFile(_ context.Context, params acp.ReadTextFileRequest) (acp.ReadTextFileResponse, error) {
	a.note(func() { a.reads = append(a.reads, params.Path) })
	return acp.ReadTextFileResponse{Content: a.buffer(params.Path)}, nil
}

func notAnnounced() error { return acp.NewMethodNotFound("not announced") }

func (a *Agent) WriteTextFile(context.Context, acp.WriteTextFileRequest) (it acp.WriteTextFileResponse, err error) {
	return it, notAnnounced()
}

func (a *Agent) CreateTerminal(context.Context, acp.CreateTerminalRequest) (it acp.CreateTerminalResponse, err error) {
	return it, notAnnounced()
}

func (a *Agent) KillTerminal(context.Context, acp.KillTerminalRequest) (it acp.KillTerminalResponse, err error) {
	return it, notAnnounced()
}

func (a *Agent) TerminalOutput(context.Context, acp.TerminalOutputRequest) (it acp.TerminalOutputResponse, err error) {
	return it, notAnnounced()
}

func (a *Agent) ReleaseTerminal(context.Context, acp.ReleaseTerminalRequest) (it acp.ReleaseTerminalResponse, err error) {
	return it, notAnnounced()
}

func (a *Agent) WaitForTerminalExit(context.Context, acp.WaitForTerminalExitRequest) (it acp.WaitForTerminalExitResponse, err error) {
	return it, notAnnounced()
}

// What the client asks.

func (a *Agent) open(cwd string, servers ...acp.McpServer) acp.SessionId {
	return must(a.NewSession(background, acp.NewSessionRequest{Cwd: cwd, McpServers: append([]acp.McpServer{}, servers...)})).SessionId
}

func (a *Agent) load(it acp.SessionId, cwd string) (acp.LoadSessionResponse, error) {
	return a.LoadSession(background, acp.LoadSessionRequest{SessionId: it, Cwd: cwd, McpServers: []acp.McpServer{}})
}

// ask gives the text of the answer.
func (a *Agent) ask(it acp.SessionId, prompt ...acp.ContentBlock) string {
	before := a.seen()
	reason := must(a.Prompt(background, acp.PromptRequest{SessionId: it, Prompt: prompt})).StopReason
	expect(reason == acp.StopReasonEndTurn, "stop reason %s", reason)
	return a.textFrom(it, before)
}

func (a *Agent) say(it acp.SessionId, prompt string) string { return a.ask(it, acp.TextBlock(prompt)) }

// begin sends a prompt and gives how it will end, once it is written.
func (a *Agent) begin(ctx context.Context, it acp.SessionId, prompt string) <-chan string {
	end := make(chan string, 1)
	select {
	case <-a.input.prompts:
	default:
	}
	go func() {
		response, err := a.Prompt(ctx, acp.PromptRequest{SessionId: it, Prompt: []acp.ContentBlock{acp.TextBlock(prompt)}})
		if err != nil {
			end <- err.Error()
		} else {
			end <- string(response.StopReason)
		}
	}()
	<-a.input.prompts
	return end
}

func (a *Agent) cancel(it acp.SessionId) {
	expect(a.Cancel(background, acp.CancelNotification{SessionId: it}) == nil, "cancelled")
}

// request sends what the SDK has no function for.
func (a *Agent) request(method string, params any) (json.RawMessage, error) {
	a.asked++
	id := fmt.Sprintf("own-%d", a.asked)
	line := must(json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
	must(a.input.Write(append(line, '\n')))
	id = fmt.Sprintf("%q", id)
	a.until(func() bool { return a.responses[id].Id != nil })
	if found := a.responses[id]; found.Error != nil {
		return nil, found.Error
	}
	return a.responses[id].Result, nil
}

// notify sends a notification that the SDK has no function for.
func (a *Agent) notify(method string, params any) {
	line := must(json.Marshal(map[string]any{"jsonrpc": "2.0", "method": method, "params": params}))
	must(a.input.Write(append(line, '\n')))
}

// What the client has seen.

func (a *Agent) seen() (count int) {
	a.note(func() { count = len(a.updates) })
	return count
}

func (a *Agent) since(it acp.SessionId, from int) (found []acp.SessionUpdate) {
	for _, update := range a.updates[from:] {
		if update.SessionId == it {
			found = append(found, update.Update)
		}
	}
	return found
}

func (a *Agent) textFrom(it acp.SessionId, from int) string {
	var text strings.Builder
	for _, chunk := range a.answers(it, from) {
		text.WriteString(chunk.Content.Text.Text)
	}
	return text.String()
}

func (a *Agent) text(it acp.SessionId) string { return a.textFrom(it, 0) }

func (a *Agent) answers(it acp.SessionId, from int) (found []*acp.SessionUpdateAgentMessageChunk) {
	for _, update := range a.since(it, from) {
		if update.AgentMessageChunk != nil {
			found = append(found, update.AgentMessageChunk)
		}
	}
	return found
}

func (a *Agent) prompts(it acp.SessionId) (text string) {
	for _, update := range a.since(it, 0) {
		if update.UserMessageChunk != nil {
			text += update.UserMessageChunk.Content.Text.Text
		}
	}
	return text
}

// calls gives the states of each tool call, with its title: "get_time pending in_progress completed".
func (a *Agent) calls(it acp.SessionId, from int) (found []string) {
	at := map[acp.ToolCallId]int{}
	for _, update := range a.since(it, from) {
		if call := update.ToolCall; call != nil {
			at[call.ToolCallId] = len(found)
			found = append(found, fmt.Sprintf("%s %s", call.Title, call.Status))
		} else if call := update.ToolCallUpdate; call != nil && call.Status != nil {
			found[at[call.ToolCallId]] += " " + string(*call.Status)
		}
	}
	return found
}

func (a *Agent) isAtWork(it acp.SessionId) func() bool {
	return func() bool { return strings.Contains(strings.Join(a.calls(it, 0), " "), "in_progress") }
}

// results gives the results of tool calls that have succeeded.
func (a *Agent) results(it acp.SessionId) (found []string) {
	for _, update := range a.since(it, 0) {
		if call := update.ToolCallUpdate; call != nil && call.Status != nil && *call.Status == acp.ToolCallStatusCompleted {
			found = append(found, call.Content[0].Content.Content.Text.Text)
		}
	}
	return found
}
