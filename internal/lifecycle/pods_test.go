package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// podSite is a site whose machines are pods of a host cluster. That is a stand-in here which
// does what the real one does to the Talos in a pod, and watches that it is done in order.
type podSite struct {
	*site

	mu   sync.Mutex
	pods map[string]*pod
}

// pod is what the host cluster has of one machine.
type pod struct {
	sim *sim.Machine
	// starts counts the containers that ran.
	starts int
	image  string // the release in the pod's image
	// memory stands for all else that a pod is made of.
	memory string
	gone   bool
	// trouble keeps everything from running in the pod, and lost its volumes from being used.
	trouble string
	lost    bool
}

const podDomain = ".talos.svc.cluster.local"

func newPodSite(t *testing.T, controlPlanes, workers int) *podSite {
	t.Helper()

	s := &podSite{site: newSite(t, 0, 0, sim.Options{}), pods: map[string]*pod{}}
	s.grow("cp", controlPlanes, cluster.ControlPlane)
	s.grow("w", workers, cluster.Worker)

	return s
}

// grow makes the pods of new machines, as the host does before a run.
func (s *podSite) grow(prefix string, n int, role cluster.Role) {
	s.t.Helper()

	machines, err := s.sim.AddMachines(context.Background(), prefix, n, sim.MachineOptions{Platform: machined.Container})
	if err != nil {
		s.t.Fatal(err)
	}

	for _, m := range machines {
		s.pods[m.Name()] = &pod{sim: m, starts: 1, image: "v1.13.0", memory: "2Gi"}
		s.want.Machines = append(s.want.Machines, cluster.Machine{
			Name: m.Name(), Role: role, Address: m.Name() + podDomain, TalosVersion: "v1.13.0", Container: true, NodeName: m.Name(),
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

// wanting wants a release and a size of all pods.
func (s *podSite) wanting(version, memory string) {
	for i := range s.want.Machines {
		m := &s.want.Machines[i]
		m.TalosVersion, m.Installer, m.Replace = version, "ghcr.io/siderolabs/talos:"+version, ""

		if p := s.pods[m.Name]; p.image != version || p.memory != memory {
			m.Replace = fmt.Sprintf("image %s -> %s, memory %s -> %s", p.image, version, p.memory, memory)
		}
	}
}

// runner reaches the machines by their names, and what they run in.
func (s *podSite) runner() *lifecycle.Runner {
	s.dial = s.route

	runner := s.site.runner()
	runner.Fleet = podFleet{s, runner.Fleet}

	return runner
}

// route connects to the pod that has a name now.
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

type podFleet struct {
	site  *podSite
	inner lifecycle.Fleet
}

func (f podFleet) Machine(m cluster.Machine) lifecycle.Machine {
	p := f.site.pods[m.Name]
	if p == nil {
		return f.inner.Machine(m)
	}

	return &podMachine{Machine: f.inner.Machine(m), site: f.site, want: m, pod: p, fleet: f.inner}
}

// podMachine is a machine whose host answers for what Talos in a pod cannot do.
type podMachine struct {
	lifecycle.Machine

	site  *podSite
	want  cluster.Machine
	pod   *pod
	fleet lifecycle.Fleet
}

var _ lifecycle.Volumes = (*podMachine)(nil)

func (m *podMachine) Observe(ctx context.Context) cluster.MachineState {
	m.site.mu.Lock()
	p := *m.pod
	m.site.mu.Unlock()

	state := cluster.MachineState{Access: cluster.Unreachable, Stopped: true, Cause: p.trouble}

	switch {
	case p.gone:
		return cluster.MachineState{Access: cluster.Gone}
	case p.trouble == "":
		state = m.Machine.Observe(ctx)
		state.Addresses = []string{p.sim.Address().String()}
	}

	state.BootID, state.VolumesLost = fmt.Sprint(m.want.Name, "/", p.starts), p.lost
	state.Current = p.image == m.want.TalosVersion && m.want.Replace == "" || strings.HasSuffix(m.want.Replace, p.memory) && p.image == m.want.TalosVersion

	return state
}

// PullImage would be for an installer.
func (m *podMachine) PullImage(context.Context, string) error {
	m.site.t.Errorf("%s is to pull an image", m.want.Name)

	return nil
}

func (m *podMachine) Upgrade(ctx context.Context, image, _ string, confirm func(context.Context) error) error {
	if err := confirm(ctx); err != nil {
		return err
	}

	m.inOrder(ctx, "replaced")

	_, version, _ := strings.Cut(image, ":")

	return m.start(func(p *pod) error {
		p.image = version

		if i := strings.LastIndex(m.want.Replace, " "); i >= 0 {
			p.memory = m.want.Replace[i+1:]
		}

		return p.sim.Place(sim.Placement{TalosVersion: version})
	})
}

func (m *podMachine) Reboot(ctx context.Context, uuid string) error {
	m.inOrder(ctx, "restarted")

	if err := m.Machine.Reboot(ctx, uuid); err != nil {
		return err
	}

	return m.start(func(*pod) error { return nil })
}

func (m *podMachine) Reset(ctx context.Context, graceful bool) error {
	if graceful {
		m.site.t.Errorf("%s is to drain itself", m.want.Name)
	}

	m.stop()
	m.pod.sim.Wipe()

	m.site.mu.Lock()
	defer m.site.mu.Unlock()

	m.pod.gone = true

	return nil
}

func (m *podMachine) ReplaceVolumes(context.Context) error {
	if !m.pod.lost {
		return errors.New("its volumes are not lost")
	}

	return m.start(func(p *pod) error {
		p.sim.Wipe()
		p.lost = false

		return p.sim.Place(sim.Placement{})
	})
}

func (m *podMachine) stop() {
	m.pod.sim.Terminate()
	<-m.pod.sim.Off()
}

// start starts another container, after a change.
func (m *podMachine) start(change func(*pod) error) error {
	m.stop()

	m.site.mu.Lock()
	defer m.site.mu.Unlock()

	if err := change(m.pod); err != nil {
		return err
	}

	m.pod.starts++
	m.pod.trouble = ""
	m.pod.sim.PowerOn()

	return nil
}

// inOrder fails the test when a control plane goes out of service while another one does not
// work, or is known to etcd at the address of a pod that it does not have any more.
func (m *podMachine) inOrder(ctx context.Context, what string) {
	if m.want.Role != cluster.ControlPlane {
		return
	}

	for _, other := range m.site.want.Machines {
		if other.Name == m.want.Name || other.Role != cluster.ControlPlane || m.pod.trouble != "" {
			continue
		}

		p := m.site.pods[other.Name]
		if ready, unmet := p.sim.Ready(); !ready {
			m.site.t.Errorf("%s is %s while %s is not ready: %v", m.want.Name, what, other.Name, unmet)
		}

		members, err := m.fleet.Machine(other).EtcdMembers(ctx)
		if err != nil {
			m.site.t.Errorf("%s is %s while %s does not list the members: %v", m.want.Name, what, other.Name, err)
		}

		here := "https://" + net.JoinHostPort(p.sim.Address().String(), "2380")
		if !slices.ContainsFunc(members, func(e cluster.EtcdMember) bool { return slices.Contains(e.PeerURLs, here) }) {
			m.site.t.Errorf("%s is %s while etcd does not know %s at %s: %v", m.want.Name, what, other.Name, here, members)
		}
	}
}

// steps are the texts of what a run did.
func steps(result lifecycle.Result) []string {
	var out []string
	for _, s := range result.Done {
		out = append(out, s.String())
	}

	return out
}

// TestPods takes a cluster of pods through its life.
func TestPods(t *testing.T) {
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

	// Another size of the pods, and a configuration that Talos restarts for.
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

	s.grow("new", 1, cluster.Worker)
	s.wanting(newerTalos, "4Gi")
	s.remove("cp-2", "cp-3", "w-1")
	s.converge()

	for name, p := range s.pods {
		if left := !slices.ContainsFunc(s.want.Machines, func(m cluster.Machine) bool { return m.Name == name }); p.gone != left {
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

// TestPods_oneThatDoesNotStart mends a pod of which nothing runs by making it of what is wanted now.
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

// TestPods_oneWhoseVolumesAreLost gives a control plane new volumes, and lets it join anew.
func TestPods_oneWhoseVolumesAreLost(t *testing.T) {
	t.Parallel()

	s := newPodSite(t, 3, 0)
	s.converge()

	lost := s.pods["cp-2"]
	lost.sim.PowerOff()
	lost.trouble, lost.lost = "its volumes are on node h-2, which is gone", true

	result := s.converge()
	if got := steps(result); !strings.HasPrefix(got[0], "replace volumes of control plane cp-2") || lost.lost || !strings.HasPrefix(got[1], "remove etcd member") {
		t.Errorf("done: %q", got)
	}
}

// TestVolumes_ofMetalAreNobodys are nobody's to replace.
func TestVolumes_ofMetalAreNobodys(t *testing.T) {
	t.Parallel()

	var metal lifecycle.Machine = (*talos.Machine)(nil)
	if _, is := metal.(lifecycle.Volumes); is {
		t.Error("a machine of metal has volumes")
	}
}
