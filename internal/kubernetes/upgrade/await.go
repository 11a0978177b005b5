package upgrade

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/diagnose"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// lastEventTimeout bounds the request for the last event after a wait that was in vain.
const lastEventTimeout = 5 * time.Second

// AwaitComponent waits until a component of Kubernetes runs on a node with an image, for [api.Options.Await]. The
// image is the full reference in the machine's configuration.
//
// A component of the control plane is its mirror pod: its specification has the image, its container runs and it
// is Ready. The API server also has to report the version of the image at the node's own address, because a status
// may be late. Where that address cannot be reached from here, the pod's status decides once it was the same for
// [api.Options.Steady], and [api.Options.Progress] receives that. The kubelet is its Node: the version of the
// image, and Ready, if any node of the cluster is. An image whose tag is no version is not compared with one.
// kube-proxy runs on no node of its own, so there is nothing to wait for.
//
// The error names the pod, the node, what is missing and the last event. It is permanent where waiting does not
// help: an image reference that the kubelet cannot parse, or may not pull. Safe to repeat.
func (u *Upgrade) AwaitComponent(ctx context.Context, node string, component kubenames.Component, image string) error {
	if component == kubenames.KubeProxy {
		return nil
	}

	a := &awaited{upgrade: u, node: node, component: component, image: image}
	a.version, _ = kubenames.ImageVersion(image)

	observe := a.kubelet
	if component.StaticPod() {
		observe = a.staticPod
	}

	bounded, cancel := context.WithTimeoutCause(ctx, u.api.Options.Await, fmt.Errorf("timed out after %s",
		u.api.Options.Await))
	defer cancel()

	err := u.api.Until(bounded, observe)
	if err == nil || errors.Is(ctx.Err(), context.Canceled) {
		return a.failed(err, "")
	}

	if unready := a.unready(ctx); unready != "" {
		err = fmt.Errorf("%w; %s", err, unready)
	}

	return a.failed(err, a.lastEvent(ctx))
}

// awaited is a component in a wait.
type awaited struct {
	upgrade     *Upgrade
	node, image string
	component   kubenames.Component
	// version is that of the image, empty when its tag is none.
	version string
	// container is the one that was seen to run last, and since when without a break.
	container string
	since     time.Time
	reported  bool
}

func (a *awaited) pod() string { return string(a.component) + "-" + a.node }

// failed is the error of the wait.
func (a *awaited) failed(err error, event string) error {
	if err == nil {
		return nil
	}

	what := fmt.Sprintf("%s on node %s", a.component, a.node)
	if a.component.StaticPod() {
		what += fmt.Sprintf(" (pod %s/%s)", metav1.NamespaceSystem, a.pod())
	}

	if event != "" {
		return fmt.Errorf("wait until %s runs %s: %w; last event: %s", what, a.image, err, event)
	}

	return fmt.Errorf("wait until %s runs %s: %w", what, a.image, err)
}

// kubelet is nil once the node's kubelet runs the version.
func (a *awaited) kubelet(ctx context.Context) error {
	node, err := a.upgrade.nodes.Node(ctx, a.node, "")
	if err != nil {
		return fmt.Errorf("read the node: %w", api.WithoutURL(err))
	}

	if version := node.Status.NodeInfo.KubeletVersion; !a.isVersion(version) {
		return fmt.Errorf("the kubelet still reports version %s", version)
	}

	at := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if at < 0 {
		return errors.New("the node does not report a Ready condition")
	}

	if ready := node.Status.Conditions[at]; ready.Status != corev1.ConditionTrue {
		return a.withoutNetwork(ctx, fmt.Errorf("the node is not ready%s", diagnose.Because(ready.Reason, ready.Message)))
	}

	return nil
}

// withoutNetwork is nil in a cluster that has no pod network yet, where no node is ready, and
// else what keeps the node from it.
func (a *awaited) withoutNetwork(ctx context.Context, cause error) error {
	state := a.upgrade.nodes.Observe(ctx)
	if !state.Reachable || slices.ContainsFunc(state.Nodes, func(n kubestate.Node) bool { return n.Ready }) {
		return cause
	}

	return nil
}

// staticPod is nil once the mirror pod runs the image, and the API server is it.
func (a *awaited) staticPod(ctx context.Context) error {
	pod, err := a.upgrade.api.CoreV1().Pods(metav1.NamespaceSystem).Get(ctx, a.pod(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the pod: %w", api.WithoutURL(err))
	}

	if err := diagnose.Runs(pod, a.image); err != nil {
		a.container = ""

		return err
	}

	if container := containerOf(pod); container != a.container || a.since.IsZero() {
		a.container, a.since = container, time.Now()
	}

	if a.component != kubenames.KubeAPIServer || a.version == "" {
		return nil
	}

	return a.apiServer(ctx)
}

// containerOf identifies one run of a pod's container.
func containerOf(pod *corev1.Pod) string {
	id := string(pod.UID)

	for _, s := range pod.Status.ContainerStatuses {
		id += fmt.Sprintf(" %s %d", s.ContainerID, s.RestartCount)
	}

	return id
}

// apiServer is nil once the API server of the node reports the version, or when it is unreachable and its
// container has run for long enough. Its pod has no probes, so it is Ready as soon as the process runs. A server
// that starts, or crashes repeatedly, refuses connections, too (Talos 1.13, k8s/control_plane_static_pod.go).
func (a *awaited) apiServer(ctx context.Context) error {
	node, err := a.upgrade.nodes.Node(ctx, a.node, "")
	if err != nil {
		return fmt.Errorf("read the node: %w", api.WithoutURL(err))
	}

	var unreachable []error

	for _, ip := range api.InternalIPs(node) {
		version, err := a.upgrade.api.VersionAt(ctx, ip)

		switch {
		case err == nil && a.isVersion(version):
			return nil
		case err == nil:
			return fmt.Errorf("the API server on the node's address %s still reports version %s", ip, version)
		case errors.Is(err, api.ErrUnreachable):
			unreachable = append(unreachable, err)
		default:
			return err
		}
	}

	if len(unreachable) == 0 {
		unreachable = []error{errors.New("the node has no internal address")}
	}

	if time.Since(a.since) < a.upgrade.api.Options.Steady && !a.upgrade.isSteady(a.container) {
		return fmt.Errorf("the API server does not respond on the node's own address: %w", errors.Join(unreachable...))
	}

	a.upgrade.markSteady(a.container)

	if !a.reported {
		a.reported = true
		a.upgrade.api.Options.Progress(
			fmt.Sprintf("node %s: its address cannot be reached from here (%s), so the status of pod %s/%s shows whether "+
				"it runs %s",
				a.node, api.OneLine(errors.Join(unreachable...)), metav1.NamespaceSystem, a.pod(), a.image))
	}

	return nil
}

// unready says after a wait why the API server of the node is not ready; empty where nothing is known about that.
func (a *awaited) unready(ctx context.Context) string {
	if a.component != kubenames.KubeAPIServer {
		return ""
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastEventTimeout)
	defer cancel()

	node, err := a.upgrade.nodes.Node(ctx, a.node, "")
	if err != nil {
		return "" // the error of the wait says more
	}

	for _, ip := range api.InternalIPs(node) {
		if checks, err := a.upgrade.api.Unready(ctx, ip); err == nil && len(checks) > 0 {
			return "the API server is not ready: " + strings.Join(checks, ", ")
		}
	}

	return ""
}

// isSteady reports whether a container ran for long enough already, in an earlier wait.
func (u *Upgrade) isSteady(container string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()

	return u.steady[container]
}

func (u *Upgrade) markSteady(container string) {
	u.mu.Lock()
	defer u.mu.Unlock()

	if u.steady == nil {
		u.steady = map[string]bool{}
	}

	u.steady[container] = true
}

// isVersion reports whether a component's version is the awaited one: the builder adds what comes after the patch.
func (a *awaited) isVersion(version string) bool {
	release, ok := kubenames.ReleaseOf(version)

	return a.version == "" || ok && release == a.version
}

// lastEvent is the last one about the pod, or about the node of a kubelet. It has time of
// its own, since it is asked for when that of ctx may be up.
func (a *awaited) lastEvent(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastEventTimeout)
	defer cancel()

	if a.component.StaticPod() {
		return a.upgrade.diagnosis.LastEvent(ctx, metav1.NamespaceSystem, "Pod", a.pod())
	}

	// Events about nodes are in the namespace default (client-go 0.36, tools/record makeEvent).
	return a.upgrade.diagnosis.LastEvent(ctx, metav1.NamespaceDefault, "Node", a.node)
}
