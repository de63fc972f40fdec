// Holds a conversation at a node, with types generated from the published files, as fleet.py does.
//
//	fleet HOST:PORT SESSION
package main

import (
	"context"
	"fmt"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"duologue.test/fleet/gen"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(address, session string) error {
	channel, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer channel.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	node := gen.NewFleetClient(channel)
	if err := ask(ctx, node, session, "What is a duologue?", "And what is it good for?"); err != nil {
		return err
	}
	text, err := watch(ctx, node, session, 0)
	if err != nil {
		return err
	}
	fmt.Println("watched:", text)
	stored, err := node.Get(ctx, &gen.GetRequest{SessionId: session})
	if err != nil {
		return err
	}
	fmt.Println("turns:", stored.Turns)
	if _, err := node.Delete(ctx, &gen.DeleteRequest{SessionId: session}); err != nil {
		return err
	}
	_, err = node.Get(ctx, &gen.GetRequest{SessionId: session})
	fmt.Println("gone:", status.Code(err) == codes.NotFound)
	return nil
}

func ask(ctx context.Context, node gen.FleetClient, session string, prompts ...string) error {
	stream, err := node.Converse(ctx)
	if err != nil {
		return err
	}
	attach := &gen.ConverseRequest_Attach{Attach: &gen.Attach{SessionId: session}}
	if err := stream.Send(&gen.ConverseRequest{Message: attach}); err != nil {
		return err
	}
	for number, prompt := range prompts {
		name := fmt.Sprintf("r%d", number+1)
		submit := &gen.RpcRequestLine_Submit{Submit: &gen.SubmitPromptRequest{Prompt: prompt}}
		line := &gen.RpcRequestLine{RequestId: name, Request: submit}
		request := &gen.ConverseRequest_Request{Request: line}
		if err := stream.Send(&gen.ConverseRequest{Message: request}); err != nil {
			return err
		}
		fmt.Printf("you: %s\nit: ", prompt)
		for {
			frame, err := stream.Recv()
			if err != nil {
				return err
			}
			patch := new(gen.ChatTextPatch)
			if payload := frame.GetUiEvent().GetPayload(); payload.MessageIs(patch) {
				if err := payload.UnmarshalTo(patch); err != nil {
					return err
				}
				fmt.Print(patch.Text)
			}
			if frame.GetDone() != nil && frame.RequestId == name {
				break
			}
		}
		fmt.Println()
	}
	return stream.CloseSend()
}

// The answer to the first run after that event.
func watch(ctx context.Context, node gen.FleetClient, session string, since uint64) (string, error) {
	stream, err := node.Watch(ctx, &gen.Attach{SessionId: session, SinceOrdinal: &since})
	if err != nil {
		return "", err
	}
	segment := new(gen.ChatTextSegmentFinished)
	for {
		frame, err := stream.Recv()
		if err != nil {
			return "", err
		}
		if payload := frame.GetUiEvent().GetPayload(); payload.MessageIs(segment) {
			if err := payload.UnmarshalTo(segment); err != nil {
				return "", err
			}
		}
		if frame.GetDone() != nil {
			return segment.Text, nil
		}
	}
}
