package kubernetes

import "context"

// Troubles says of each of the objects that is not ready why.
func (c *Client) Troubles(_ context.Context, refs []Reference) []string { return nil }
