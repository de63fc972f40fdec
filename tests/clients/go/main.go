// A strict client: reads the frames of one process and says which of them a client would choke on.
//
//	go run . DESCRIPTORS < frames.jsonl
//	go run . DESCRIPTORS --self-test SAMPLES
//
// DESCRIPTORS is a serialized FileDescriptorSet. What is checked stands in ../README.md.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	good, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if !good {
		os.Exit(1)
	}
}

func run(arguments []string) (bool, error) {
	if len(arguments) != 1 && (len(arguments) != 3 || arguments[1] != "--self-test") {
		return false, fmt.Errorf("usage: check_frames DESCRIPTORS [--self-test SAMPLES]")
	}
	client, err := newClient(arguments[0])
	if err != nil {
		return false, err
	}
	if len(arguments) == 3 {
		return selfTest(client, arguments[2])
	}
	data, err := io.ReadAll(os.Stdin)
	if err != nil {
		return false, err
	}
	return report(client, data), nil
}

func report(client *client, data []byte) bool {
	failures, lineCount := check(client, data)
	for _, failure := range failures {
		fmt.Printf("line %d: %s\n", failure.line, failure.reason)
	}
	failed := len(failedLines(failures))
	fmt.Printf("%d passed, %d failed\n", max(lineCount-failed, 0), failed)
	return len(failures) == 0
}

// selfTest reports whether each sample is rejected at the lines listed for it, and at no others.
func selfTest(client *client, samples string) (bool, error) {
	listed, err := readIndex(filepath.Join(samples, "index.json"))
	if err != nil {
		return false, err
	}
	wrong := 0
	for name, lines := range listed {
		data, err := os.ReadFile(filepath.Join(samples, name))
		if err != nil {
			return false, err
		}
		failures, _ := check(client, data)
		if found := failedLines(failures); !slices.Equal(found, lines) {
			wrong++
			fmt.Printf("%s: rejected lines %v, not %v: %v\n", name, found, lines, failures)
		}
	}
	fmt.Printf("%d passed, %d failed\n", len(listed)-wrong, wrong)
	return wrong == 0, nil
}

func readIndex(path string) (map[string][]int, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	index := map[string][]int{}
	err = json.Unmarshal(data, &index)
	return index, err
}

func failedLines(failures []failure) []int {
	var lines []int
	for _, failure := range failures {
		lines = append(lines, failure.line)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}
