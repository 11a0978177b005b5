package lifecycle_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
)

// kubernetes wants a Kubernetes version on every machine, with patches, after the version that was wanted before.
func (s *site) kubernetes(version string, patches ...string) {
	s.t.Helper()

	before := cmp.Or(s.want.Kubernetes.Manifests, s.want.Kubernetes.Version)
	s.want.Kubernetes = cluster.KubernetesSpec{Version: version, Manifests: before}

	if version >= "v1.36" {
		s.want.Kubernetes.Via = []string{"v1.34.5", "v1.35.4"}
	}

	for i, m := range s.want.Machines {
		config := s.render(m.Role, patches...)
		s.configs[m.Name], s.want.Machines[i].ConfigDigest = config.Bytes, config.Digest

		var err error
		if s.want.Machines[i].Images, err = machineconfig.Images(config.Bytes); err != nil {
			s.t.Fatal(err)
		}
	}
}

// kubernetesSite is a cluster with a Kubernetes version.
func kubernetesSite(t *testing.T, controlPlanes, workers int, version string, patches ...string) *site {
	t.Helper()

	s := newSite(t, controlPlanes, workers, sim.Options{})
	s.kubernetes(version, patches...)
	s.create()

	return s
}

// runsKubernetes checks what Kubernetes itself reports about every component.
func (s *site) runsKubernetes(version string) {
	s.t.Helper()

	have := s.runner().Observe(bounded(s.t), s.want)

	for _, m := range s.want.Machines {
		node, ok := have.NodeOf(m)
		if !ok || node.KubeletVersion != version {
			s.t.Errorf("the kubelet of %s runs %q, want %s", m.Name, node.KubeletVersion, version)
		}

		if m.Role != step.ControlPlane {
			continue
		}

		for _, c := range []kubenames.Component{kubenames.KubeAPIServer, kubenames.KubeControllerManager, kubenames.KubeScheduler} {
			if pod := node.StaticPods[string(c)]; pod.Image != m.Images[c] || !pod.Ready {
				s.t.Errorf("%s of %s runs %q (ready: %t), want %s", c, m.Name, pod.Image, pod.Ready, m.Images[c])
			}
		}
	}
}

// settled checks that nothing is left to do.
func (s *site) settled() {
	s.t.Helper()

	have := s.runner().Observe(bounded(s.t), s.want)
	if d := cluster.Plan(s.want, have, s.policy); len(d.Steps) > 0 || len(d.Refusals) > 0 {
		s.t.Errorf("a second plan has steps %v and refusals %v", d.Steps, d.Refusals)
	}
}

// TestKubernetesUpgrade_inTwoHops upgrades two minor versions in one run. Each hop is complete before the next, and
// the steps match the forecast. Each API server restarts twice in a hop, and with Talos's own upgrade three times.
func TestKubernetesUpgrade_inTwoHops(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 2, sim.Options{})

	var err error
	if s.want.Endpoint, err = s.sim.LoadBalancer(); err != nil {
		t.Fatal(err)
	}

	s.kubernetes("v1.34.5")
	s.create()
	s.kubernetes("v1.36.3")

	polling, starts := s.poll(), s.apiServerStarts()

	forecast, last := cluster.Forecast(s.want, s.runner().Observe(bounded(t), s.want), s.policy)
	if !last.Done() {
		t.Fatalf("after everything that is forecast, there is %v %v", last.Steps, last.Holds)
	}

	result := s.converge()

	polling.Stop()

	if asked, failed := polling.Count(); asked == 0 || len(failed) > 0 {
		t.Errorf("of %d requests through the endpoint %d were not answered: %v", asked, len(failed), errors.Join(failed...))
	}

	if got, want := stepTexts(result.Done), stepTexts(forecast); !slices.Equal(sortedPulls(got), sortedPulls(want)) {
		t.Errorf("done:\n%s\nforetold:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	if want := hop("v1.34.5", "v1.35.4"); !slices.Equal(sortedPulls(stepTexts(result.Done))[:len(want)], want) {
		t.Errorf("the first hop is\n%s\nwant\n%s", strings.Join(stepTexts(result.Done)[:len(want)], "\n"),
			strings.Join(want, "\n"))
	}

	s.runsKubernetes("v1.36.3")
	s.settled()

	for name, now := range s.apiServerStarts() {
		if restarts := now - starts[name]; restarts != 4 {
			t.Errorf("the API server of %s restarted %d times in two hops, want 4", name, restarts)
		}
	}
}

// apiServerStarts counts how often each API server started.
func (s *site) apiServerStarts() map[string]int {
	starts := map[string]int{}

	for _, m := range s.want.Machines {
		if m.Role == step.ControlPlane {
			starts[m.Name] = s.sim.Machine(m.Name).APIServerStarts()
		}
	}

	return starts
}

// poll sends requests to the API through the endpoint continuously.
func (s *site) poll() *sim.Poller {
	s.t.Helper()

	client, err := s.bundle.KubernetesClient("poller", []string{"system:masters"}, time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}

	polling, err := sim.Poll(bounded(s.t), &rest.Config{
		Host: s.want.Endpoint, TLSClientConfig: rest.TLSClientConfig{CAData: client.CA, CertData: client.Certificate,
			KeyData: client.Key},
	}, 10*time.Millisecond, 10*time.Second)
	if err != nil {
		s.t.Fatal(err)
	}

	return polling
}

// hop is an upgrade of three control planes and two workers by one minor version.
func hop(from, to string) []string {
	planes, machines := []string{"cp-1", "cp-2", "cp-3"}, []string{"cp-1", "cp-2", "cp-3", "w-1", "w-2"}

	var steps []string

	for _, m := range machines {
		steps = append(steps, fmt.Sprintf("pull the images of Kubernetes %s on %s", to, m))
	}

	for _, c := range []string{"kube-apiserver", "kube-controller-manager, kube-scheduler, kube-proxy, kubelet"} {
		for _, m := range planes {
			steps = append(steps, fmt.Sprintf("upgrade %s on %s: %s -> %s", c, m, from, to))
		}
	}

	for _, m := range machines[len(planes):] {
		steps = append(steps, fmt.Sprintf("upgrade kubelet on %s: %s -> %s", m, from, to))
	}

	return append(steps, fmt.Sprintf("sync the bootstrap manifests of Kubernetes %s from cp-1", to))
}

func stepTexts(steps []step.Step) []string {
	var out []string
	for _, s := range steps {
		out = append(out, s.String())
	}

	return out
}

// sortedPulls sorts consecutive pulls, because they run in parallel.
func sortedPulls(steps []string) []string {
	out := slices.Clone(steps)

	for i := 0; i < len(out); {
		j := i
		for j < len(out) && strings.HasPrefix(out[j], "pull ") {
			j++
		}

		slices.Sort(out[i:j])
		i = j + 1
	}

	return out
}

// TestKubernetesUpgrade_keepsImages upgrades components from custom repositories, with a suffix. Only their versions
// change.
func TestKubernetesUpgrade_keepsImages(t *testing.T) {
	t.Parallel()

	own := func(version string) string {
		return `
machine: {kubelet: {image: "registry.example.com:5000/mirror/kubelet:` + version + `-slim"}}
`
	}
	plane := func(version string) string {
		return `
cluster:
  apiServer: {image: "registry.example.com:5000/k8s/kube-apiserver:` + version + `"}
  scheduler: {image: "registry.example.com:5000/k8s/kube-scheduler:` + version + `"}
`
	}

	s := newSite(t, 1, 1, sim.Options{})
	s.kubernetesWith("v1.35.4", own("v1.35.4"), plane("v1.35.4"))
	s.create()
	s.kubernetesWith("v1.36.3", own("v1.36.3"), plane("v1.36.3"))
	s.converge()
	s.runsKubernetes("v1.36.3")
	s.settled()

	// Back to the default repositories; the version stays.
	s.kubernetesWith("v1.36.3", "", "")

	for _, op := range s.converge().Done {
		if c, ok := op.(step.UpgradeComponent); ok && !strings.Contains(c.From, "registry.example.com") {
			t.Errorf("%q changes an image that was as wanted: %s", op, c.From)
		}
	}

	s.runsKubernetes("v1.36.3")
}

// kubernetesWith is kubernetes with a patch for all machines and one for control planes.
func (s *site) kubernetesWith(version, all, planes string) {
	s.t.Helper()
	s.kubernetes(version)

	for i, m := range s.want.Machines {
		patches := []string{}
		for _, p := range []string{all, planes} {
			if p != "" && (p == all || m.Role == step.ControlPlane) {
				patches = append(patches, p)
			}
		}

		config := s.render(m.Role, patches...)
		s.configs[m.Name], s.want.Machines[i].ConfigDigest = config.Bytes, config.Digest

		var err error
		if s.want.Machines[i].Images, err = machineconfig.Images(config.Bytes); err != nil {
			s.t.Fatal(err)
		}
	}
}

// TestKubernetesUpgrade_holdsForAMachineThatIsDown changes nothing while a machine is down, reports it, and continues
// when it is back.
func TestKubernetesUpgrade_holdsForAMachineThatIsDown(t *testing.T) {
	t.Parallel()

	s := kubernetesSite(t, 3, 1, "v1.35.4")
	s.kubernetes("v1.36.3")

	down := s.sim.Machine("w-1")
	down.PowerOff()

	rounds := 0

	_, err := s.convergeUntil(func(e lifecycle.Event) bool {
		if e.State == lifecycle.Waiting && e.Machine == "w-1" {
			rounds++
		}

		return rounds == 5
	})

	var incomplete *lifecycle.IncompleteError
	if !errors.As(err, &incomplete) || !strings.Contains(err.Error(), "w-1") {
		t.Fatalf("the run ended with %v, want one that names w-1", err)
	}

	if len(incomplete.Done) > 0 {
		t.Errorf("done with a machine down: %v", incomplete.Done)
	}

	down.PowerOn()

	s.converge()
	s.runsKubernetes("v1.36.3")
}

// TestKubernetesUpgrade_withoutTheEndpoint removes the virtual IP halfway. The upgrade continues through the control
// planes' own addresses.
func TestKubernetesUpgrade_withoutTheEndpoint(t *testing.T) {
	t.Parallel()

	s := kubernetesSite(t, 3, 1, "v1.35.4")
	s.kubernetes("v1.36.3")
	s.policy.EndpointTimeout = 0 // it does not come back

	var once sync.Once

	s.sim.SetOnCall(func(c fault.Call) error {
		if c.Method == "ApplyConfiguration" && c.Machine == "cp-2" {
			once.Do(func() {
				if err := s.sim.DropEndpoint(s.want.Endpoint); err != nil {
					t.Error(err)
				}
			})
		}

		return nil
	})

	s.converge()
	s.runsKubernetes("v1.36.3")

	if holder := s.sim.EndpointHolder(s.want.Endpoint); holder != nil {
		t.Errorf("%s has the endpoint that was taken away", holder.Name())
	}
}

// TestKubernetesUpgrade_toAVersionThatIsNotThere changes nothing when an image of the new version does not exist.
func TestKubernetesUpgrade_toAVersionThatIsNotThere(t *testing.T) {
	t.Parallel()

	s := kubernetesSite(t, 1, 1, "v1.35.4")
	if err := s.sim.SetImage("registry.k8s.io/kube-scheduler:v1.36.3", images.Image{Missing: true}); err != nil {
		t.Fatal(err)
	}

	s.kubernetes("v1.36.3")

	if _, err := s.runner().Converge(bounded(t), s.want); err == nil ||
		!strings.Contains(err.Error(), "registry.k8s.io/kube-scheduler:v1.36.3") {
		t.Errorf("the run ended with %v, want one that names the image", err)
	}

	s.kubernetes("v1.35.4")
	s.settled()
	s.runsKubernetes("v1.35.4")
}

// TestKubernetesUpgrade_isStoppedByABrokenComponent: a component that does not start in the new version stops the
// upgrade at its machine. The error names the pod, the node and the last event, and the version can be set back.
func TestKubernetesUpgrade_isStoppedByABrokenComponent(t *testing.T) {
	t.Parallel()

	s := kubernetesSite(t, 3, 1, "v1.35.4")
	s.sim.Machine("cp-2").BreakComponent("kube-controller-manager", "v1.36.3")
	s.await = 2 * time.Second
	s.kubernetes("v1.36.3")

	_, err := s.convergeUntil(func(e lifecycle.Event) bool {
		return e.State == lifecycle.StepFailed && strings.Contains(e.Step.String(), "kube-controller-manager on cp-2") &&
			strings.Contains(e.Reason, "BackOff")
	})
	if err == nil {
		t.Fatal("the upgrade went through with a component that does not run")
	}

	have := s.runner().Observe(bounded(t), s.want)
	node, _ := have.NodeOf(s.want.Machines[1])

	for _, word := range []string{"kube-controller-manager-" + node.Name, node.Name, "BackOff"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not have %q: %v", word, err)
		}
	}

	if image := have.Machines["cp-3"].Images[kubenames.KubeControllerManager]; !strings.HasSuffix(image, "v1.35.4") {
		t.Errorf("cp-3 was given %s although the one of cp-2 does not run", image)
	}

	s.await = 0
	s.kubernetes("v1.35.4")
	s.converge()
	s.runsKubernetes("v1.35.4")
	s.settled()
}

// TestKubernetesUpgrade_survivesFailures fails, cuts off and kills an upgrade at its calls. The result is the same.
func TestKubernetesUpgrade_survivesFailures(t *testing.T) {
	t.Parallel()

	upgrade := func(s *site) { s.kubernetes("v1.36.3") }

	counted := kubernetesSite(t, 2, 1, "v1.35.4")
	upgrade(counted)

	counted.sim.ForgetCalls()
	counted.converge()

	// Two control planes with four components and two, three kubelets. Other calls are repeated anyway.
	points := counted.points()
	t.Logf("calls that change machines: %v", points)

	for i, at := range some(points, changeFailPoints) {
		for _, disturbance := range inTurn(i, disturbances()) {
			t.Run(fmt.Sprintf("%s at %s", disturbance.name, at), func(t *testing.T) {
				t.Parallel()

				s := kubernetesSite(t, 2, 1, "v1.35.4")
				upgrade(s)
				s.sim.ForgetCalls()
				disturbance.disturb(s, at, converge)
				s.converge()
				s.runsKubernetes("v1.36.3")
				s.settled()
			})
		}
	}
}

// TestJoin_duringAKubernetesUpgrade joins a worker with the current version of the cluster, and upgrades it with the
// others.
func TestJoin_duringAKubernetesUpgrade(t *testing.T) {
	t.Parallel()

	s := kubernetesSite(t, 1, 1, "v1.35.4")
	s.add("w-new", 1, step.Worker)
	s.kubernetes("v1.36.3")

	result := s.converge()

	joined := slices.IndexFunc(result.Done, func(op step.Step) bool {
		apply, ok := op.(step.ApplyConfig)

		return ok && strings.HasPrefix(apply.Machine, "w-new") && apply.Kubernetes == "v1.35.4"
	})
	if joined != 0 {
		t.Errorf("the new worker did not join first and with v1.35.4: %v", stepTexts(result.Done))
	}

	s.runsKubernetes("v1.36.3")
	s.settled()
}
