package duologue

import "sync"

// ForgetWarning has the next client warn of the built-in engine again.
func ForgetWarning() { warned = sync.Once{} }

// InFlight returns the number of requests that wait for their done.
func (c *Client) InFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.requests)
}

// Reader returns what the reader of the process that runs now does with a line, and at the end of the process.
func (c *Client) Reader() (accept func(line string) error, end func()) {
	c.mu.Lock()
	p := c.process
	c.mu.Unlock()
	return func(line string) error { return c.accept(p, []byte(line)) }, func() { c.ended(p, &ProcessEnded{}) }
}

// IsReconnecting reports whether a Reconnect is under way.
func (c *Client) IsReconnecting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reconnecting != nil
}

// RunFailed is the error of a run whose failure has this detail.
func RunFailed(detail string) error { return errorOf(&errorFrame{Code: "run_failed", Detail: detail}) }

// IsClosing reports whether Close has been called.
func (c *Client) IsClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isClosing
}

// Kill ends the process that runs now.
func (c *Client) Kill() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process.cmd.Process.Kill()
}
