package duologue

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Options of a client. The zero value is a conversation that is not stored, with what the environment configures.
type Options struct {
	// Binary is the program; otherwise DUOLOGUE_BIN, the one beside this program, or the one on the PATH.
	Binary string
	// Store is where the conversation is stored, otherwise where DUOLOGUE_STORE says, and Session its name there: the
	// same one goes on with it.
	Store, Session string
	// Engine, Model and Profile choose what answers.
	Engine, Model, Profile string
	// System is the system prompt.
	System string
	// Args are further options of "duologue rpc".
	Args []string
	// Tools are functions that the model may call.
	Tools []Tool
	// Approve decides about calls of tool servers; without it they are denied.
	Approve Approve
	// ApproveTimeout is the longest time of a decision; 0: an hour.
	ApproveTimeout time.Duration
	// OnEvent gets events that are no part of an answer, and in no stream: of the session, of edits, of a change of the
	// model or of a compaction. OnError gets errors of the store. Neither may wait for the client. They run in a
	// goroutine of the client, so that a panic in them ends the program.
	OnEvent func(*Event)
	OnError func(error)
	// Queue makes a prompt during a run wait for its turn; otherwise it is an ErrBusy.
	Queue bool
	// Env are variables, as NAME=value, in addition to those of this program, of which DUOLOGUE_EVENTS and
	// DUOLOGUE_PATCH_MODE are left out.
	Env []string
	// Dir is the folder of the process; by default that which this program has at the start, also for a process that is
	// started later.
	Dir string
	// StartTimeout is how long the process may take to begin; 0: 30 s.
	StartTimeout time.Duration
	// CloseTimeout is how long it may take to end before it is made to; 0: 5 s.
	CloseTimeout time.Duration
	// CancelTimeout is how long a run may take to stop; 0: 5 s.
	CancelTimeout time.Duration
	// LineBytesMax is the longest line of the server; 0: 256 MiB.
	LineBytesMax int
	// PageEntities is the most entities that History asks for at a time; 0: 500.
	PageEntities int
}

const extensions = "approvals,client-tools,edit,history,retries,settings,steer,store,structured,switch-model," +
	"targeted-cancel,timing,tool-servers,usage"

var newerExtensions = []string{"tool-progress"}

func (o *Options) setDefaults() {
	o.ApproveTimeout = orElse(o.ApproveTimeout, time.Hour)
	o.StartTimeout = orElse(o.StartTimeout, 30*time.Second)
	o.CloseTimeout = orElse(o.CloseTimeout, 5*time.Second)
	o.CancelTimeout = orElse(o.CancelTimeout, 5*time.Second)
	o.LineBytesMax = orElse(o.LineBytesMax, 256*1024*1024)
	o.PageEntities = orElse(o.PageEntities, 500)
	o.settleDir()
}

// settleDir names the folder of the process, which is to have the same when it is started again.
func (o *Options) settleDir() {
	own, err := os.Getwd()
	switch {
	case err != nil || filepath.IsAbs(o.Dir):
	case o.Dir == "":
		o.Dir = own
	default:
		o.Dir = own + string(filepath.Separator) + o.Dir
	}
}

// store is where the conversation is stored: what was told, or what the variable says that the process has.
func (o *Options) store() string {
	if o.Store != "" {
		return o.Store
	}
	for _, variable := range slices.Backward(o.Env) {
		if value, ok := strings.CutPrefix(variable, "DUOLOGUE_STORE="); ok {
			return value
		}
	}
	return os.Getenv("DUOLOGUE_STORE")
}

// environment returns the variables of the process: those of this program, and then those of the options. Two that are
// meant for scripts are left out: without all events this package has no text and answers no calls of tools, and programs
// print the patches of a stream one after the other.
func (o *Options) environment() []string {
	own := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "DUOLOGUE_EVENTS=") || strings.HasPrefix(variable, "DUOLOGUE_PATCH_MODE=")
	})
	return append(own, o.Env...)
}

func orElse[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

func (o *Options) args() []string {
	busy := "reject"
	if o.Queue {
		busy = "queue"
	}
	args := []string{
		"rpc", "--on-busy=" + busy, "--final-snapshot=none", "--approval=ask", "--extensions=" + extensions,
	}
	for _, option := range [][2]string{
		{"engine", o.Engine}, {"model", o.Model}, {"profile", o.Profile}, {"system", o.System}, {"store", o.Store},
		{"session", o.Session},
	} {
		if option[1] != "" {
			args = append(args, "--"+option[0]+"="+option[1])
		}
	}
	return append(args, o.Args...)
}

// A PromptOption is something that a prompt has. Replace takes Attach, Resource and Remove alone.
type PromptOption func(members map[string]any, into *any)

// Attach sends images and files with the prompt: URLs, or paths, from the folder that this program has then.
func Attach(places ...string) PromptOption {
	return func(submit map[string]any, _ *any) {
		attachments, _ := submit["attachments"].([]map[string]any)
		for _, place := range places {
			attachments = append(attachments, map[string]any{"url": ownPlace(place)})
		}
		submit["attachments"] = attachments
	}
}

// url is what the server takes for a URL; any other place is a path.
var url = regexp.MustCompile(`(?i)^((https?|data|file):|[a-z0-9+.-]+://)`)

// ownPlace makes a path absolute by the folder of this program: the process may have another.
func ownPlace(place string) string {
	own, err := os.Getwd()
	isOwn := strings.TrimSpace(place) != "" && !url.MatchString(place) && !filepath.IsAbs(place)
	if !isOwn || err != nil || !utf8.ValidString(own) {
		return place
	}
	return own + string(filepath.Separator) + place
}

// Resource sends a resource of a tool server with the prompt.
func Resource(server, uri string) PromptOption {
	return func(submit map[string]any, _ *any) {
		resources, _ := submit["resources"].([]map[string]any)
		submit["resources"] = append(resources, map[string]any{"server": server, "uri": uri})
	}
}

// Remove leaves out attachments of the prompt that Replace replaces.
func Remove(attachmentIDs ...string) PromptOption {
	return func(replace map[string]any, _ *any) { replace["removedAttachmentIds"] = attachmentIDs }
}

// Settings are those of this turn alone, as "model" or "temperature".
func Settings(settings map[string]any) PromptOption {
	return func(submit map[string]any, _ *any) { submit["settings"] = settings }
}

// Into asks for an answer of the type that target points to, and stores the answer there, in place of what is there. It panics if the type has no
// JSON Schema.
func Into(target any) PromptOption {
	t := reflect.TypeOf(target)
	if t == nil || t.Kind() != reflect.Pointer {
		panic("duologue.Into: the target is not a pointer")
	}
	schema, err := SchemaOf(t.Elem())
	if err != nil {
		panic(fmt.Sprintf("duologue.Into: %v", err))
	}
	return IntoSchema(target, schema)
}

// IntoSchema is like Into, with a JSON Schema that says more than the type. The target may be nil: Result.Values has
// the answer.
func IntoSchema(target any, schema map[string]any) PromptOption {
	return func(submit map[string]any, into *any) {
		submit["responseSchema"] = schema
		*into = target
	}
}
