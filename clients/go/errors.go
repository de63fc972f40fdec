package duologue

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// What an error is, for errors.Is. A ProviderError and a ProcessEnded have more to say, for errors.As.
var (
	// ErrNotInstalled: there is no program duologue where it was looked for. Trying again does not help.
	ErrNotInstalled = errors.New("duologue is not installed")
	// ErrProtocol: the program does not speak the protocol, or has stopped doing so.
	ErrProtocol = errors.New("not the protocol of duologue")
	// ErrVersion: the program is too old for this package. It is an ErrProtocol, too.
	ErrVersion = fmt.Errorf("duologue is too old: %w", ErrProtocol)
	// ErrTooLong: a line is longer than a limit, of the server for a request, of the client for a frame.
	ErrTooLong = errors.New("longer than the limit")
	// ErrClosed: the client was closed, before the request was sent or before the process had answered it.
	ErrClosed = errors.New("the client was closed")
	// ErrProcessEnded: the process ended before it had answered. Client.Reconnect goes on from the store.
	ErrProcessEnded = errors.New("the process has ended")
	// ErrBusy: a run is active, and Options.Queue is not set.
	ErrBusy = errors.New("a run is active")
	// ErrSessionMismatch: the request names another session than the process holds.
	ErrSessionMismatch = errors.New("another session")
	// ErrProvider: the model could not answer.
	ErrProvider = errors.New("the model could not answer")
	// ErrConfig: the command line, a file, a key or a model is wrong. Trying again does not help.
	ErrConfig = errors.New("wrong configuration")
	// ErrTool: a list of tools, or a result, can't be taken; or a run ended because of its tools.
	ErrTool = errors.New("wrong tool")
	// ErrStore: the conversation can't be stored or read, or another process holds it.
	ErrStore = errors.New("store failed")
	// ErrAnswer: the model has answered, but not with what was asked for.
	ErrAnswer = errors.New("another answer than was asked for")
)

// A ProcessEnded says how a process ended.
type ProcessEnded struct {
	// Status is the exit status; -1 if a signal ended the process.
	Status int
	// How says it for people, as "exit status 2" or "signal: killed".
	How string
	// Stderr is the end of what the process wrote to standard error.
	Stderr string
	// Cause is the error that the process reported before, if it did.
	Cause error
}

func (e *ProcessEnded) Error() string {
	text := "duologue ended: " + e.How
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text + tail(e.Stderr)
}

// Is makes it an ErrProcessEnded.
func (e *ProcessEnded) Is(target error) bool { return target == ErrProcessEnded }

// Unwrap returns the error that the process reported before it ended.
func (e *ProcessEnded) Unwrap() error { return e.Cause }

// A RequestError is the server's: it refused a request, or its run failed.
type RequestError struct {
	// Code is for programs, as "session_busy".
	Code string
	// Message is for people.
	Message string
	// Detail says more. For the errors of a provider it begins with their class.
	Detail string
	// Answer is what the model has answered where the error is an ErrAnswer.
	Answer string
}

// Error is the message, and in parentheses what the detail says besides.
func (e *RequestError) Error() string {
	return withDetail(orElse(e.Message, e.Code), e.Detail)
}

// className is what the detail of a failed run begins with.
var className = regexp.MustCompile(`^[a-z_]+:(?: |$)`)

// saidChars are those by whose presence in a message a text counts as said: a message has a long text cut.
const saidChars = 100

// withDetail adds what the message does not have of the detail: parts after a class, up to a rest that is said, or else
// all of it.
func withDetail(message, detail string) string {
	class := className.FindString(detail)
	lower := strings.ToLower(message)
	isSaid := func(text string) bool {
		if start := []rune(text); len(start) > saidChars {
			text = string(start[:saidChars])
		}
		return strings.Contains(lower, strings.ToLower(text))
	}
	var added []string
	for rest := strings.TrimSpace(detail[len(class):]); !isSaid(rest); {
		part, more := rest, ""
		if class != "" {
			part, more, _ = strings.Cut(rest, ": ")
		}
		if part = strings.TrimSpace(part); !isSaid(part) {
			added = append(added, part)
		}
		rest = strings.TrimSpace(more)
	}
	if len(added) == 0 {
		return message
	}
	return message + " (" + class + strings.Join(added, ": ") + ")"
}

// Is tells the kinds of errors apart. Codes of later versions are of no kind.
func (e *RequestError) Is(target error) bool {
	class := e.class()
	switch e.Code {
	case "session_busy":
		return target == ErrBusy
	case "session_mismatch":
		return target == ErrSessionMismatch
	case "store_failed", "session_locked", "snapshot_failed":
		return target == ErrStore
	case "invalid_tools", "unknown_tool_call":
		return target == ErrTool
	case "invalid_answer":
		return target == ErrAnswer
	case "run_failed", "engine_init_failed":
		switch class {
		case "tool":
			return target == ErrTool
		case "config":
			return target == ErrConfig || target == ErrProvider
		default:
			return target == ErrProvider
		}
	default:
		return false
	}
}

func (e *RequestError) class() string {
	class, _, _ := strings.Cut(e.Detail, ":")
	switch class {
	case "auth", "rate_limited", "context_overflow", "timeout", "network", "provider", "malformed_stream", "tool",
		"config", "aborted", "internal":
		return class
	default:
		return "internal"
	}
}

// A ProviderError says why the model could not answer.
type ProviderError struct {
	RequestError
	// Class is the class of the failure, as "rate_limited".
	Class string
	// Retryable: the same prompt may succeed later.
	Retryable bool
	// RetryAfter is the wait that the provider has asked for, where it is too long for the server's own retries; or 0.
	RetryAfter time.Duration
}

// Unwrap returns the error as any other of the server.
func (e *ProviderError) Unwrap() error { return &e.RequestError }

var wait = regexp.MustCompile(`requests a wait of (\d+) s`)

// The status with which a provider has failed.
var status = regexp.MustCompile(`^provider: (?:status|code) (\d+)`)

// outOfCredit matches a detail of the class rate_limited that is about an account without credit: waiting does not help.
var outOfCredit = regexp.MustCompile(`(?i)^rate_limited: (status|code) 402(\D|$)|insufficient_quota|` +
	`billing_hard_limit_reached|billing_not_active|exceeded_current_quota|credit balance is too low|insufficient[_ ]balance`)

// isPassing tells whether the same prompt may succeed after this status, as the program's exit status 75 does.
func isPassing(status int) bool {
	switch status {
	case 501, 505:
		return false
	case 408, 409, 429:
		return true
	}
	return status >= 500 && status <= 599
}

// errorOf returns the error that an error frame stands for.
func errorOf(frame *errorFrame) error {
	request := RequestError{Code: frame.Code, Message: frame.Message, Detail: frame.Detail}
	if !request.Is(ErrProvider) {
		return &request
	}
	err := &ProviderError{RequestError: request, Class: request.class()}
	switch err.Class {
	case "timeout", "network":
		err.Retryable = true
	case "rate_limited":
		err.Retryable = !outOfCredit.MatchString(frame.Detail)
	case "provider":
		if found := status.FindStringSubmatch(frame.Detail); found != nil {
			code, _ := strconv.Atoi(found[1])
			err.Retryable = isPassing(code)
		}
	}
	if found := wait.FindStringSubmatch(frame.Message); found != nil {
		seconds, _ := strconv.Atoi(found[1])
		err.RetryAfter = time.Duration(seconds) * time.Second
	}
	return err
}

func tail(stderr string) string {
	const bytesMax = 2000
	stderr = strings.TrimSpace(stderr)
	if stderr == "" {
		return ""
	}
	if len(stderr) > bytesMax {
		stderr = strings.ToValidUTF8(stderr[len(stderr)-bytesMax:], "")
	}
	return "; it wrote to standard error: " + stderr
}
