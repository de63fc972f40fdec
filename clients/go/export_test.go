package duologue

// InFlight returns the number of requests that wait for their done.
func (c *Client) InFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.requests)
}
