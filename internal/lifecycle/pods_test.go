package lifecycle_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

// podSite is a site whose machines are pods of a host cluster. Runs reach them through the product's fleet of
// containers. A double of the host API does what the real one does to the Talos in a pod, and checks the order.
type podSite struct {
	*site

	mu   sync.Mutex
	pods map[string]*pod
	// memory is the wanted memory of each pod.
	memory string
}

// pod is the pod of one machine on the host cluster.
type pod struct {
	sim *sim.Machine
	// starts counts the started containers.
	starts int
	image  string // the release in the pod's image
	// memory stands for the rest of the pod's specification.
	memory string
	gone   bool
	// trouble prevents everything in the pod from running, and lost makes its volumes unusable.
	trouble string
	lost    bool
}

const podDomain = ".talos.svc.cluster.local"

func newPodSite(t *testing.T, controlPlanes, workers int) *podSite {
	t.Helper()

	s := &podSite{site: newSite(t, 0, 0, sim.Options{}), pods: map[string]*pod{}, memory: "2Gi"}
	s.grow("cp", controlPlanes, step.ControlPlane)
	s.grow("w", workers, step.Worker)

	return s
}

// grow makes the pods of new machines, as the host does before a run.
func (s *podSite) grow(prefix string, n int, role step.Role) {
	s.t.Helper()

	machines, err := s.sim.AddMachines(context.Background(), prefix, n, sim.MachineOptions{Platform: machined.Container})
	if err != nil {
		s.t.Fatal(err)
	}

	for _, m := range machines {
		s.pods[m.Name()] = &pod{sim: m, starts: 1, image: "v1.13.0", memory: "2Gi"}
		s.want.Machines = append(s.want.Machines, cluster.Machine{
			Name: m.Name(), Role: role, Wanted: cluster.Wanted{Address: m.Name() + podDomain},
			Installation: cluster.Installation{TalosVersion: "v1.13.0"}, Container: true,
			Remembered: cluster.Remembered{NodeName: m.Name()},
		})
	}

	s.configure("")
}

// configure renders the configuration of every machine.
func (s *podSite) configure(patch string) {
	s.t.Helper()

	for i, m := range s.want.Machines {
		machine := machineconfig.Machine{Role: machineconfig.Role(m.Role), Hostname: m.Name, CertSANs: []string{m.Address}}
		if patch != "" {
			machine.Patches = []string{patch}
		}

		config, err := machineconfig.Generate(machineconfig.Cluster{
			Name: s.want.Name, Endpoint: s.want.Endpoint, KubernetesVersion: "v1.35.2", Contract: "v1.13", Container: true,
		}, machine, s.bundle)
		if err != nil {
			s.t.Fatal(err)
		}

		s.configs[m.Name], s.want.Machines[i].ConfigDigest = config.Bytes, config.Digest
	}
}

// wanting sets the wanted release and size of all pods.
func (s *podSite) wanting(version, memory string) {
	s.memory = memory

	for i := range s.want.Machines {
		m := &s.want.Machines[i]
		m.TalosVersion, m.Installer, m.Replace = version, talosImage(version), ""

		if p := s.pods[m.Name]; p.image != version || p.memory != memory {
			m.Replace = fmt.Sprintf("image %s -> %s, memory %s -> %s", p.image, version, p.memory, memory)
		}
	}
}

// runner reaches the machines by name, and their host, as the product does.
func (s *podSite) runner() *lifecycle.Runner {
	s.dial = s.route

	runner := s.site.runner()
	inner := podTalos{s, runner.Fleet}
	runner.Fleet = containers.ContainerFleet{Inner: inner,
		Watch: containers.NewHostWatch(&podHost{site: s, talos: inner}, s.spec(), runner.Interval)}

	return runner
}

// spec is the host's specification of the machines.
func (s *podSite) spec() workload.Spec {
	var spec workload.Spec

	for _, m := range s.want.Known() {
		spec.Machines = append(spec.Machines, workload.Machine{
			Name: m.Name, Image: talosImage(m.TalosVersion),
			Pod: workload.PodSpec{Annotations: map[string]string{memoryOfPod: s.memory}},
		})
	}

	return spec
}

// route connects to the current pod of a name.
func (s *podSite) route(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}

	if name, ours := strings.CutSuffix(host, podDomain); ours {
		host = s.pods[name].sim.Address().String()
	}

	return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(host, port))
}

func (s *podSite) converge() lifecycle.Result {
	s.t.Helper()

	result, err := s.runner().Converge(bounded(s.t), s.want)
	if err != nil {
		s.t.Fatalf("converge: %v", err)
	}

	s.want.Removed = nil
	s.isReady(result.Snapshot)
	s.record(result.Snapshot)

	return result
}

// memoryOfPod stands for the specification of a pod except its image.
const memoryOfPod = "memory"

func talosImage(version string) string { return "ghcr.io/siderolabs/talos:" + version }

// podTalos is the Talos API of machines that are pods, where some calls are never made.
type podTalos struct {
	site  *podSite
	inner lifecycle.Fleet
}

func (f podTalos) Machine(m cluster.Machine) lifecycle.Machine {
	p := f.site.pods[m.Name]
	if p == nil {
		return f.inner.Machine(m)
	}

	return &podMachine{Machine: f.inner.Machine(m), fleet: f, name: m.Name, pod: p}
}

type podMachine struct {
	lifecycle.Machine

	fleet podTalos
	name  string
	pod   *pod
}

// Reboot ends Talos, and the kubelet restarts its container.
func (m *podMachine) Reboot(ctx context.Context, uuid string) error {
	m.fleet.inOrder(ctx, m.name, "restarted")

	if err := m.Machine.Reboot(ctx, uuid); err != nil {
		return err
	}

	return m.fleet.site.start(m.pod, func(*pod) error { return nil })
}

// PullImage would pull an installer.
func (m *podMachine) PullImage(context.Context, string) error {
	m.fleet.site.t.Errorf("%s is to pull an image", m.name)

	return nil
}

// Upgrade would install on a disk.
func (m *podMachine) Upgrade(context.Context, string, string, func(context.Context) error) error {
	m.fleet.site.t.Errorf("%s is to upgrade itself", m.name)

	return nil
}

// Reset would wipe a disk.
func (m *podMachine) Reset(context.Context, bool, wipe.Reset) error {
	m.fleet.site.t.Errorf("%s is to reset itself", m.name)

	return nil
}

// podHost is the host cluster of the pods, as far as a run changes and observes machines.
type podHost struct {
	containers.Host // shared objects are never created

	site  *podSite
	talos podTalos
}

func (h *podHost) Observe(_ context.Context, spec workload.Spec) (workload.Observation, error) {
	h.site.mu.Lock()
	defer h.site.mu.Unlock()

	seen := workload.Observation{Machines: map[string]workload.MachineState{}}

	for _, m := range spec.Machines {
		p := h.site.pods[m.Name]

		state := workload.MachineState{Exists: !p.gone, Image: talosImage(p.image), Diagnosis: p.trouble, VolumesLost: p.lost}
		if !p.gone && p.trouble == "" {
			state.Container, state.PodIPs = fmt.Sprint(m.Name, "/", p.starts), []string{p.sim.Address().String()}
		}

		if state.Image != m.Image || p.memory != m.Pod.Annotations[memoryOfPod] {
			state.Outdated = []workload.Difference{{}}
		}

		seen.Machines[m.Name] = state
	}

	return seen, nil
}

// Replace replaces the pod of a machine by the wanted one.
func (h *podHost) Replace(ctx context.Context, spec workload.Spec, machine string) error {
	h.talos.inOrder(ctx, machine, "replaced")

	wanted, _ := spec.Machine(machine)
	_, version, _ := strings.Cut(wanted.Image, ":")

	return h.site.start(h.site.pods[machine], func(p *pod) error {
		p.image, p.memory = version, wanted.Pod.Annotations[memoryOfPod]

		return p.sim.Place(sim.Placement{TalosVersion: version})
	})
}

func (h *podHost) Remove(_ context.Context, _ workload.Spec, machine string) error {
	p := h.site.pods[machine]
	p.stop()
	p.sim.Wipe()

	h.site.mu.Lock()
	defer h.site.mu.Unlock()

	p.gone = true

	return nil
}

// Wipe replaces the pod of a machine and its volumes.
func (h *podHost) Wipe(_ context.Context, _ workload.Spec, machine string) error {
	return h.site.start(h.site.pods[machine], func(p *pod) error {
		p.sim.Wipe()
		p.lost = false

		return p.sim.Place(sim.Placement{})
	})
}

func (p *pod) stop() {
	p.sim.Terminate()
	<-p.sim.Off()
}

// start changes a pod and starts its next container.
func (s *podSite) start(p *pod, change func(*pod) error) error {
	p.stop()

	s.mu.Lock()
	defer s.mu.Unlock()

	if err := change(p); err != nil {
		return err
	}

	p.starts++
	p.trouble = ""
	p.sim.PowerOn()

	return nil
}

// inOrder fails the test when a control plane goes out of service at the wrong time: while another one does not work,
// or while etcd knows another one at the address of its former pod.
func (f podTalos) inOrder(ctx context.Context, machine, what string) {
	own, _ := f.site.want.Find(machine)
	if own.Role != step.ControlPlane || f.site.pods[machine].trouble != "" {
		return
	}

	for _, other := range f.site.want.Machines {
		if other.Name == machine || other.Role != step.ControlPlane {
			continue
		}

		p := f.site.pods[other.Name]
		if ready, unmet := p.sim.Ready(); !ready {
			f.site.t.Errorf("%s is %s while %s is not ready: %v", machine, what, other.Name, unmet)
		}

		members, err := f.inner.Machine(other).EtcdMembers(ctx)
		if err != nil {
			f.site.t.Errorf("%s is %s while %s does not list the members: %v", machine, what, other.Name, err)
		}

		here := "https://" + net.JoinHostPort(p.sim.Address().String(), "2380")
		if !slices.ContainsFunc(members, func(e etcdstate.Member) bool { return slices.Contains(e.PeerURLs, here) }) {
			f.site.t.Errorf("%s is %s while etcd does not know %s at %s: %v", machine, what, other.Name, here, members)
		}
	}
}

// steps are the texts of the steps of a run.
func steps(result lifecycle.Result) []string {
	var out []string
	for _, s := range result.Done {
		out = append(out, s.String())
	}

	return out
}

// TestPods_lifecycle takes a cluster of pods through its lifecycle.
func TestPods_lifecycle(t *testing.T) {
	t.Parallel()

	s := newPodSite(t, 3, 1)
	s.converge()

	was := map[string]string{}
	for name, p := range s.pods {
		was[name] = p.sim.Address().String()
	}

	s.wanting(newerTalos, "2Gi")
	s.converge()

	for name, p := range s.pods {
		if p.sim.TalosVersion() != newerTalos || p.sim.Address().String() == was[name] || p.starts != 2 {
			t.Errorf("%s runs %s at %s after %d starts", name, p.sim.TalosVersion(), p.sim.Address(), p.starts)
		}
	}

	// Another size of the pods, and a configuration for which Talos restarts.
	s.wanting(newerTalos, "4Gi")
	s.configure(needsReboot)
	s.converge()

	for name, p := range s.pods {
		if p.memory != "4Gi" || p.starts != 4 {
			t.Errorf("%s has %s after %d starts", name, p.memory, p.starts)
		}
	}

	s.wanting(newerTalos, "4Gi")

	if result := s.converge(); len(result.Done) > 0 {
		t.Errorf("then there is %v", steps(result))
	}

	s.grow("new", 1, step.Worker)
	s.wanting(newerTalos, "4Gi")
	s.remove("cp-2", "cp-3", "w-1")
	s.converge()

	for name, p := range s.pods {
		if left := !slices.ContainsFunc(s.want.Machines,
			func(m cluster.Machine) bool { return m.Name == name }); p.gone != left {
			t.Errorf("%s is gone: %v", name, p.gone)
		}
	}

	if _, err := s.runner().Teardown(bounded(t), s.want); err != nil {
		t.Errorf("teardown: %v", err)
	}

	for name, p := range s.pods {
		if !p.gone {
			t.Errorf("%s is left", name)
		}
	}
}

// TestPods_oneThatDoesNotStart repairs a pod in which nothing runs by replacing it with the wanted one.
func TestPods_oneThatDoesNotStart(t *testing.T) {
	t.Parallel()

	s := newPodSite(t, 3, 1)
	s.converge()

	broken := s.pods["cp-2"]
	broken.sim.PowerOff()
	broken.trouble, broken.image = "ErrImagePull", "v1.13.99"

	s.wanting(newerTalos, "2Gi")

	result := s.converge()
	if first := steps(result)[0]; !strings.HasPrefix(first, "replace pod of cp-2: image v1.13.99 -> "+newerTalos) {
		t.Errorf("first of all: %s", first)
	}
}

// TestPods_oneWhoseVolumesAreLost gives a control plane new volumes, and lets it join again.
func TestPods_oneWhoseVolumesAreLost(t *testing.T) {
	t.Parallel()

	s := newPodSite(t, 3, 0)
	s.converge()

	lost := s.pods["cp-2"]
	lost.sim.PowerOff()
	lost.trouble, lost.lost = "its volumes are on node h-2, which is gone", true

	result := s.converge()
	if got := steps(result); !strings.HasPrefix(got[0], "replace volumes of control plane cp-2") || lost.lost ||
		!strings.HasPrefix(got[1], "remove etcd member") {
		t.Errorf("done: %q", got)
	}
}

// TestVolumes_ofMetalAreNotReplaced: only the volumes of pods can be replaced.
func TestVolumes_ofMetalAreNotReplaced(t *testing.T) {
	t.Parallel()

	var metal lifecycle.Machine = (*talos.Machine)(nil)
	if _, is := metal.(lifecycle.Volumes); is {
		t.Error("a machine of metal has volumes")
	}
}
