package cluster_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

// The planner is tested on one model of machines, and the engine on another, the simulator. Both must behave like
// Talos 1.13, so they must agree. Here they go through the same random steps. Once both are at rest after a step,
// their observations are compared field by field.

const (
	modelTalos, newerTalos = "v1.13.0", "v1.13.2"
	modelKubernetes        = "v1.35.2"
	installerOf            = "ghcr.io/siderolabs/installer:"
	// restTime is how long the simulator may take to come to rest on a busy computer.
	restTime = 45 * time.Second
)

// twins are the model and the simulator.
type twins struct {
	t      *testing.T
	random *rand.Rand
	want   cluster.Spec

	model *site
	boxes map[string]*box

	sim        *sim.Simulator
	fleet      *talos.Fleet
	kubernetes *kubernetes.Client
	runner     *lifecycle.Runner
	bundle     *pki.Bundle

	// configs are the configurations of the machines by digests of the model, and digests those of the simulator.
	configs map[string]map[string][]byte
	digests map[string]string
	trace   []string
}

type simFleet struct{ *talos.Fleet }

func (f simFleet) Machine(m cluster.Machine) lifecycle.Machine { return f.Fleet.Machine(m) }

var modelBundle = sync.OnceValues(secretstest.Generate)

func newTwins(t *testing.T, seed uint64, controlPlanes, workers int) *twins {
	t.Helper()

	random := rand.New(rand.NewPCG(seed, 7))
	w := &twins{
		t: t, random: random, boxes: map[string]*box{}, configs: map[string]map[string][]byte{}, digests: map[string]string{},
		model: &site{
			random: random, now: clock, pinned: map[string]string{}, pins: map[naming]string{},
			wantedVersion: modelKubernetes, joinVersion: modelKubernetes, joinNaming: naming{registry: "registry.k8s.io"},
		},
		sim: sim.ForTest(t, sim.Options{}),
	}

	bundle, err := modelBundle()
	w.must(err)

	w.bundle = bundle
	w.want = cluster.Spec{Name: "prod", NodesBecomeReady: true}
	w.want.Joins = true // so that no bootstrap is expected
	w.want.Endpoint, err = w.sim.Endpoint()
	w.must(err)

	w.add("cp", controlPlanes, step.ControlPlane)
	w.add("w", workers, step.Worker)
	w.connect()

	return w
}

func (w *twins) must(err error) {
	w.t.Helper()

	if err != nil {
		w.t.Fatalf("%v\n%s", err, strings.Join(w.trace, "\n"))
	}
}

func (w *twins) add(prefix string, n int, role step.Role) {
	w.t.Helper()

	machines, err := w.sim.AddMachines(w.t.Context(), prefix, n, sim.MachineOptions{})
	w.must(err)

	for _, m := range machines {
		w.configs[m.Name()] = map[string][]byte{}
		w.want.Machines = append(w.want.Machines, cluster.Machine{
			Name: m.Name(), Role: role, Wanted: cluster.Wanted{Address: m.Address().String()},
			Configured:   cluster.Configured{ConfigDigest: newDigest, Images: imagesOf(role, modelKubernetes)},
			Installation: cluster.Installation{TalosVersion: modelTalos, InstallTarget: "/dev/sda"},
		})

		b := &box{uuid: m.UUID(), addr: m.Address().String(), name: m.Name(), life: maintenance,
			controlPlane: role == step.ControlPlane, kube: newKubeBox()}
		w.model.boxes = append(w.model.boxes, b)
		w.boxes[m.Name()] = b

		// One that Talos applies at once, and one for which it reboots.
		for digest, patch := range map[string]string{
			newDigest: "", "live": `machine: {sysctls: {vm.swappiness: "1"}}`, "reboot": `machine: {env: {CHANGED: "yes"}}`,
		} {
			w.configs[m.Name()][digest] = w.render(m.Name(), role, digest, patch)
		}
	}
}

func (w *twins) render(name string, role step.Role, digest, patch string) []byte {
	w.t.Helper()

	machine := machineconfig.Machine{
		Role: machineconfig.Role(role), Mode: machineconfig.Metal, Hostname: name,
		Install: machineconfig.Install{Disk: "/dev/sda", Image: installerOf + modelTalos},
	}
	if patch != "" {
		machine.Patches = []string{patch}
	}

	config, err := machineconfig.Generate(machineconfig.Cluster{
		Name: w.want.Name, Endpoint: w.want.Endpoint, KubernetesVersion: modelKubernetes, Contract: "v1.13",
	}, machine, w.bundle)
	w.must(err)

	w.digests[config.Digest] = digest

	return config.Bytes
}

func (w *twins) connect() {
	w.t.Helper()

	admin, err := w.bundle.TalosClient([]string{"os:admin"}, time.Hour)
	w.must(err)

	w.fleet, err = talos.NewFleet(talos.Options{
		Credentials: talos.Credentials{CA: admin.CA, Cert: admin.Certificate, Key: admin.Key}, Digest: machineconfig.Digest,
		Timeouts: talos.Timeouts{Connect: 30 * time.Second, Call: 30 * time.Second, Observe: time.Minute, Change: time.Minute,
			Settle: time.Minute},
	})
	w.must(err)
	w.t.Cleanup(w.fleet.Close)

	client, err := w.bundle.KubernetesClient("admin", []string{"system:masters"}, time.Hour)
	w.must(err)

	w.kubernetes, err = kubernetes.New(
		api.Options{Endpoint: w.want.Endpoint, CA: client.CA, Cert: client.Certificate, Key: client.Key})
	w.must(err)

	w.runner = &lifecycle.Runner{Fleet: simFleet{w.fleet}, Kubernetes: w.kubernetes}
}

// picture is the compared part of an observation.
type picture struct {
	Etcd, Kubernetes bool
	Members          int
	Machines         map[string]machinePicture
}

type machinePicture struct {
	Access               step.Access
	Stage                step.Stage
	Ready                bool
	TalosVersion, Digest string
	Role                 step.Role
	Etcd                 step.ServiceState
	Member, Learner      bool
	Node                 string
}

func (w *twins) picture(have cluster.Snapshot, digest func(string) string) picture {
	p := picture{Etcd: have.Etcd.Known, Kubernetes: have.Kubernetes.Reachable, Members: len(have.Etcd.Members),
		Machines: map[string]machinePicture{}}

	for _, m := range w.want.Machines {
		s := have.Machines[m.Name]
		seen := machinePicture{Access: s.Access}

		if s.Access == step.Member {
			seen.Stage, seen.Ready, seen.TalosVersion, seen.Digest, seen.Role = s.Stage, s.Ready, s.TalosVersion,
				digest(s.ConfigDigest), s.Role

			seen.Etcd = s.EtcdService
			if s.Stage == step.StageRunning && s.Ready && seen.Etcd == step.ServiceRunning {
				seen.Etcd = "" // it is not asked
			}
		}

		if member, ok := have.MemberOf(m); ok && s.Access != step.Maintenance {
			seen.Member, seen.Learner = true, member.Learner
		}

		if have.Kubernetes.Reachable {
			seen.Node = "none"
		}

		for _, n := range have.Kubernetes.Nodes {
			if n.Name == m.Name {
				seen.Node = fmt.Sprintf("ready=%t cordoned=%t/%t control-plane=%t", n.Ready, n.Unschedulable, n.Cordoned,
					n.ControlPlane)
			}
		}

		p.Machines[m.Name] = seen
	}

	return p
}

// rest waits until both are at rest and compares them.
func (w *twins) rest() {
	w.t.Helper()

	// The promotion of a member moves no machine, so one quiet moment does not prove rest.
	for idle := 0; idle < 5; idle++ {
		if w.model.tick() || slices.ContainsFunc(w.model.boxes, func(b *box) bool { return b.life == away }) {
			idle = -1
		}
	}

	expected := w.picture(newObserver(w.model, w.want).observe(), func(d string) string { return d })

	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()

	for end := time.Now().Add(restTime); ; <-pause.C {
		seen := w.picture(w.runner.Observe(w.t.Context(), w.want), func(d string) string { return w.digests[d] })

		diff := cmp.Diff(expected, seen)
		if diff == "" {
			return
		}

		if time.Now().After(end) {
			w.t.Fatalf("the model and the simulator differ (-model +simulator):\n%s\nafter\n%s", diff,
				strings.Join(w.trace, "\n"))
		}
	}
}

// step does one step in both.
func (w *twins) step(m cluster.Machine, step step.Step, do func(ctx context.Context, machine *talos.Machine) error) {
	w.t.Helper()

	w.trace = append(w.trace, step.String())
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)

	defer cancel()

	for _, phase := range w.model.operate(m, step, fine).phases {
		w.must(phase())
	}

	w.must(do(ctx, w.fleet.Machine(m)))
}

// evacuated is a step that cordons the node first, as the engine does.
func (w *twins) evacuated(
	m cluster.Machine, do func(ctx context.Context, machine *talos.Machine) error,
) func(context.Context, *talos.Machine) error {
	return func(ctx context.Context, machine *talos.Machine) error {
		if err := w.kubernetes.Cordon(ctx, m.Name); err != nil {
			return err
		}

		return do(ctx, machine)
	}
}

func sure(context.Context) error { return nil }

// join gives a machine in maintenance mode its configuration.
func (w *twins) join(m cluster.Machine) {
	w.t.Helper()

	// A reset keeps the installed Talos (Talos 1.13), which the rollouts on the model ignore.
	if b := w.boxes[m.Name]; b.version != "" {
		defer func(installed string) { b.version = installed }(b.version)
	}

	w.step(m, step.ApplyConfig{Machine: m.Name, Address: m.Address, Role: m.Role, Digest: newDigest,
		Access: step.Maintenance},
		func(ctx context.Context, machine *talos.Machine) error {
			return machine.ApplyConfig(ctx, w.configs[m.Name][newDigest], step.Maintenance, "")
		})
}

// moves are the steps that a machine may go through now, as the planner would take them.
func (w *twins) moves(m cluster.Machine) []func() {
	b := w.boxes[m.Name]
	node := step.Evacuation{Node: m.Name}
	voters, working := w.model.votes(nil)

	if b.life == off {
		var out []func()

		if member := w.model.memberNamed(m.Name); member != nil {
			via := w.other(m)
			out = append(out, func() {
				w.step(m, step.RemoveMember{Machine: m.Name, Member: member.id, Via: via.Name},
					func(ctx context.Context, _ *talos.Machine) error {
						return w.fleet.Machine(via).RemoveMember(ctx, w.memberID(ctx, m))
					})
			})
		} else if w.model.nodeNamed(m.Name) {
			out = append(out, func() {
				w.step(m, step.DeleteNode{Machine: m.Name, Node: m.Name}, func(ctx context.Context, _ *talos.Machine) error {
					return w.kubernetes.DeleteNode(ctx, m.Name)
				})
			})
		}

		return out
	}

	if b.life == maintenance {
		return []func(){func() { w.join(m) }}
	}

	if b.left {
		return []func(){func() { w.reset(m) }, func() { w.reboot(m, node) }}
	}

	out := []func(){
		func() { w.reboot(m, node) },
		func() { w.live(m) },
		func() { w.upgrade(m, node) },
		func() {
			w.step(m, step.Uncordon{Machine: m.Name, Node: m.Name}, func(ctx context.Context, _ *talos.Machine) error {
				return w.kubernetes.Uncordon(ctx, m.Name)
			})
		},
	}

	switch spare := working == voters && voters > 2; {
	case m.Role == step.Worker:
		out = append(out, func() { w.reset(m) })
	case spare:
		member := w.model.memberOf(b)
		out = append(out, func() {
			w.step(m, step.LeaveEtcd{Machine: m.Name, Member: member.id, Evacuation: node},
				w.evacuated(m, func(ctx context.Context, machine *talos.Machine) error {
					return machine.LeaveEtcd(ctx, "")
				}))
		}, func() {
			w.trace = append(w.trace, "power off "+m.Name)
			b.life = off
			w.sim.Machine(m.Name).PowerOff()
		})
	}

	return out
}

func (w *twins) reboot(m cluster.Machine, e step.Evacuation) {
	w.t.Helper()

	digest := "reboot"
	if w.boxes[m.Name].digest == digest {
		digest = newDigest
	}

	w.step(m, step.ApplyConfig{Machine: m.Name, Role: m.Role, Digest: digest, Access: step.Member,
		Reboot: "machine.env", Evacuation: e},
		w.evacuated(m, func(ctx context.Context, machine *talos.Machine) error {
			if err := machine.StageConfig(ctx, w.configs[m.Name][digest], ""); err != nil {
				return err
			}

			return machine.Reboot(ctx, "")
		}))
}

func (w *twins) live(m cluster.Machine) {
	w.t.Helper()

	digest := map[string]string{newDigest: "live", "live": newDigest}[w.boxes[m.Name].digest]
	if digest == "" {
		return // it would have to reboot
	}

	w.step(m, step.ApplyConfig{Machine: m.Name, Role: m.Role, Digest: digest, Access: step.Member},
		func(ctx context.Context, machine *talos.Machine) error {
			return machine.ApplyConfig(ctx, w.configs[m.Name][digest], step.Member, "")
		})
}

func (w *twins) upgrade(m cluster.Machine, e step.Evacuation) {
	w.t.Helper()

	to := newerTalos
	if w.boxes[m.Name].version == to {
		return
	}

	w.step(m, step.Upgrade{Machine: m.Name, Role: m.Role, From: modelTalos, To: to, Installer: installerOf + to,
		Evacuation: e},
		w.evacuated(m, func(ctx context.Context, machine *talos.Machine) error {
			return machine.Upgrade(ctx, installerOf+to, "", sure)
		}))
}

func (w *twins) reset(m cluster.Machine) {
	w.t.Helper()
	w.step(m, step.Reset{Machine: m.Name, Role: m.Role, Evacuation: step.Evacuation{Node: m.Name}},
		w.evacuated(m, func(ctx context.Context, machine *talos.Machine) error {
			return machine.Reset(ctx, false, wipe.Reset{})
		}))
}

// other is another control plane that works.
func (w *twins) other(but cluster.Machine) cluster.Machine {
	for _, m := range w.want.Machines {
		if b := w.boxes[m.Name]; m.Name != but.Name && b.controlPlane && w.model.etcdUp(b) {
			return m
		}
	}

	return cluster.Machine{}
}

// memberID is the member of a machine in the simulator.
func (w *twins) memberID(ctx context.Context, m cluster.Machine) string {
	have := w.runner.Observe(ctx, w.want)
	member, _ := have.MemberOf(m)

	return member.ID
}

func (s *site) memberNamed(name string) *etcdMember {
	for _, m := range s.members {
		if m.box.name == name {
			return m
		}
	}

	return nil
}

func (s *site) nodeNamed(name string) bool {
	return slices.ContainsFunc(s.nodes, func(n *kubeNode) bool { return n.name == name })
}

// TestModel_agreesWithTheSimulator takes both through the same random steps.
func TestModel_agreesWithTheSimulator(t *testing.T) {
	t.Parallel()

	const steps = 12

	for _, seed := range []uint64{1, 2, 3} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()

			w := newTwins(t, seed, []int{1, 3, 3, 4}[seed%4], 2)
			first := w.want.Machines[0]

			w.rest()
			w.join(first)
			w.rest()
			w.step(first, step.Bootstrap{Machine: first.Name},
				func(ctx context.Context, machine *talos.Machine) error { return machine.Bootstrap(ctx) })
			w.rest()

			for _, m := range w.want.Machines[1:] {
				w.join(m)
				w.rest()
			}

			for range steps {
				m := w.want.Machines[w.random.IntN(len(w.want.Machines))]
				if moves := w.moves(m); len(moves) > 0 {
					moves[w.random.IntN(len(moves))]()
					w.rest()
				}
			}
		})
	}
}
