package duologue_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	duologue "duologue/clients/go"
)

// BenchmarkDeltas measures how long 1,000 deltas take, and how long reading and parsing the same lines alone.
func BenchmarkDeltas(b *testing.B) {
	b.Run("alone", func(b *testing.B) {
		server := exec.Command(difficultServer)
		server.Env = append(os.Environ(), "DIFFICULT=burst:1000")
		stdin, _ := server.StdinPipe()
		stdout, _ := server.StdoutPipe()
		if err := server.Start(); err != nil {
			b.Fatal(err)
		}
		lines := bufio.NewReaderSize(stdout, 256*1024)
		_, _ = lines.ReadSlice('\n')
		least := time.Hour // of all runs: what else the machine does only adds to a time
		for at := 0; b.Loop(); at++ {
			fmt.Fprintf(stdin, `{"requestId":"r%d","submit":{"prompt":"x"}}`+"\n", at)
			line, _ := lines.ReadSlice('\n')
			begin := time.Now()
			for {
				var frame map[string]any
				if err := json.Unmarshal(line, &frame); err != nil {
					b.Fatal(err)
				}
				if frame["done"] != nil {
					break
				}
				line, _ = lines.ReadSlice('\n')
			}
			least = min(least, time.Since(begin))
		}
		b.ReportMetric(least.Seconds()*1000, "ms/1000deltas")
		_ = stdin.Close()
		_ = server.Wait()
	})
	b.Run("client", func(b *testing.B) {
		chat, err := duologue.Start(context.Background(), difficult("burst:1000"))
		if err != nil {
			b.Fatal(err)
		}
		defer chat.Close()
		least := time.Hour
		for b.Loop() {
			var begin time.Time
			length := 0
			for event := range chat.Stream(context.Background(), "x").Events() {
				if begin.IsZero() {
					begin = time.Now()
				}
				length += len(event.Text())
			}
			least = min(least, time.Since(begin))
		}
		b.ReportMetric(least.Seconds()*1000, "ms/1000deltas")
	})
}
