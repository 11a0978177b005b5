package sim

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// Poller asks a Kubernetes API for its version repeatedly, each time on a new connection, as long as a test needs
// to know whether it is reachable.
type Poller struct {
	client *http.Client
	url    string
	cancel context.CancelFunc
	done   chan struct{}

	mu       sync.Mutex
	requests int
	failures []error
}

// Poll begins to ask the API that a client configuration leads to. A request that is not
// answered with 200 within timeout counts as failed.
func Poll(ctx context.Context, config *rest.Config, every, timeout time.Duration) (*Poller, error) {
	config = rest.CopyConfig(config)
	config.Timeout = timeout

	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}

	ctx, cancel := context.WithCancel(ctx)
	p := &Poller{client: client, url: config.Host + "/version", cancel: cancel, done: make(chan struct{})}

	go func() {
		defer close(p.done)

		for ctx.Err() == nil {
			p.ask(ctx)
			_ = timing.Pause(ctx, every) // ends with ctx, as the loop does
		}
	}()

	return p, nil
}

func (p *Poller) ask(ctx context.Context) {
	err := p.request(ctx)
	if ctx.Err() != nil {
		return
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	p.requests++

	if err != nil {
		p.failures = append(p.failures, err)
	}
}

func (p *Poller) request(ctx context.Context) error {
	defer p.client.CloseIdleConnections()

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}

	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}

	if err := resp.Body.Close(); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}

	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answer %s", resp.Status)
	}

	return nil
}

// Count is how many requests were made so far, and what became of those that failed.
func (p *Poller) Count() (requests int, failures []error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.requests, append([]error(nil), p.failures...)
}

// Stop ends the polling; Count stays as it is then.
func (p *Poller) Stop() {
	p.cancel()
	<-p.done
}
