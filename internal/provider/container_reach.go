package provider

import (
	"cmp"
	"context"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// dialer makes TCP connections.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// route is how the machines of a pool and their Kubernetes API are reached: directly, or through the host
// cluster whose pods they are. leave has to be called when nobody uses it any more.
type route struct {
	// host is nil on metal; spec is what it is told of the machines, those that leave among them.
	host  host
	spec  workload.Spec
	leave func()
	// ran are the releases that machines ran last, as recorded.
	ran map[string]string
}

// dial makes connections along the route; nil is directly.
func (r route) dial() dialer {
	if r.host == nil {
		return nil
	}

	return r.host.Dial(r.spec)
}

// hostAwayError is that there is no connection to a host cluster, which was not asked anything.
type hostAwayError struct{ error }

func (e *hostAwayError) Unwrap() error { return e.error }

// forewarnAway warns when nothing but a write-only kubeconfig leads to the host: it is in no state, so that only operations that
// have a configuration, which reads and destroys have not, get there.
func (m *machinery) forewarnAway(p pool) diag.Diagnostics {
	own := p.host.connection
	if len(own.Content) == 0 || own.Path != "" || own.inCluster || m.host.given() || m.host.unknown {
		return nil
	}

	return diag.Diagnostics{doubtful(path.Root("host").AtName("kubeconfig"), "way to the host cluster",
		"nothing leads to the host cluster but this kubeconfig, which is write-only and in no state",
		"A refresh will not see the machines, and a destroy will fail",
		"Give the kubeconfig in the host block of the provider, or set kubeconfig_path or in_cluster")}
}

// hostUnread warns that a refresh did not get to the host.
func hostUnread(p pool, away *hostAwayError) diag.Diagnostic {
	return unsettled("The host cluster was not read", report{
		Attempted: "read the machines of the " + p.object, Cause: []string{away.Error()},
		Now: []string{"what was last seen of the machines is kept, and nothing follows about them"},
		Next: "See that `host` of the resource or of the provider leads to the host cluster whenever Terraform runs: an apply that changes machines, and a " +
			"destroy, need it.",
	}.String())
}

// routeTo finds the way to the machines of a pool. It asks nobody.
func (m *machinery) routeTo(ctx context.Context, p pool, recorded recordedPool, bundle *pki.Bundle) (route, error) {
	return m.routeAs(ctx, p, recorded, bundle.Mark())
}

// routeAs is routeTo for a cluster that is known by its mark alone, which is empty before there is one.
func (m *machinery) routeAs(ctx context.Context, p pool, recorded recordedPool, mark string) (route, error) {
	if p.host == nil {
		return route{leave: func() {}}, nil
	}

	connection := m.host.under(p.host.connection)
	if !connection.given() {
		return route{}, &hostAwayError{errNoConnection}
	}

	joined, leave, err := m.hosts.join(hostcluster.Options{
		Kubeconfig: connection.Kubeconfig, InCluster: connection.inCluster,
		Progress: func(message string) { tflog.Info(ctx, message) },
	})
	if err != nil {
		return route{}, &hostAwayError{err}
	}

	recorded.removed = slices.Concat(recorded.removed, recorded.left)

	ran := map[string]string{}
	for name, m := range recorded.machines {
		ran[name] = m.TalosVersion
	}

	return route{host: joined, spec: p.hostSpec(recorded, mark), leave: leave, ran: ran}, nil
}

// clients are the APIs of the machines of a pool and of their Kubernetes.
type clients struct {
	machines *talos.Fleet
	api      *kubernetes.Client
	route    route
}

func (c clients) close() {
	c.machines.Close()
	c.api.Close()
	c.route.leave()
}

// clientsOf prepares them; close has to be called. It asks nobody.
func (m *machinery) clientsOf(ctx context.Context, p pool, recorded recordedPool, bundle *pki.Bundle, o kubernetes.Options) (clients, error) {
	way, err := m.routeTo(ctx, p, recorded, bundle)
	if err != nil {
		return clients{}, err
	}

	o.Dial = way.dial()

	machines, err := m.along(way).fleetOf(p, bundle)
	if err != nil {
		way.leave()

		return clients{}, err
	}

	api, err := kubernetesOf(p, bundle, o)
	if err != nil {
		machines.Close()
		way.leave()

		return clients{}, endpointError{err}
	}

	return clients{machines, api, way}, nil
}

// endpointError is about the endpoint of the Kubernetes API, as it was written.
type endpointError struct{ error }

func (e endpointError) Unwrap() error { return e.error }

// fleetFor is the machines behind clients as a run sees them.
func (m *machinery) fleetFor(c clients) lifecycle.Fleet {
	if c.route.host == nil {
		return fleet{c.machines}
	}

	watch := newHostWatch(c.route.host, c.route.spec, cmp.Or(m.interval, lifecycle.DefaultInterval))
	maps.Copy(watch.versions, c.route.ran)

	return containerFleet{inner: fleet{c.machines}, watch: watch}
}

// along is machinery whose connections to machines go along a route.
func (m *machinery) along(r route) *machinery {
	if r.host == nil {
		return m
	}

	bound := *m
	bound.talos.Dial = r.dial()

	return &bound
}

// wanted is the spec of the machines that are to stay.
func (r route) wanted(p pool) workload.Spec {
	spec := r.spec
	spec.Machines = slices.DeleteFunc(slices.Clone(spec.Machines), func(m workload.Machine) bool {
		_, wanted := p.machines[m.Name]

		return !wanted
	})

	return spec
}

// outdated says, machine by machine, what pods have to be replaced for. Another Talos is no such thing: it is an
// upgrade, with rules of its own. Unless it does not start, and is not what the machine ran: then it is the wrong one.
func (r route) outdated(ctx context.Context, seen workload.Observation) (map[string]string, error) {
	spec, upgrades := r.spec, false

	for _, m := range spec.Machines {
		pod := seen.Machines[m.Name]
		if otherTag(pod.Image, m.Image) && (pod.Container != "" || tagOf(pod.Image) == r.ran[m.Name]) {
			spec, upgrades = withImage(spec, m.Name, pod.Image), true
		}
	}

	if upgrades {
		var err error
		if seen, err = r.host.Observe(ctx, spec); err != nil {
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

// tagOf is empty for an image that has none.
func tagOf(text string) string {
	reference, err := image.ParseReference(text)
	if err != nil {
		return ""
	}

	return reference.Tag
}

// otherTag is whether two images differ in their tags alone.
func otherTag(a, b string) bool {
	first, errA := image.ParseReference(a)
	second, errB := image.ParseReference(b)

	if errA != nil || errB != nil || first.Tag == second.Tag {
		return false
	}

	first.Tag, second.Tag = "", ""

	return first == second
}
