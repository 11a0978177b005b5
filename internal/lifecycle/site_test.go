package lifecycle_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/lock"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// fleet adapts the machines of package talos to the runner.
type fleet struct{ *talos.Fleet }

func (f fleet) Machine(m cluster.Machine) lifecycle.Machine { return f.Fleet.Machine(m) }

// site is a set of simulated machines and the user's spec.
type site struct {
	t      testing.TB
	sim    *sim.Simulator
	bundle *pki.Bundle
	// former is the former bundle in state during a key rotation, otherwise nil.
	former  *pki.Bundle
	want    cluster.Spec
	configs map[string][]byte
	policy  cluster.Policy
	// contract and talos are the versions of the rendered configurations; v1.13 where they are empty.
	contract, talos string
	// fallbacks are control planes that are asked when the endpoint does not answer. await is the wait for one
	// component; a minute where it is zero.
	fallbacks []string
	await     time.Duration
	// timeouts of the Talos API; the defaults where they are zero.
	timeouts talos.Timeouts
	// snapshot is what is restored, where that is wanted.
	snapshot *held
	// dial connects to the Talos API; directly where it is nil.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	// served receives every call of the Talos API after it was served; see site.kill.
	served atomic.Pointer[func(fault.Call)]
	// unstruck fails the test when the requested point was not struck.
	unstruck func()
	// isolated is set for a cluster that is isolated from one with the same secrets.
	isolated bool
	// quiet is set where events are not logged.
	quiet bool
	// boots is the boot count of each machine when a change began; see site.settles.
	boots map[string]int
}

// deadAfter is how long a teardown waits for silent machines in tests that make some silent. It is longer than
// machines are away, even on a busy computer.
const deadAfter = 8 * time.Second

// newSite starts blank machines and describes a cluster of them.
func newSite(t testing.TB, controlPlanes, workers int, opts sim.Options) *site {
	t.Helper()

	s := &site{t: t, bundle: testBundle(t), configs: map[string][]byte{}, policy: cluster.DefaultPolicy()}
	s.policy.AppearWithin = 10 * time.Minute // on a busy computer, a machine of a killed run may boot slowly

	opts.Observe = func(c fault.Call) {
		if served := s.served.Load(); served != nil {
			(*served)(c)
		}
	}

	s.sim = sim.ForTest(t, opts)

	endpoint, err := s.sim.Endpoint()
	if err != nil {
		t.Fatal(err)
	}

	s.want = cluster.Spec{Name: "prod", Endpoint: endpoint, NodesBecomeReady: true}

	s.add("cp", controlPlanes, step.ControlPlane)
	s.add("w", workers, step.Worker)

	return s
}

func (s *site) add(prefix string, n int, role step.Role) {
	s.t.Helper()

	machines, err := s.sim.AddMachines(context.Background(), prefix, n, sim.MachineOptions{})
	if err != nil {
		s.t.Fatal(err)
	}

	for _, m := range machines {
		if role == step.ControlPlane {
			s.fallbacks = append(s.fallbacks, m.Address().String())
		}

		config := s.render(role)
		s.configs[m.Name()] = config.Bytes
		s.want.Machines = append(s.want.Machines, cluster.Machine{
			Name: m.Name(), Role: role, Wanted: cluster.Wanted{Address: m.Address().String()},
			Configured:   cluster.Configured{ConfigDigest: config.Digest},
			Installation: cluster.Installation{TalosVersion: "v1.13.0", InstallTarget: "/dev/sda"},
		})
	}
}

func (s *site) render(role step.Role, patches ...string) machineconfig.Config {
	s.t.Helper()

	return s.renderFor(role, cmp.Or(s.contract, "v1.13"), cmp.Or(s.talos, "v1.13.0"), patches...)
}

// renderFor renders the configuration of a machine with a version contract, for the Talos that is installed on it.
func (s *site) renderFor(role step.Role, contract, version string, patches ...string) machineconfig.Config {
	s.t.Helper()

	kubernetes := s.want.Kubernetes.Version

	switch {
	case kubernetes != "":
	case contract == "v1.11":
		kubernetes = "v1.34.1"
	default:
		kubernetes = "v1.35.2"
	}

	config, err := machineconfig.Generate(
		machineconfig.Cluster{Name: s.want.Name, Endpoint: s.want.Endpoint, KubernetesVersion: kubernetes, Contract: contract,
			Isolated: s.isolated, Patches: patches},
		machineconfig.Machine{
			Role: machineconfig.Role(role), Mode: machineconfig.Metal,
			Install: machineconfig.Install{Disk: "/dev/sda", Image: "ghcr.io/siderolabs/installer:" + version},
		}, s.bundle)
	if err != nil {
		s.t.Fatal(err)
	}

	return config
}

// runner connects to the machines as a new process would.
func (s *site) runner() *lifecycle.Runner {
	s.t.Helper()

	return s.runnerIn(nil)
}

// runnerIn is runner in a process that can be killed.
func (s *site) runnerIn(p *process) *lifecycle.Runner {
	s.t.Helper()

	lock := lock.Options{Cluster: s.want.Endpoint, Name: s.t.Name()}
	if p != nil {
		// The runs of one process queue for the lock. A killed run remains only in the Lease.
		lock.Cluster, lock.Duration = fmt.Sprintf("%s %p", s.want.Endpoint, p), killedLock
	}

	bundle := s.bundle.Knowing(s.former)

	admin, err := bundle.TalosClient([]string{"os:admin"}, time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}

	a, err := talos.NewFleet(talos.Options{
		Credentials: talosCredentials(admin), Keys: machineconfig.Keys,
		Digest: machineconfig.Digest,
		Images: machineconfig.Images,
		RebootFor: func(machine, version string, active []byte) ([]string, error) {
			_, fields, err := machineconfig.NeedsReboot(active, s.configs[machine], version)

			return fields, err
		},
		Timeouts: generous(s.timeouts),
		Dial:     p.dialer(s.dial),
		Restores: s.snapshot != nil,
	})
	if err != nil {
		s.t.Fatal(err)
	}

	s.t.Cleanup(a.Close)

	client, err := bundle.KubernetesClient("admin", []string{"system:masters"}, time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}

	var former []api.Options
	for _, c := range client.Former {
		former = append(former, api.Options{CA: c.CA, Cert: c.Certificate, Key: c.Key})
	}

	nodes, err := kubernetes.New(api.Options{
		Endpoint: s.want.Endpoint, Fallbacks: s.fallbacks, CA: client.CA, Cert: client.Certificate, Key: client.Key,
		StaticPods: true, Former: former, Cluster: s.bundle.Mark(), OwnerKeys: bundle.OwnerKeys(),
		Await: cmp.Or(s.await, time.Minute), Poll: 100 * time.Millisecond, Dial: p.dialer(nil),
	})
	if err != nil {
		s.t.Fatal(err)
	}

	runner := &lifecycle.Runner{
		Fleet: fleet{a}, Kubernetes: nodes, Lock: nodes.Lock(lock), Configs: s.configs,
		Images: machineconfig.WithImages,
		Keys: func(config, active []byte, keys rotation.Keys) ([]byte, error) {
			return machineconfig.WithKeys(config, active, keys, bundle.Keyring())
		},
		Policy: s.policy, Interval: 100 * time.Millisecond,
	}

	if !s.quiet {
		runner.Events = func(e lifecycle.Event) { s.t.Logf("%s %s: %v %s", e.Machine, e.State, e.Step, e.Reason) }
	}

	if s.snapshot != nil {
		runner.Restoration = s.snapshot
	}

	return runner
}

func talosCredentials(c pki.Credentials) talos.Credentials {
	out := talos.Credentials{CA: c.CA, Cert: c.Certificate, Key: c.Key}

	for _, former := range c.Former {
		out.Former = append(out.Former, talosCredentials(former))
	}

	return out
}

// generous extends the timeouts of answers for a busy computer.
func generous(t talos.Timeouts) talos.Timeouts {
	t.Connect = cmp.Or(t.Connect, 30*time.Second)
	t.Silence = cmp.Or(t.Silence, 30*time.Second)
	t.Call = cmp.Or(t.Call, 30*time.Second)
	t.Observe = cmp.Or(t.Observe, time.Minute)
	t.Change = cmp.Or(t.Change, time.Minute)
	t.Settle = cmp.Or(t.Settle, time.Minute)

	return t
}

// bounded is the time that a run may take on a busy computer.
func bounded(t testing.TB) context.Context {
	t.Helper()

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)

	return ctx
}

// errNoTimeLeft ends a run of convergeUntil.
var errNoTimeLeft = errors.New("no time left")

// convergeUntil runs until the event that a test waits for, and then ends the run's time. So the test does not depend
// on the speed of the computer.
func (s *site) convergeUntil(seen func(e lifecycle.Event) bool) (lifecycle.Result, error) {
	s.t.Helper()

	ctx, cancel := context.WithCancelCause(bounded(s.t))
	defer cancel(nil)

	runner := s.runner()
	tell := runner.Events

	var mu sync.Mutex // running steps send events too

	runner.Events = func(e lifecycle.Event) {
		tell(e)

		mu.Lock()
		defer mu.Unlock()

		if ctx.Err() == nil && seen(e) {
			cancel(errNoTimeLeft)
		}
	}

	return runner.Converge(ctx, s.want)
}

func (s *site) create() {
	s.t.Helper()
	defer s.expectStruck()

	result, err := s.runner().Converge(bounded(s.t), s.want)
	if err != nil {
		s.t.Fatalf("create: %v", err)
	}

	s.isReady(result.Snapshot)
	s.record(result.Snapshot)
}

// record stores what state would: the identities of the machines, and that there is an etcd.
func (s *site) record(have cluster.Snapshot) {
	s.want.Bootstrapped = true

	// Talos applies its manifests itself at the bootstrap.
	s.want.Kubernetes.Manifests = cmp.Or(have.Kubernetes.Manifests, s.want.Kubernetes.Manifests, s.want.Kubernetes.Version)

	for i, m := range s.want.Machines {
		seen := have.Machines[m.Name]
		s.want.Machines[i].UUID, s.want.Machines[i].NodeName = seen.UUID, seen.NodeName
	}
}

// isReady checks the end state of a create, in the answer and on the site itself.
func (s *site) isReady(have cluster.Snapshot) {
	s.t.Helper()

	if phase := cluster.PhaseOf(s.want, have); phase != cluster.Ready {
		s.t.Errorf("phase is %s, want Ready", phase)
	}

	if n := len(have.Kubernetes.Nodes); n != len(s.want.Machines) {
		s.t.Errorf("%d Kubernetes nodes, want %d", n, len(s.want.Machines))
	}

	if n := s.sim.EtcdClusters(); n != 1 {
		s.t.Errorf("%d etcd clusters, want 1", n)
	}

	// A call whose answer was lost counts as failed here although it took effect. So the number of etcd clusters above
	// is the proof, and two successes are an error.
	if accepted := s.order("Bootstrap"); len(accepted) > 1 {
		s.t.Errorf("bootstraps were accepted by %v, want one", accepted)
	}
}

// isBlank checks the end state of a teardown.
func (s *site) isBlank() {
	s.t.Helper()

	for _, m := range s.sim.Machines() {
		if stage := m.Stage(); stage != sim.StageMaintenance {
			s.t.Errorf("%s is %s, want maintenance", m.Name(), stage)
		}
	}
}

// order lists the machines that accepted a method, in order.
func (s *site) order(method string) []string {
	var names []string

	for _, c := range s.sim.CallsTo(method) {
		if c.Code == 0 && c.Done {
			names = append(names, c.Machine)
		}
	}

	return names
}

// changes lists the accepted calls that changed a machine, in order of arrival.
func (s *site) changes() []string {
	var out []string

	for _, c := range s.sim.Calls() {
		if c.Mutates() && c.Code == 0 && c.Done {
			out = append(out, c.Method+" "+c.Machine)
		}
	}

	return out
}

func testBundle(t testing.TB) *pki.Bundle {
	t.Helper()

	b, err := sharedBundle()
	if err != nil {
		t.Fatal(fmt.Errorf("generate secrets: %w", err))
	}

	return b
}
