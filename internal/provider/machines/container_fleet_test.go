package machines_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/preflight"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

// fakeHost is a host cluster with pods and no Talos in them.
type fakeHost struct {
	Mu sync.Mutex
	// pods by machine, what machines share, and the calls, in order.
	pods   map[string]workload.MachineState
	shared workload.Observation
	calls  []string
	// fails gives the error of a call; observing is called at the end of each observation.
	fails     map[string]error
	observing func()
	closed    int
	findings  []preflight.Finding
}

func newFakeHost(machines ...string) *fakeHost {
	h := &fakeHost{pods: map[string]workload.MachineState{}, fails: map[string]error{}}
	for _, name := range machines {
		h.pods[name] = workload.MachineState{Exists: true, Complete: true, Pod: name + "-0", Container: name + " run 1",
			Ready: true}
	}

	return h
}

func (h *fakeHost) set(machine string, change func(*workload.MachineState)) {
	h.Mu.Lock()
	defer h.Mu.Unlock()

	pod := h.pods[machine]
	change(&pod)
	h.pods[machine] = pod
}

func (h *fakeHost) call(name string, details ...string) error {
	h.Mu.Lock()
	defer h.Mu.Unlock()

	h.calls = append(h.calls, strings.Join(append([]string{name}, details...), " "))

	return h.fails[name]
}

func (h *fakeHost) count(name string) int {
	h.Mu.Lock()
	defer h.Mu.Unlock()

	n := 0

	for _, call := range h.calls {
		if call == name {
			n++
		}
	}

	return n
}

func (h *fakeHost) Identity(context.Context) (workload.Identity, error) {
	return workload.Identity{UID: "fake"}, h.fails["identity"]
}

func (h *fakeHost) Observe(_ context.Context, spec workload.Spec) (workload.Observation, error) {
	if err := h.call("observe"); err != nil {
		return workload.Observation{}, err
	}

	h.Mu.Lock()
	seen := workload.Observation{Machines: map[string]workload.MachineState{}, Missing: h.shared.Missing,
		Drift: h.shared.Drift}

	for _, m := range spec.Machines {
		seen.Machines[m.Name] = h.pods[m.Name]
	}

	observing := h.observing
	h.Mu.Unlock()

	if observing != nil {
		observing()
	}

	return seen, nil
}

func (h *fakeHost) Check(context.Context, workload.Spec) ([]preflight.Finding, error) {
	return h.findings, h.call("check")
}

func (h *fakeHost) Ensure(context.Context, workload.Spec) error { return h.call("ensure") }

func (h *fakeHost) Replace(_ context.Context, spec workload.Spec, machine string) error {
	m, _ := spec.Machine(machine)

	return h.call("replace", machine, m.Image)
}

func (h *fakeHost) Restart(_ context.Context, _ workload.Spec, machine string) error {
	return h.call("restart", machine)
}

func (h *fakeHost) ContainerAt(context.Context, workload.Spec, string) (string, bool, error) {
	return "", false, h.call("container at")
}

func (h *fakeHost) RestartAt(_ context.Context, _ workload.Spec, address string) error {
	return h.call("restart at", address)
}

func (h *fakeHost) Wipe(_ context.Context, _ workload.Spec, machine string) error {
	return h.call("wipe", machine)
}

func (h *fakeHost) Remove(_ context.Context, _ workload.Spec, machine string) error {
	return h.call("remove", machine)
}

func (h *fakeHost) RemoveShared(context.Context, workload.Spec) error {
	return h.call("remove shared")
}

func (h *fakeHost) Dial(workload.Spec) func(context.Context, string, string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext
}

func (h *fakeHost) ExternalEndpoint(context.Context, workload.Spec) (string, error) {
	return "", h.call("external endpoint")
}

func (h *fakeHost) Close() {
	h.Mu.Lock()
	defer h.Mu.Unlock()

	h.closed++
}

// talosFleet is machines that report what a test sets.
type talosFleet func(name string) step.MachineState

func (f talosFleet) Machine(m cluster.Machine) lifecycle.Machine {
	return talosMachine{observe: func() step.MachineState { return f(m.Name) }}
}

// talosMachine answers observations; any other call panics.
type talosMachine struct {
	lifecycle.Machine

	observe func() step.MachineState
}

func (m talosMachine) Observe(context.Context) step.MachineState { return m.observe() }

func (m talosMachine) Reboot(context.Context, string) error {
	return wait.Permanent(fmt.Errorf("reboot: %w", talos.ErrUnsupported))
}

func memberAlways(string) step.MachineState {
	return step.MachineState{Access: step.Member, Stage: step.StageRunning, Ready: true, BootID: "of the kernel"}
}

// containersOn is machines in the pods of a host.
func containersOn(h containers.Host, talos talosFleet, fresh time.Duration, names ...string) containers.ContainerFleet {
	spec := workload.Spec{Cluster: "dev", Namespace: "clusters"}
	for i, name := range names {
		spec.Machines = append(spec.Machines, workload.Machine{Name: name, Pool: "cp", Ordinal: i, Image: "talos:v1.13.0"})
	}

	return containers.ContainerFleet{Inner: talos, Watch: containers.NewHostWatch(h, spec, fresh)}
}

func observeOn(t *testing.T, f containers.ContainerFleet, name string) step.MachineState {
	t.Helper()

	return f.Machine(cluster.Machine{Name: name}).Observe(t.Context())
}

// The boot of a container is the run of its container, because the boot of the kernel never changes.
func TestContainer_bootIsTheRunOfItsContainer(t *testing.T) {
	t.Parallel()

	h := newFakeHost("cp-0")
	f := containersOn(h, memberAlways, 0, "cp-0")

	if got := observeOn(t, f, "cp-0").BootID; got != "cp-0 run 1" {
		t.Errorf("boot id %q", got)
	}

	h.set("cp-0", func(s *workload.MachineState) { s.Container = "cp-0 run 2" })

	if got := observeOn(t, f, "cp-0").BootID; got != "cp-0 run 2" {
		t.Errorf("boot id after a restart %q", got)
	}
}

// A machine must not count as restarted because of an answer from before the restart.
func TestContainer_restartsWhileObserved(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		// The restart comes right after the observation of the host, or during that of the machine.
		restart func(h *fakeHost, f *talosFleet)
		version string
		boot    string
	}{
		"between the two": {
			restart: func(h *fakeHost, _ *talosFleet) {
				h.observing = func() { h.set("cp-0", func(s *workload.MachineState) { s.Container = "cp-0 run 2" }) }
			},
			version: "v1.13.1", boot: "cp-0 run 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			h := newFakeHost("cp-0")

			var talos talosFleet = func(string) step.MachineState {
				s := memberAlways("")
				s.TalosVersion = "v1.13.0"

				if h.pods["cp-0"].Container == "cp-0 run 2" {
					s.TalosVersion = "v1.13.1"
				}

				return s
			}

			test.restart(h, &talos)

			if got := observeOn(t, containersOn(h, talos, 0, "cp-0"), "cp-0"); got.TalosVersion != test.version ||
				got.BootID != test.boot {
				t.Errorf("it answered with %s as %q", got.TalosVersion, got.BootID)
			}
		})
	}
}

// A machine that restarts again during its first observation after a restart is still on its way.
func TestContainer_restartsTwice(t *testing.T) {
	t.Parallel()

	h := newFakeHost("cp-0")
	runs := 1
	restarts := false

	f := containersOn(h, func(string) step.MachineState {
		if restarts {
			runs++
			h.set("cp-0", func(s *workload.MachineState) { s.Container = fmt.Sprintf("cp-0 run %d", runs) })
		}

		return memberAlways("")
	}, 0, "cp-0")

	if got := observeOn(t, f, "cp-0"); got.Access != step.Member {
		t.Fatalf("it is %v", got)
	}

	h.set("cp-0", func(s *workload.MachineState) { s.Container = "cp-0 run 1b" })

	restarts = true

	if got := observeOn(t, f, "cp-0"); got.Access != step.Unreachable ||
		!strings.Contains(got.Cause, "just restarted") {
		t.Errorf("it is %s: %s", got.Access, got.Cause)
	}
}

// Only the host reports that a machine is gone: neither its silence nor that of the host is proof.
func TestContainer_isGoneOnlyIfTheHostSaysSo(t *testing.T) {
	t.Parallel()

	silent := func(string) step.MachineState {
		return step.MachineState{Access: step.Unreachable, Cause: "no answer"}
	}

	h := newFakeHost("cp-0", "cp-1")
	delete(h.pods, "cp-1")
	f := containersOn(h, silent, 0, "cp-0", "cp-1")

	if got := observeOn(t, f, "cp-0"); got.Access != step.Unreachable || got.BootID != "cp-0 run 1" {
		t.Errorf("the silent one is %+v", got)
	}

	if got := observeOn(t, f, "cp-1"); got.Access != step.Gone {
		t.Errorf("the one that is gone is %s", got.Access)
	}

	h.fails["observe"] = errors.New("connection refused")

	for _, name := range []string{"cp-0", "cp-1"} {
		if got := observeOn(t, f, name); got.Access != step.Unreachable ||
			!strings.Contains(got.Cause, "connection refused") {
			t.Errorf("%s of a silent host is %s: %s", name, got.Access, got.Cause)
		}
	}
}

// A pod that does not run reports why, and its machine is not asked.
func TestContainer_podThatDoesNotRun(t *testing.T) {
	t.Parallel()

	h := newFakeHost("cp-0")
	h.set("cp-0", func(s *workload.MachineState) {
		s.Container, s.Diagnosis, s.VolumesLost = "", "pod dev-cp-0-0: ErrImagePull", true
	})

	got := observeOn(t, containersOn(h, func(string) step.MachineState {
		t.Error("the machine was asked")

		return step.MachineState{}
	}, 0, "cp-0"), "cp-0")

	if got.Access != step.Unreachable || got.Cause != "pod dev-cp-0-0: ErrImagePull" || !got.VolumesLost ||
		!got.Stopped {
		t.Errorf("it is %+v", got)
	}
}

// Machines of a round share one observation of the host; a change is observed again.
func TestContainer_sharesObservationsOfTheHost(t *testing.T) {
	t.Parallel()

	names := []string{"cp-0", "cp-1", "cp-2"}
	h := newFakeHost(names...)
	f := containersOn(h, memberAlways, time.Hour, names...)

	var asking sync.WaitGroup
	for _, name := range slices.Repeat(names, 5) {
		asking.Go(func() { observeOn(t, f, name) })
	}

	asking.Wait()

	if got := h.count("observe"); got != 1 {
		t.Errorf("the host was looked at %d times", got)
	}

	if err := f.Machine(cluster.Machine{Name: "cp-0"}).Reboot(t.Context(), ""); err != nil {
		t.Fatal(err)
	}

	observeOn(t, f, "cp-1")

	if got := h.count("observe"); got != 2 {
		t.Errorf("after a change the host was looked at %d times", got)
	}
}

// An observation that its caller canceled reports nothing to the others.
func TestContainer_canceledObservation(t *testing.T) {
	t.Parallel()

	h := newFakeHost("cp-0")
	f := containersOn(h, memberAlways, time.Hour, "cp-0")
	ctx, cancel := context.WithCancel(t.Context())

	h.observing = cancel // called while the first caller observes
	f.Machine(cluster.Machine{Name: "cp-0"}).Observe(ctx)

	if got := observeOn(t, f, "cp-0"); got.Access != step.Member {
		t.Errorf("it is %+v", got)
	}

	if got := h.count("observe"); got != 2 {
		t.Errorf("the host was looked at %d times", got)
	}
}

// The host does what a machine in a container cannot do. An upgrade that is not confirmed touches nothing, and one
// in several hops runs the image of each hop.
func TestContainer_changesGoThroughTheHost(t *testing.T) {
	t.Parallel()

	h := newFakeHost("cp-0")
	f := containersOn(h, memberAlways, 0, "cp-0")
	m := f.Machine(cluster.Machine{Name: "cp-0"})
	refused := errors.New("another one went down")

	if err := m.Upgrade(t.Context(), "talos:v1.12.4", "", func(context.Context) error { return refused }); !errors.Is(err,
		refused) {
		t.Errorf("an upgrade that is not confirmed: %v", err)
	}

	if len(h.calls) > 0 {
		t.Errorf("it touched the host: %v", h.calls)
	}

	for what, err := range map[string]error{
		"pull":    m.PullImage(t.Context(), "talos:v1.12.4"),
		"upgrade": m.Upgrade(t.Context(), "talos:v1.12.4", "", func(context.Context) error { return nil }),
		"reboot":  m.Reboot(t.Context(), ""),
		"reset":   m.Reset(t.Context(), true, wipe.Reset{}),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}

	slices.Sort(h.calls)

	if want := []string{"remove cp-0", "replace cp-0 talos:v1.12.4", "restart cp-0"}; !slices.Equal(h.calls, want) {
		t.Errorf("the host was asked for %v, want %v", h.calls, want)
	}

	if f.Watch.Spec.Machines[0].Image != "talos:v1.13.0" {
		t.Error("the upgrade changed what is wanted")
	}
}

// Volumes are replaced when the host reports them lost, at the time of the change.
func TestContainer_lostVolumesAreReplaced(t *testing.T) {
	t.Parallel()

	h := newFakeHost("cp-0")
	f := containersOn(h, memberAlways, time.Hour, "cp-0")

	m, ok := f.Machine(cluster.Machine{Name: "cp-0"}).(lifecycle.Volumes)
	if !ok {
		t.Fatal("a container has no volumes")
	}

	if err := m.ReplaceVolumes(t.Context()); !wait.IsPermanent(err) || slices.Contains(h.calls, "wipe cp-0") {
		t.Errorf("volumes that are there: %v; the host was asked for %v", err, h.calls)
	}

	h.set("cp-0", func(s *workload.MachineState) { s.VolumesLost = true })

	if err := m.ReplaceVolumes(t.Context()); err != nil || !slices.Contains(h.calls, "wipe cp-0") {
		t.Errorf("volumes that are lost: %v; the host was asked for %v", err, h.calls)
	}
}

// Control planes of other resources are asked as they are.
func TestContainer_ofAnotherResource(t *testing.T) {
	t.Parallel()

	h := newFakeHost()
	if got := observeOn(t, containersOn(h, memberAlways, 0, "cp-0"), "10.1.2.3"); got.Access != step.Member ||
		len(h.calls) > 0 {
		t.Errorf("it is %s, and the host was asked %v", got.Access, h.calls)
	}
}

// Operations share a connection to a host, and the last one closes it.
func TestHost_connectionIsShared(t *testing.T) {
	t.Parallel()

	var opened []*fakeHost

	all := providerdata.NewHosts()
	all.Open = func(hostcluster.Options) (containers.Host, error) {
		opened = append(opened, newFakeHost())

		return opened[len(opened)-1], nil
	}

	of := func(context string) hostcluster.Options {
		return hostcluster.Options{Kubeconfig: api.Kubeconfig{Path: "kubeconfig", Context: context}}
	}

	var leave []func()

	for _, name := range []string{"kind", "kind", "other"} {
		_, left, err := all.Join(of(name))
		if err != nil {
			t.Fatal(err)
		}

		leave = append(leave, left)
	}

	leave[0]()

	if len(opened) != 2 || opened[0].closed != 0 {
		t.Errorf("%d connections were opened, the shared one closed %d times", len(opened), opened[0].closed)
	}

	leave[1]()

	if opened[0].closed != 1 || opened[1].closed != 0 || len(all.By) != 1 {
		t.Errorf("closed %d and %d times, %d are left", opened[0].closed, opened[1].closed, len(all.By))
	}

	if _, _, err := all.Join(of("kind")); err != nil || len(opened) != 3 {
		t.Errorf("a connection that was closed is used again: %v", err)
	}
}
