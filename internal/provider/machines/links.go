package machines

import (
	"context"
	"fmt"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// findLinks asks the machines that get a virtual IP which link has their address, and configures them with it. It
// waits for machines that do not answer as long as a create does.
func (s *session) findLinks(ctx context.Context) error {
	names := s.Set.Unlinked()
	if len(names) == 0 {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, s.runner.Policy.AppearWithin)
	defer cancel()

	var (
		mu    sync.Mutex
		links = map[string]string{}
	)

	asked, ctx := panics.WithContext(ctx)

	for _, name := range names {
		m, _ := s.want.Find(name)

		asked.Go(func() error {
			return wait.Until(ctx, s.runner.Interval, func(ctx context.Context) error {
				link, err := s.linkOf(ctx, m)

				mu.Lock()
				defer mu.Unlock()

				links[name] = link

				return err
			})
		})
	}

	if err := asked.Wait(); err != nil {
		return fmt.Errorf("find the link of the virtual IP: %w. Nothing was sent to a machine. Correct the address, start "+
			"the machine, or set vip.link", err)
	}

	s.Set = s.Set.WithLinks(links)

	return s.render()
}

// linkOf is the link with the address of a machine.
func (s *session) linkOf(ctx context.Context, m cluster.Machine) (string, error) {
	state := s.runner.Fleet.Machine(m).Observe(ctx)

	switch {
	case !state.Answers():
		return "", fmt.Errorf("%s does not answer at %s (%s)", m.Name, m.Address, state.Cause)
	case state.Link == "":
		return "", wait.Permanent(fmt.Errorf("no link of %s has the address %s", m.Name, m.Address))
	default:
		return state.Link, nil
	}
}
