package discovery

import (
	"context"
	"net"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// source is a cluster whose members the list recognizes.
type source struct {
	clusterimport.Source

	credentials talos.Credentials
}

// scan asks addresses, a limited number of them in parallel.
type scan struct {
	options talos.Options
	sources []source
	atOnce  int64
}

// machine is a Talos machine that answered.
type machine struct {
	talos.Info

	address string
	// from locates the secrets of its cluster; it is empty for other machines.
	from clusterimport.Source
	// also are the other addresses at which it answered.
	also []string
}

// silent is an address without a Talos machine, and the reason.
type silent struct {
	address string
	err     error
}

// answer is the result of asking one address.
type answer struct {
	machine

	err error
	// connected reports whether a server listens there.
	connected bool
}

// run asks all targets. A machine that answers at several addresses is one machine, at the first of them.
func (s scan) run(ctx context.Context, targets []target) ([]machine, []silent, error) {
	var (
		asking  panics.Group
		answers = make([]answer, len(targets))
		slots   = make(chan struct{}, s.atOnce)
	)

	for i, t := range targets {
		slots <- struct{}{}

		asking.Go(func() error {
			defer func() { <-slots }()

			answers[i] = s.ask(ctx, t.address)

			return ctx.Err()
		})
	}

	if err := asking.Wait(); err != nil {
		return nil, nil, err
	}

	found, unanswered := sorted(targets, answers)

	return found, unanswered, nil
}

// ask tries one cluster after the other until a machine is a member of one; in maintenance mode it answers to any.
func (s scan) ask(ctx context.Context, address string) answer {
	tries := s.sources
	if len(tries) == 0 {
		tries = []source{{}}
	}

	var a answer

	options := s.options
	dial := options.Dial

	options.Dial = func(ctx context.Context, network, to string) (net.Conn, error) {
		if dial == nil {
			dial = (&net.Dialer{}).DialContext
		}

		conn, err := dial(ctx, network, to)
		a.connected = a.connected || err == nil

		return conn, err
	}

	for _, from := range tries {
		options.Credentials = from.credentials
		a.machine = machine{address: address}

		if a.Info, a.err = talos.Inspect(ctx, address, "", options); a.Access == step.Member {
			a.from = from.Source
		}

		if a.Access != step.Foreign {
			return a
		}
	}

	a.err = nil // a Talos machine of any cluster

	return a
}

// sorted separates machines from addresses without one. It keeps the addresses that were named, and those where a
// possible Talos answered with an error.
func sorted(targets []target, answers []answer) ([]machine, []silent) {
	var (
		found      []machine
		unanswered []silent
		at         = map[string]int{}
	)

	for i, a := range answers {
		if a.err != nil {
			if targets[i].named || a.connected && talos.Classify(a.err) != talos.ErrForeign { //nolint:errorlint // a class
				unanswered = append(unanswered, silent{targets[i].address, a.err})
			}

			continue
		}

		// The certificate identifies one machine, and one boot of it.
		if first, twice := at[a.Fingerprint]; twice && a.Fingerprint != "" {
			found[first].also = append(found[first].also, a.address)

			continue
		}

		at[a.Fingerprint] = len(found)
		found = append(found, a.machine)
	}

	return found, unanswered
}

// controlPlanes are the addresses of the control planes that were found, by the source of their cluster's secrets.
func controlPlanes(found []machine) map[clusterimport.Source][]string {
	planes := map[clusterimport.Source][]string{}

	for _, m := range found {
		if m.Access == step.Member && m.Role == step.ControlPlane {
			planes[m.from] = append(planes[m.from], m.address)
		}
	}

	for from := range planes {
		slices.Sort(planes[from])
	}

	return planes
}
