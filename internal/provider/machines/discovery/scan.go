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

// source is a cluster whose members are recognised.
type source struct {
	clusterimport.Source

	credentials talos.Credentials
}

// scan asks addresses, a bounded number of them side by side.
type scan struct {
	options talos.Options
	sources []source
	atOnce  int64
}

// machine is a machine of Talos that answered.
type machine struct {
	talos.Info

	address string
	// from is where the secrets of its cluster are; of others it is empty.
	from clusterimport.Source
	// also are further addresses at which it answered.
	also []string
}

// silent is an address where no machine of Talos was found, and why.
type silent struct {
	address string
	err     error
}

// answer is what came of asking one address.
type answer struct {
	machine

	err error
	// connected is whether anything listens there.
	connected bool
}

// run asks all targets. Who answers at several addresses is one machine, at the first of them.
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

// ask tries one cluster after the other until a machine is a member of one; it answers in maintenance mode to any.
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

	a.err = nil // a machine of Talos, whosever it is

	return a
}

// sorted tells machines from addresses where none was found: those that are named, and those where something else than
// silence came back from what may be Talos.
func sorted(targets []target, answers []answer) ([]machine, []silent) {
	var (
		found      []machine
		unanswered []silent
		at         = map[string]int{}
	)

	for i, a := range answers {
		if a.err != nil {
			if targets[i].named || a.connected && talos.Classify(a.err) != talos.ErrForeign { //nolint:errorlint // it is a class
				unanswered = append(unanswered, silent{targets[i].address, a.err})
			}

			continue
		}

		// Its certificate is that of one machine, and of one boot of it.
		if first, twice := at[a.Fingerprint]; twice && a.Fingerprint != "" {
			found[first].also = append(found[first].also, a.address)

			continue
		}

		at[a.Fingerprint] = len(found)
		found = append(found, a.machine)
	}

	return found, unanswered
}

// controlPlanes are the addresses of the control planes that were found, by where the secrets of their cluster are.
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
