package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	clusterapi "github.com/siderolabs/talos/pkg/machinery/api/cluster"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// healthPoll is how often a failing check is repeated.
const healthPoll = 50 * time.Millisecond

// healthRun is one run of the server-side health check.
type healthRun struct {
	b             *boot
	controlPlanes []string
	workers       []string
	controlBoots  []*boot
	all           []*boot
}

// HealthCheck runs Talos's cluster checks from this control-plane machine: a message
// per check and state, the end of the stream on success, an error otherwise.
func (a *api) HealthCheck(
	req *clusterapi.HealthCheckRequest, stream clusterapi.ClusterService_HealthCheckServer,
) error {
	if err := a.b.onControlPlane("health check"); err != nil {
		return err
	}

	ctx := stream.Context()

	if wait := req.GetWaitTimeout().AsDuration(); wait > 0 {
		var cancel context.CancelFunc

		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}

	run := &healthRun{
		b: a.b, controlPlanes: req.GetClusterInfo().GetControlPlaneNodes(), workers: req.GetClusterInfo().GetWorkerNodes(),
	}

	for _, check := range run.checks() {
		if err := run.wait(ctx, stream, check); err != nil {
			return err
		}
	}

	return nil
}

type healthCheck struct {
	name string
	test func(context.Context) error
}

// wait repeats a check until it passes and reports every change of its outcome.
func (h *healthRun) wait(
	ctx context.Context, stream clusterapi.ClusterService_HealthCheckServer, check healthCheck,
) error {
	last := ""
	report := func(text string) error {
		if text == last {
			return nil
		}

		last = text

		return stream.Send(&clusterapi.HealthCheckProgress{Message: "waiting for " + check.name + ": " + text})
	}

	if err := report("..."); err != nil {
		return err
	}

	for {
		failure := check.test(ctx)
		if failure == nil {
			return report("OK")
		}

		if err := report(failure.Error()); err != nil {
			return err
		}

		if err := timing.Pause(ctx, healthPoll); err != nil {
			return status.Error(codes.DeadlineExceeded, failure.Error())
		}
	}
}

// checks are Talos's default cluster checks that mean something here, in its order.
func (h *healthRun) checks() []healthCheck {
	list := []healthCheck{
		{"discovered nodes to be known", h.discover},
		{"etcd to be healthy", h.service("etcd", true)},
		{"etcd members to be consistent across nodes", h.etcdConsistent},
		{"etcd members to be control plane nodes", h.etcdConsistent},
		{"apid to be ready", h.service("apid", false)},
		{"kubelet to be healthy", h.service("kubelet", false)},
		{"all nodes to finish boot sequence", h.booted},
		{"all k8s nodes to report", h.nodes(false)},
		{"all control plane components to be ready", h.apiServers},
	}

	if h.b.CNIReadies() {
		list = append(list, healthCheck{"all k8s nodes to report ready", h.nodes(true)})
	}

	return append(list, healthCheck{"all k8s nodes to report schedulable", h.schedulable})
}

// discover finds the machines meant: the given ones, or all of the cluster.
func (h *healthRun) discover(context.Context) error {
	h.b.World.Lock()
	boots := slices.Clone(h.b.cluster.boots)
	h.b.World.Unlock()

	h.all, h.controlBoots = nil, nil
	given := slices.Concat(h.controlPlanes, h.workers)

	for _, other := range boots {
		if len(given) > 0 && !slices.Contains(given, other.m.Address().String()) {
			continue
		}

		h.all = append(h.all, other)

		if other.ControlPlane() {
			h.controlBoots = append(h.controlBoots, other)
		}
	}

	if len(given) > len(h.all) {
		return errors.New("not all nodes are reachable")
	}

	return nil
}

func (h *healthRun) service(id string, controlPlanesOnly bool) func(context.Context) error {
	return func(context.Context) error {
		boots := h.all
		if controlPlanesOnly {
			boots = h.controlBoots
		}

		for _, other := range boots {
			if st, up := other.Services.State(id); st != machined.ServiceRunning || !up {
				return fmt.Errorf("service %q on %s is not healthy", id, other.m.Address())
			}
		}

		return nil
	}
}

func (h *healthRun) etcdConsistent(ctx context.Context) error {
	node, err := h.b.etcd.AnyMember(ctx)
	if err != nil {
		return err
	}

	members, err := node.Members(ctx)
	if err != nil {
		return err
	}

	if len(members) != len(h.controlBoots) {
		return fmt.Errorf("etcd has %d members, expected %d", len(members), len(h.controlBoots))
	}

	for _, m := range members {
		if m.GetIsLearner() {
			return fmt.Errorf("etcd member %s is a learner", m.GetHostname())
		}
	}

	return nil
}

func (h *healthRun) booted(context.Context) error {
	for _, other := range h.all {
		if stage, _, _ := other.Status(); stage != StageRunning {
			return fmt.Errorf("%s: %s", other.m.Address(), stage)
		}
	}

	return nil
}

func (h *healthRun) apiServers(context.Context) error {
	h.b.World.Lock()
	defer h.b.World.Unlock()

	for _, other := range h.controlBoots {
		if other.kubeUp == nil {
			return fmt.Errorf("kube-apiserver on %s is not ready", other.m.Address())
		}
	}

	return nil
}

// nodes checks that every machine has a node, and that it is Ready.
func (h *healthRun) nodes(ready bool) func(context.Context) error {
	return func(ctx context.Context) error {
		return h.eachNode(ctx, func(node *corev1.Node) error {
			if !ready {
				return nil
			}

			for _, c := range node.Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
					return nil
				}
			}

			return fmt.Errorf("some nodes are not ready: [%s]", node.Name)
		})
	}
}

func (h *healthRun) schedulable(ctx context.Context) error {
	return h.eachNode(ctx, func(node *corev1.Node) error {
		if node.Spec.Unschedulable {
			return fmt.Errorf("some nodes are not schedulable: [%s]", node.Name)
		}

		return nil
	})
}

func (h *healthRun) eachNode(ctx context.Context, check func(*corev1.Node) error) error {
	k, err := h.b.kubernetes(ctx)
	if err != nil {
		return errors.New("kubernetes API is not reachable")
	}

	var problems []string

	for _, other := range h.all {
		node, err := k.GetNode(ctx, other.Nodename())

		switch {
		case err != nil:
			problems = append(problems, fmt.Sprintf("can't find expected node with IP %q", other.m.Address()))
		case check(node) != nil:
			problems = append(problems, check(node).Error())
		}
	}

	if len(problems) > 0 {
		return errors.New(strings.Join(problems, ", "))
	}

	return nil
}
