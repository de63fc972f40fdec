package duologue

import (
	"encoding/json"
	"slices"

	"duologue/clients/go/messages"
)

// A Result is the outcome of a run.
type Result struct {
	// Status is "ok", or "stopped" where the run was cancelled.
	Status string
	// Text is the answer: what the last call of the model said.
	Text string
	// Texts is what each call of the model said.
	Texts []string
	// Reasoning is the reasoning of all calls.
	Reasoning string
	// ToolCalls are the calls that the model made.
	ToolCalls []ToolCall
	// Values are the values that were found in an answer that was asked for with Into, in Text, as JSON.
	Values []json.RawMessage
	// Usage has the token counts of the run; nil if they are not known.
	Usage *messages.TokenCounts
	// Cost is a decimal number in Currency; empty if the prices are not known.
	Cost, Currency string
	// FinishClass says why the last call of the model ended.
	FinishClass string
	// MessageID is the message id of the prompt.
	MessageID string
	// Joined: the prompt has joined the run that it was to join.
	Joined bool
}

// IsTruncated reports whether the answer was cut off, at a token limit or by a filter of the provider.
func (r *Result) IsTruncated() bool {
	return r.FinishClass == "max_tokens" || r.FinishClass == "content_filter"
}

// A ToolCall is a call that the model made.
type ToolCall struct {
	ID, Name string
	// Input is the arguments, as JSON text.
	Input string
	// Result is empty until the call has returned.
	Result, Status string
}

// summary makes a Result of events. Patches are not among those it needs.
type summary struct {
	result Result
	calls  []string // of the model, one for each of result.Texts
}

func (s *summary) apply(event *Event) {
	if event.Type == textPatch || event.Type == reasoningPatch {
		return // Its payload need not be read here.
	}
	result := &s.result
	switch payload := event.Payload().(type) {
	case *messages.ChatTextSegmentFinished:
		s.text(payload.GetCorrelation().GetProviderCallId(), payload.GetText())
	case *messages.ChatReasoningSegmentFinished:
		result.Reasoning += payload.GetText()
	case *messages.ChatToolCallRequested:
		*s.call(payload.GetToolCallId(), payload.GetToolName()) = ToolCall{
			ID: payload.GetToolCallId(), Name: payload.GetToolName(), Input: payload.GetInput(),
		}
	case *messages.ChatToolResultReady:
		call := s.call(payload.GetToolCallId(), payload.GetToolName())
		call.Result, call.Status = payload.GetResult(), payload.GetStatus()
	case *messages.UsageTotals:
		result.Usage = payload.GetRun()
		result.Cost, result.Currency = payload.GetRun().GetCost(), payload.GetRun().GetCurrency()
	case *messages.ObjectExtracted:
		result.Values = append(result.Values, json.RawMessage(payload.GetJson()))
	case *messages.AnswerRejected, *messages.ChatProviderCallStarted:
		result.Values = nil // What was found does not count: the answer is what the last call says.
	case *messages.ChatProviderCallFinished:
		result.FinishClass = payload.GetFinishClass()
	case *messages.ChatUserMessageAccepted:
		if result.MessageID == "" {
			result.MessageID = payload.GetMessageId()
		}
	case *messages.SteeringAccepted:
		result.MessageID, result.Joined = payload.GetMessageId(), true
	}
}

func (s *summary) text(call, text string) {
	at := slices.Index(s.calls, call)
	if at < 0 {
		at = len(s.calls)
		s.calls = append(s.calls, call)
		s.result.Texts = append(s.result.Texts, "")
	}
	s.result.Texts[at] += text
	s.result.Text = s.result.Texts[len(s.result.Texts)-1]
}

func (s *summary) call(id, name string) *ToolCall {
	calls := &s.result.ToolCalls
	at := slices.IndexFunc(*calls, func(call ToolCall) bool { return call.ID == id })
	if at < 0 {
		at = len(*calls)
		*calls = append(*calls, ToolCall{ID: id, Name: name})
	}
	return &(*calls)[at]
}
