package providerdata

import (
	"cmp"
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// dialer makes TCP connections.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// Route is how the machines of a pool and their Kubernetes API are reached.
type Route interface {
	// dialer makes connections along the route; direct makes those that need none.
	dialer(direct dialer) dialer
	// fleet is the machines behind inner as a run observes them. Observations stay valid for fresh.
	fleet(inner lifecycle.Fleet, fresh time.Duration) lifecycle.Fleet
	// Leave releases the route. The caller must call it after the last use.
	Leave()
}

// direct is the route to metal.
type direct struct{}

func (direct) dialer(direct dialer) dialer                                  { return direct }
func (direct) fleet(inner lifecycle.Fleet, _ time.Duration) lifecycle.Fleet { return inner }
func (direct) Leave()                                                       {}

// HostRoute is the route through the host cluster of pods that are the machines.
type HostRoute struct {
	Host containers.Host
	// Spec is the spec of the machines for the host, including those that leave.
	Spec  workload.Spec
	leave func()
	// ran are the recorded releases that machines ran last.
	ran map[string]string
}

func (r *HostRoute) dialer(dialer) dialer { return r.Host.Dial(r.Spec) }

func (r *HostRoute) fleet(inner lifecycle.Fleet, fresh time.Duration) lifecycle.Fleet {
	if len(r.Spec.Machines) == 0 { // as a handle has it
		return containers.PodFleet{Inner: inner, Host: r.Host, Spec: r.Spec}
	}

	watch := containers.NewHostWatch(r.Host, r.Spec, fresh)
	maps.Copy(watch.Versions, r.ran)

	return containers.ContainerFleet{Inner: inner, Watch: watch}
}

// Leave implements [Route].
func (r *HostRoute) Leave() { r.leave() }

// HostAwayError says that there is no connection to a host cluster, which was not asked.
type HostAwayError struct{ error }

func (e *HostAwayError) Unwrap() error { return e.error }

// warnOfHostAway warns when only a write-only kubeconfig leads to the host. It is in no state, so only operations
// with a configuration reach the host; reads and destroys have none.
func (m *ProviderData) warnOfHostAway(p machineset.Set) finding.List {
	own := p.Host.Connection
	if len(own.Content) == 0 || own.Path != "" || own.InCluster || m.Host.Given() || m.Host.Unknown {
		return nil
	}

	return finding.List{writeOnlyHostConnection.At(
		finding.Root("host").AtName("kubeconfig_wo"), finding.Args{"cluster": nameOf(p)})}
}

// HostUnread warns that a refresh did not reach the host.
func HostUnread(p machineset.Set, away *HostAwayError) finding.Finding {
	return hostNotRead.With(finding.Args{"cluster": nameOf(p), "cause": away.Error()})
}

// RouteTo finds the route to the machines of a pool. It does no I/O.
func (m *ProviderData) RouteTo(
	ctx context.Context, p machineset.Set, recorded machineset.PriorState, bundle *pki.Bundle,
) (Route, error) {
	if p.Host == nil {
		return direct{}, nil
	}

	return m.throughHost(ctx, p, recorded, bundle.Mark())
}

// throughHost is RouteTo for machines in containers. mark is that of the secrets, empty before there are any.
func (m *ProviderData) throughHost(
	ctx context.Context, p machineset.Set, recorded machineset.PriorState, mark string,
) (*HostRoute, error) {
	connection := m.Host.Under(p.Host.Connection)
	if !connection.Given() {
		return nil, &HostAwayError{clusterhandle.ErrNoConnection}
	}

	joined, leave, err := m.Hosts.Join(hostcluster.Options{
		Kubeconfig: api.Kubeconfig{Path: connection.Path, Content: connection.Content, Context: connection.Context,
			Static: m.StaticKubeconfigs},
		InCluster: connection.InCluster,
		Progress:  func(message string) { tf.LogInfo(ctx, message) },
	})
	if err != nil {
		return nil, &HostAwayError{err}
	}

	ran := map[string]string{}
	for name, m := range recorded.Machines {
		ran[name] = m.TalosVersion
	}

	spec := p.HostSpec(recorded, mark)

	return &HostRoute{Host: containers.Recorded(joined, p.Host.Recorded, spec), Spec: spec, leave: leave, ran: ran}, nil
}

// clients are the APIs of the machines of a pool and of their Kubernetes.
type clients struct {
	Machines *talos.Fleet
	API      *kubernetes.Client
	Route    Route
	// done is called after their last use.
	done func()
}

func (c clients) Close() {
	c.Machines.Close()
	c.API.Close()
	c.Route.Leave()
	c.done()
}

// ClientsOf prepares clients with the rights of an operation; the caller must call close. It does no I/O.
func (m *ProviderData) ClientsOf(
	ctx context.Context, access pki.Access, p machineset.Set, recorded machineset.PriorState, bundle *pki.Bundle,
	o api.Options,
) (clients, error) {
	p.Leaving = recorded.Removed

	done := func() {}
	if access.Kubernetes.All { // it changes the cluster, and may change its machines
		done = m.ledger.ForgetCached
		done()
	}

	route, err := m.RouteTo(ctx, p, recorded, bundle)
	if err != nil {
		return clients{}, err
	}

	o.Dial = route.dialer(m.Dial)

	machines, err := m.Along(route).FleetOf(ctx, access, p, bundle)
	if err != nil {
		route.Leave()

		return clients{}, err
	}

	o.EndpointOutOfReach = m.OutOfReach.Has(p.Settings.Endpoint)

	api, err := KubernetesOf(ctx, access, p, bundle, o)
	if err != nil {
		machines.Close()
		route.Leave()

		return clients{}, EndpointError{err}
	}

	return clients{machines, api, route, done}, nil
}

// EndpointError is about the endpoint of the Kubernetes API, as written.
type EndpointError struct{ error }

func (e EndpointError) Unwrap() error { return e.error }

// FleetFor is the machines behind clients as a run observes them.
func (m *ProviderData) FleetFor(c clients) lifecycle.Fleet {
	return c.Route.fleet(Fleet{c.Machines}, cmp.Or(m.Interval, lifecycle.DefaultInterval))
}

// Along is provider data whose connections to machines go along a route.
func (m *ProviderData) Along(r Route) *ProviderData {
	bound := *m
	bound.Talos.Dial = r.dialer(m.Talos.Dial)

	return &bound
}

// Wanted is the spec of the remaining machines.
func (r *HostRoute) Wanted(p machineset.Set) workload.Spec {
	spec := r.Spec
	spec.Machines = slices.DeleteFunc(slices.Clone(spec.Machines), func(m workload.Machine) bool {
		_, wanted := p.Machines[m.Name]

		return !wanted
	})

	return spec
}

// Outdated returns, for each machine, why its pod has to be replaced. Another Talos version is no reason: that is an
// upgrade, with separate rules. The exception is an image that does not start and is not what the machine ran: it is
// a wrong image.
func (r *HostRoute) Outdated(ctx context.Context, seen workload.Observation) (map[string]string, error) {
	spec, upgrades := r.Spec, false

	for _, m := range spec.Machines {
		pod := seen.Machines[m.Name]
		if otherTag(pod.Image, m.Image) && (pod.Container != "" || tagOf(pod.Image) == r.ran[m.Name]) {
			spec, upgrades = containers.WithImage(spec, m.Name, pod.Image), true
		}
	}

	if upgrades {
		var err error
		if seen, err = r.Host.Observe(ctx, spec); err != nil {
			return nil, err
		}
	}

	reasons := map[string]string{}

	for name, pod := range seen.Machines {
		if len(pod.Outdated) > 0 {
			reasons[name] = strings.Join(workload.Lines(pod.Outdated), "; ")
		}
	}

	return reasons, nil
}

// tagOf is the tag of an image, or empty.
func tagOf(text string) string {
	reference, err := image.ParseReference(text)
	if err != nil {
		return ""
	}

	return reference.Tag
}

// otherTag reports whether two images differ only in their tags.
func otherTag(a, b string) bool {
	first, errA := image.ParseReference(a)
	second, errB := image.ParseReference(b)

	if errA != nil || errB != nil || first.Tag == second.Tag {
		return false
	}

	first.Tag, second.Tag = "", ""

	return first == second
}
