package duologue_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	duologue "duologue/clients/go"
	"duologue/clients/go/messages"
)

func Example() {
	ctx := context.Background()
	chat, err := duologue.Start(ctx, duologue.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer chat.Close()
	result, err := chat.Run(ctx, "What is a duologue?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text)
	stream := chat.Stream(ctx, "Explain it to a child.")
	for event := range stream.Events() {
		fmt.Print(event.Text())
	}
	if _, err := stream.Result(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Turn 1. You said: What is a duologue?
	// Turn 2. You said: Explain it to a child.
	// Before that you said: What is a duologue?
}

func ExampleNewTool() {
	type place struct {
		City string `json:"city" description:"in English"`
	}
	times := map[string]string{"Berlin": "12:00", "Lima": "05:00"}
	getTime := duologue.NewTool("get_time", "The local time in a city.",
		func(_ context.Context, args place) (any, error) {
			if time, ok := times[args.City]; ok {
				return time, nil
			}
			return nil, errors.New("no such city: " + args.City)
		})
	chat, err := duologue.Start(context.Background(), duologue.Options{
		Tools: []duologue.Tool{getTime},
		Approve: func(_ context.Context, request *messages.ToolApprovalRequested) duologue.Decision {
			return duologue.Deny("No tools of servers here.")
		},
		Env: played, // A script stands in for a model.
	})
	if err != nil {
		log.Fatal(err)
	}
	defer chat.Close()
	result, err := chat.Run(context.Background(), "What time is it in Berlin and in Oz?")
	if err != nil {
		log.Fatal(err)
	}
	for _, call := range result.ToolCalls {
		fmt.Println(call.Name, call.Input, "->", call.Result)
	}
	fmt.Println(result.Text)
	// Output:
	// get_time {"city":"Berlin"} -> {"result":"12:00"}
	// get_time {"city":"Oz"} -> no such city: Oz
	// It is noon in Berlin. I found no city called Oz.
}

var played = []string{"DUOLOGUE_ECHO_SCRIPT=" + filepath.Join(root, "examples/tool_calls.jsonl")}

func ExampleInto() {
	chat, err := duologue.Start(context.Background(), duologue.Options{Env: answered(`{"name":"Berlin","population":3700000}`)})
	if err != nil {
		log.Fatal(err)
	}
	defer chat.Close()
	var city struct {
		Name       string `json:"name"`
		Population int    `json:"population"`
	}
	if _, err := chat.Run(context.Background(), "Where is the Brandenburg Gate?", duologue.Into(&city)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(city.Name, city.Population)
	// Output: Berlin 3700000
}

// answered has the built-in engine give an answer.
func answered(text string) []string {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("duologue-%d.txt", os.Getpid()))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	leftovers = append(leftovers, path)
	return []string{"DUOLOGUE_ECHO_ANSWER=" + path}
}

func ExampleClient_Reconnect() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "duologue-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	chat, err := duologue.Start(ctx, duologue.Options{Store: filepath.Join(folder, "chat.db"), Session: "ada"})
	if err != nil {
		log.Fatal(err)
	}
	defer chat.Close()
	_, err = chat.Run(ctx, "My name is Ada.")
	if errors.Is(err, duologue.ErrProcessEnded) {
		changes, err := chat.Reconnect(ctx)
		if err != nil {
			log.Fatal(err)
		}
		for _, change := range changes {
			fmt.Println(change.Text) // what was not shown before
		}
	}
	entities, err := chat.History(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, entity := range entities {
		if message, ok := entity.Payload().(*messages.ChatMessageEntity); ok {
			fmt.Printf("%s: %s\n", message.GetRole(), message.GetText())
		}
	}
	// Output:
	// user: My name is Ada.
	// assistant: Turn 1. You said: My name is Ada.
}
