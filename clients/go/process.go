package duologue

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	stderrBytes = 16 * 1024
	termTime    = 2 * time.Second
	// How long the rest of standard error is waited for once standard output has ended.
	stderrTime   = time.Second
	queuedWrites = 64
)

// findBinary returns the program: the option, DUOLOGUE_BIN, the one beside this program, or the one on the PATH.
func findBinary(named string) (string, error) {
	if named != "" {
		return lookUp(named, "the option Binary")
	}
	if variable := os.Getenv("DUOLOGUE_BIN"); variable != "" {
		return lookUp(variable, "the variable DUOLOGUE_BIN")
	}
	if self, err := os.Executable(); err == nil {
		if own, err := exec.LookPath(filepath.Join(filepath.Dir(self), "duologue")); err == nil && own != self {
			return own, nil
		}
	}
	found, err := absolute(exec.LookPath("duologue"))
	if err != nil {
		return "", fmt.Errorf("%w: it is not beside this program and not on the PATH; install it, or name the program "+
			"with the option Binary or the variable DUOLOGUE_BIN", ErrNotInstalled)
	}
	return found, nil
}

func lookUp(name, source string) (string, error) {
	found, err := absolute(exec.LookPath(name))
	if err != nil {
		return "", fmt.Errorf("%w: %s, which %s names, is not a program that can be run", ErrNotInstalled, name, source)
	}
	return found, nil
}

// absolute is for a process that gets another folder than that of this program.
func absolute(path string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// process is a process and its three pipes.
type process struct {
	cmd    *exec.Cmd
	stdout io.ReadCloser
	writes chan []byte
	// ended is closed when the process has ended and its pipes are read.
	ended chan struct{}

	// stderrRead is closed when standard error has been read to its end.
	stderrRead chan struct{}

	mu     sync.Mutex
	stderr []byte

	closeStdin func() error
}

// startProcess starts a process; onStderr gets the end of what that has written to standard error, where there is more.
func startProcess(command []string, env []string, dir string, onStderr func(string)) (*process, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env, cmd.Dir = env, dir
	// In a group of its own: Ctrl-C at the terminal is for this program, which decides what stops.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	stderr, err3 := cmd.StderrPipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, notRun(command[0], dir, err)
	}
	p := &process{cmd: cmd, stdout: stdout, writes: make(chan []byte, queuedWrites), ended: make(chan struct{})}
	p.stderrRead = make(chan struct{})
	p.closeStdin = sync.OnceValue(stdin.Close)
	go p.keepTail(stderr, onStderr)
	go func() {
		for {
			select {
			case line := <-p.writes:
				// A process that has ended reads no more; its end is reported elsewhere.
				_, _ = stdin.Write(line)
			case <-p.ended:
				return
			}
		}
	}()
	return p, nil
}

// notRun returns the error of a program that could not be started: the system does not say whether it is missing or its
// folder.
func notRun(program, dir string, err error) error {
	if dir != "" {
		if folder, failed := os.Stat(dir); failed != nil || !folder.IsDir() {
			return fmt.Errorf("%s can't be run in %s, which is no folder that can be used: %w", program, dir, err)
		}
	}
	return fmt.Errorf("%w: %s can't be run: %w", ErrNotInstalled, program, err)
}

func (p *process) keepTail(stderr io.Reader, onStderr func(string)) {
	defer close(p.stderrRead)
	chunk := make([]byte, stderrBytes)
	for {
		n, err := stderr.Read(chunk)
		p.mu.Lock()
		p.stderr = append(p.stderr, chunk[:n]...)
		if surplus := len(p.stderr) - stderrBytes; surplus > 0 {
			p.stderr = append(p.stderr[:0], p.stderr[surplus:]...)
		}
		p.mu.Unlock()
		onStderr(p.tail())
		if err != nil {
			return
		}
	}
}

func (p *process) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.stderr)
}

// wait waits for the end of a process whose output has been read. It is called once.
func (p *process) wait() *ProcessEnded {
	// Wait closes the pipe, with what was not read from it. A child of the process may hold it open.
	timer := time.NewTimer(stderrTime)
	defer timer.Stop()
	select {
	case <-p.stderrRead:
	case <-timer.C:
	}
	_ = p.cmd.Wait()
	close(p.ended)
	state := p.cmd.ProcessState
	return &ProcessEnded{Status: state.ExitCode(), How: state.String(), Stderr: p.tail()}
}

// end closes standard input, waits, and then makes the process end: SIGTERM, SIGKILL.
func (p *process) end(patience time.Duration) {
	// In a goroutine: it waits for a write that nobody reads.
	go p.closeStdin()
	for _, step := range []struct {
		signal   syscall.Signal
		patience time.Duration
	}{{0, patience}, {syscall.SIGTERM, termTime}, {syscall.SIGKILL, termTime}} {
		if step.signal != 0 {
			_ = p.cmd.Process.Signal(step.signal)
		}
		if p.hasEndedWithin(step.patience) {
			return
		}
	}
}

// hasEndedWithin waits so long for the end of the process, and reports whether it has come.
func (p *process) hasEndedWithin(patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.ended:
		return true
	case <-timer.C:
		return false
	}
}
