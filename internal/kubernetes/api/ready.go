package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// readyz is where an API server reports whether it is ready. No static pod of Talos has a probe for it (Talos 1.13,
// k8s/control_plane_static_pod.go manageAPIServer), so neither the pod nor its node shows it.
const readyz = "/readyz"

// Ready asks the API server whether it is ready to serve, as a load balancer would.
func (c *Client) Ready(ctx context.Context) error {
	if err := c.CoreV1().RESTClient().Get().AbsPath(readyz).Do(ctx).Error(); err != nil {
		return fmt.Errorf("check whether the Kubernetes API is ready: %w", WithoutURL(err))
	}

	return nil
}

// Unready are the checks that keep one API server from being ready, such as informer-sync, by the address of its
// machine. There are none for a server that is ready, or that is not known by that address.
func (c *Client) Unready(ctx context.Context, ip string) ([]string, error) {
	s, _ := c.serverOf(ip)
	if s == nil {
		return nil, nil
	}

	return c.unreadyAt(ctx, s)
}

// NoneReady is what one API server reports while none of them is ready; empty while one is, or where none reports it.
func (c *Client) NoneReady(ctx context.Context) []kubestate.UnreadyServer {
	checks, err := c.unready(ctx, c.typed(c.order))
	if err != nil || len(checks) == 0 {
		return nil // an API that does not answer this is not known to be unready
	}

	return []kubestate.UnreadyServer{{Checks: checks}}
}

// UnreadyAmong are the servers at the URLs that are not ready, ordered by URL: all are asked side by side. It leaves
// out a server that does not answer.
func (c *Client) UnreadyAmong(ctx context.Context, urls []string) []kubestate.UnreadyServer {
	var (
		mu   sync.Mutex
		seen []kubestate.UnreadyServer
	)

	asking, ctx := panics.WithContext(ctx)

	for _, s := range c.order() {
		if !slices.Contains(urls, s.URL) {
			continue
		}

		asking.Go(func() error {
			if checks, err := c.unreadyAt(ctx, s); err == nil && len(checks) > 0 {
				mu.Lock()
				defer mu.Unlock()

				seen = append(seen, kubestate.UnreadyServer{URL: s.URL, Checks: checks})
			}

			return nil
		})
	}

	if asking.Wait() != nil {
		return nil // a panic: nothing is known
	}

	slices.SortFunc(seen, func(a, b kubestate.UnreadyServer) int { return cmp.Compare(a.URL, b.URL) })

	return seen
}

func (c *Client) unreadyAt(ctx context.Context, s *Server) ([]string, error) {
	checks, err := c.unready(ctx, c.pinnedTo(s))
	if err != nil {
		return nil, fmt.Errorf("check whether the API server at %s is ready: %w", s.URL, err)
	}

	return checks, nil
}

// unready are the failed checks of the server that a transport leads to.
func (c *Client) unready(ctx context.Context, through *Failover) ([]string, error) {
	through.faithful = true // the checks are in the text of an error

	api, err := c.restOf(through)
	if err != nil {
		return nil, err
	}

	raw, err := api.Get().AbsPath(readyz).Param("verbose", "").DoRaw(ctx)
	if err == nil {
		return nil, nil
	}

	var failed []string

	// A server that is not ready answers with a line for each check (k8s.io/apiserver 0.36, server/healthz).
	for line := range strings.Lines(string(raw)) {
		if check, is := strings.CutPrefix(line, "[-]"); is {
			name, _, _ := strings.Cut(check, " ")
			failed = append(failed, name)
		}
	}

	if len(failed) > 0 {
		return failed, nil
	}

	return nil, WithoutURL(err)
}
