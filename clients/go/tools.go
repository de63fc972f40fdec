package duologue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"duologue/clients/go/messages"
)

// ToolTime is the longest time of a tool that names none.
const ToolTime = time.Minute

// A Tool is a function that the model may call. NewTool makes one.
type Tool struct {
	Name, Description string
	// Parameters is the JSON Schema of the arguments.
	Parameters map[string]any
	// Timeout is the longest time of a call; 0: ToolTime.
	Timeout time.Duration
	// Run gets the arguments as JSON, and a context that has the values of the prompt's and ends when nobody waits any
	// more. An error is a result that the model reads.
	Run func(ctx context.Context, arguments json.RawMessage) (any, error)
}

// NewTool makes a tool of a function whose arguments are a struct. It panics if the struct has no JSON Schema.
func NewTool[A any](name, description string, run func(context.Context, A) (any, error)) Tool {
	parameters, err := SchemaOf(reflect.TypeFor[A]())
	if err != nil {
		panic(fmt.Sprintf("the tool %s: %v", name, err))
	}
	return Tool{
		Name: name, Description: description, Parameters: parameters,
		Run: func(ctx context.Context, raw json.RawMessage) (any, error) {
			var arguments A
			if err := json.Unmarshal(raw, &arguments); err != nil {
				return nil, err
			}
			return run(ctx, arguments)
		},
	}
}

func (t *Tool) descriptor() map[string]any {
	return map[string]any{"name": t.Name, "description": t.Description, "inputSchema": t.Parameters}
}

// call returns the members of a toolResult. What goes wrong is a result too, and the model reads it.
func (t *Tool) call(ctx context.Context, arguments json.RawMessage) map[string]any {
	patience := t.Timeout
	if patience == 0 {
		patience = ToolTime
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ended := make(chan map[string]any, 1)
	go func() {
		// Also of a tool that ends its goroutine.
		result := toolError("the tool returned nothing")
		defer func() {
			if cause := recover(); cause != nil {
				result = toolError(fmt.Sprintf("the tool panicked: %v", cause))
			}
			ended <- result
		}()
		result = t.result(ctx, arguments)
	}()
	select {
	case <-ctx.Done():
		return toolError(fmt.Sprintf("the tool took longer than %v", patience))
	case result := <-ended:
		return result
	}
}

// result calls the tool. A value and an error may have methods of the program, which may panic too.
func (t *Tool) result(ctx context.Context, arguments json.RawMessage) map[string]any {
	value, err := t.Run(ctx, arguments)
	if err != nil {
		return toolError(textOf(err))
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return toolError("the result is no JSON: " + textOf(err))
	}
	if len(raw) == 0 || raw[0] != '{' {
		return map[string]any{"status": "success", "result": map[string]any{"result": json.RawMessage(raw)}}
	}
	return map[string]any{"status": "success", "result": json.RawMessage(raw)}
}

// textOf returns what an error says; one that is a nil pointer of its type may have no text.
func textOf(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("an error of the type %T, which has no text", err)
		}
	}()
	return err.Error()
}

func toolError(text string) map[string]any {
	return map[string]any{"status": "error", "error": text}
}

// A Decision is one about a call of a tool server: Allow, AllowSession, or Deny.
type Decision struct{ decision, reason string }

// Allow runs the call, AllowSession also later ones of the same tool.
var (
	Allow        = Decision{decision: "ALLOW_ONCE"}
	AllowSession = Decision{decision: "ALLOW_SESSION"}
)

// Deny does not run the call. The model reads the reason.
func Deny(reason string) Decision { return Decision{"DENY", reason} }

// An Approve decides about calls of tool servers. The context has the values of the prompt's.
type Approve func(ctx context.Context, request *messages.ToolApprovalRequested) Decision

// decide returns the members of an approve. Nobody to ask, no answer in time, and a panic are a no.
func (approve Approve) decide(ctx context.Context, request *messages.ToolApprovalRequested, patience time.Duration) Decision {
	if approve == nil {
		return Deny("This program approves no tool calls.")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	decided := make(chan Decision, 1)
	go func() {
		defer func() {
			if recover() != nil {
				decided <- Deny("The program could not decide.")
			}
		}()
		decided <- approve(ctx, request)
	}()
	select {
	case decision := <-decided:
		if decision == (Decision{}) {
			return Deny("It was denied.")
		}
		return decision
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return Deny(fmt.Sprintf("Nobody decided within %v.", patience))
		}
		return Deny("Nobody waits for the decision.")
	}
}
