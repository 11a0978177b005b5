package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
)

// upgrade: Kubernetes goes from one minor version to the next on a whole cluster. A client always gets an answer
// through the load balancer.
func (s site) upgrade(t *testing.T, cli clitest.CLI) {
	w := s.createdBefore(t, cli)
	s.runs(t, w, s.kubernetesBefore)

	to := s.kubernetes
	polling := s.poll(t, w)

	s.applied(t, w, "the upgrade to Kubernetes "+to)
	polling.stop(t)
	s.runs(t, w, to)
	s.destroy(t, w)
}

// upgradeKilled: the provider process is killed with SIGKILL when the first API server of the new version runs, and
// again when the first kubelet does. The next apply continues.
func (s site) upgradeKilled(t *testing.T, cli clitest.CLI) {
	w := s.createdBefore(t, cli)
	to := s.kubernetes

	w.Write(variables, s.variables(t, false))

	polling := s.poll(t, w)
	api := s.kubernetesAPI(t, w)

	for _, component := range []string{"kube-apiserver", "kubelet"} {
		apply := w.Start("apply", "-auto-approve")
		s.await(t, apply, "a "+component+" of the new version", func(ctx context.Context) error {
			versions, err := componentVersions(ctx, api)
			if err != nil {
				return err
			}

			if !slices.ContainsFunc(versions[component], func(v string) bool { return strings.HasSuffix(v, to) }) {
				return fmt.Errorf("%s runs %v", component, versions[component])
			}

			return nil
		})
		apply.KillProvider()
		failed(t, apply)
	}

	s.applied(t, w, "the upgrade to Kubernetes "+to+" that was killed twice")
	polling.stop(t)
	s.runs(t, w, to)
	s.destroy(t, w)
}

// createdBefore creates a cluster behind a load balancer with the version before the upgrade.
func (s *site) createdBefore(t *testing.T, cli clitest.CLI) *clitest.Workspace {
	t.Helper()
	s.needs(t, "reset")

	s.endpoint = balance(t, s.controlPlanes)

	before := *s
	before.kubernetes = s.kubernetesBefore

	w := before.workspace(t, cli)
	before.applied(t, w, "create with Kubernetes "+before.kubernetes)

	return w
}

// runs checks around the provider that every component has a version, and that the state agrees.
func (s site) runs(t *testing.T, w *clitest.Workspace, version string) {
	t.Helper()

	versions, err := componentVersions(t.Context(), s.kubernetesAPI(t, w))
	if err != nil {
		t.Fatal(err)
	}

	for component, want := range map[string]int{
		"kubelet": len(s.machines()), "kube-apiserver": len(s.controlPlanes),
		"kube-controller-manager": len(s.controlPlanes), "kube-scheduler": len(s.controlPlanes),
	} {
		if got := versions[component]; len(got) != want ||
			slices.ContainsFunc(got, func(v string) bool { return !strings.HasSuffix(v, version) }) {
			t.Errorf("%s runs %v, want %d times %s", component, got, want, version)
		}
	}

	for resource, machines := range observed(t, w) {
		for name, machine := range machines {
			for component, running := range machine.Running {
				if running != version {
					t.Errorf("%s says that %s of %s runs %v, want %s", resource, component, name, running, version)
				}
			}
		}
	}
}

// kubernetesAPI is the API through the cluster's endpoint.
func (s site) kubernetesAPI(t *testing.T, w *clitest.Workspace) *kubernetes.Clientset {
	t.Helper()

	api, err := s.clientset(bundle(t, w))
	if err != nil {
		t.Fatal(err)
	}

	return api
}

// componentVersions are the versions of the control plane's images and of the kubelets, by component.
func componentVersions(ctx context.Context, api *kubernetes.Clientset) (map[string][]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()

	nodes, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}

	pods, err := api.CoreV1().Pods(metav1.NamespaceSystem).List(ctx,
		metav1.ListOptions{LabelSelector: "tier=control-plane"})
	if err != nil {
		return nil, err
	}

	versions := map[string][]string{}

	for _, n := range nodes.Items {
		versions["kubelet"] = append(versions["kubelet"], n.Status.NodeInfo.KubeletVersion)
	}

	for _, p := range pods.Items {
		component := p.Labels["k8s-app"]
		versions[component] = append(versions[component], p.Spec.Containers[0].Image)
	}

	return versions, nil
}

// poller is a client that asks continuously.
type poller struct {
	cancel context.CancelFunc
	ended  chan struct{}
	asked  int
	failed []string
	// alone is true for a single control plane, whose API is away while it is replaced.
	alone bool
}

// poll lists nodes through the endpoint until it is stopped. It retries at once when its connection is lost.
func (s site) poll(t *testing.T, w *clitest.Workspace) *poller {
	t.Helper()

	api := s.kubernetesAPI(t, w)

	ctx, cancel := context.WithCancel(t.Context())
	p := &poller{cancel: cancel, ended: make(chan struct{}), alone: len(s.controlPlanes) == 1}

	go func() {
		defer close(p.ended)

		for ctx.Err() == nil {
			began := time.Now()
			err := answered(ctx, api)
			p.asked++

			if err != nil && ctx.Err() == nil {
				p.failed = append(p.failed, fmt.Sprintf("%s: %v", began.Format(time.TimeOnly), err))
			}

			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()

	t.Cleanup(cancel)

	return p
}

// answered asks up to three times. The timeout is for requests that never get an answer: a busy computer may take
// seconds.
func answered(ctx context.Context, api *kubernetes.Clientset) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()

	var errs []error

	for range 3 {
		_, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil {
			return nil
		}

		errs = append(errs, err)
	}

	return errors.Join(errs...)
}

// stop ends the polling and reports when the API was unavailable.
func (p *poller) stop(t *testing.T) {
	t.Helper()

	p.cancel()
	<-p.ended

	if len(p.failed) > 0 && !p.alone || p.asked == 0 {
		t.Errorf("%d of %d requests through the endpoint had no answer:\n%s", len(p.failed), p.asked,
			strings.Join(p.failed, "\n"))
	}

	t.Logf("requests through the endpoint meanwhile: %d, without an answer: %d", p.asked, len(p.failed))
}
