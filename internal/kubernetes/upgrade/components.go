package upgrade

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/diagnose"
)

// ControlPlane is a machine as the search for failing components asks it.
type ControlPlane interface {
	// Resources are those of Talos; release ends their use.
	Resources(ctx context.Context) (resources state.State, release func(), err error)
	// LastError is the last error in the log of a component that keeps it from its work; empty for none.
	LastError(ctx context.Context, component kubenames.Component) (string, error)
}

// FailingComponents finds the components of Kubernetes that do not work on a control plane, with the last error of the
// log. It needs no Kubernetes API. Talos takes an API server for ready as soon as its process runs (Talos 1.13,
// k8s/control_plane_static_pod.go), so the server itself is asked, too.
func (u *Upgrade) FailingComponents(ctx context.Context, name string, machine ControlPlane) ([]Problem, error) {
	resources, release, err := machine.Resources(ctx)
	if err != nil {
		return nil, fmt.Errorf("check the components on %s: %w", name, err)
	}

	defer release()

	failing, err := u.failing(ctx, resources)

	var problems []Problem

	for _, component := range append([]kubenames.Component{kubenames.Kubelet}, kubenames.StaticPods()...) {
		reason, is := failing[component]
		if !is {
			continue
		}

		last, unread := machine.LastError(ctx, component)
		if err = errors.Join(err, unread); last != "" {
			reason += "; its log: " + last
		}

		problems = append(problems, Problem{ComponentCode, string(component) + " on " + name, reason})
	}

	if err != nil {
		err = fmt.Errorf("check the components on %s: %w", name, err)
	}

	return problems, err
}

// failing are the components that do not work, with the reason of each. Without a kubelet, Talos knows nothing about
// the pods.
func (u *Upgrade) failing(ctx context.Context, resources state.State) (map[kubenames.Component]string, error) {
	kubelet, err := safe.StateGetByID[*v1alpha1.Service](ctx, resources, string(kubenames.Kubelet))

	switch {
	case state.IsNotFoundError(err) || err == nil && !kubelet.TypedSpec().Running:
		return map[kubenames.Component]string{kubenames.Kubelet: "its service does not run"}, nil
	case err != nil:
		return nil, err
	}

	statuses, err := safe.StateListAll[*k8s.StaticPodStatus](ctx, resources)
	if err != nil {
		return nil, err
	}

	failing := map[kubenames.Component]string{}

	for status := range statuses.All() {
		at := slices.IndexFunc(kubenames.StaticPods(), func(c kubenames.Component) bool {
			return strings.HasPrefix(status.Metadata().ID(), "kube-system/"+string(c)+"-")
		})
		if at < 0 {
			continue
		}

		reason, err := reasonOf(status)
		if err != nil {
			return nil, err
		}

		if reason != "" {
			failing[kubenames.StaticPods()[at]] = reason
		}
	}

	if _, known := failing[kubenames.KubeAPIServer]; known {
		return failing, nil
	}

	unready, err := u.unreadyServer(ctx, resources)
	if unready != "" {
		failing[kubenames.KubeAPIServer] = unready
	}

	return failing, err
}

// reasonOf is why a static pod is not ready; empty for one that is.
func reasonOf(status *k8s.StaticPodStatus) (string, error) {
	pod := corev1.Pod{}

	if err := decodeInto(&pod.Status, status.TypedSpec().PodStatus); err != nil {
		return "", fmt.Errorf("read the status of pod %s: %w", status.Metadata().ID(), err)
	}

	_, reason := diagnose.Worst([]corev1.Pod{pod})

	return reason, nil
}

// unreadyServer is why the API server of a machine is not ready; empty for one that is. One that does not answer may be
// out of reach from here, so its pod decides.
func (u *Upgrade) unreadyServer(ctx context.Context, resources state.State) (string, error) {
	addresses, err := safe.StateGetByID[*network.NodeAddress](ctx, resources, network.NodeAddressDefaultID)
	if err != nil {
		return "", unlessMissing(err)
	}

	for _, address := range addresses.TypedSpec().IPs() {
		checks, err := u.api.Unready(ctx, address.String())
		if len(checks) > 0 {
			return "it is not ready: " + strings.Join(checks, ", "), nil
		}

		if err != nil && !errors.Is(err, api.ErrUnreachable) {
			return "", err
		}
	}

	return "", nil
}
