package operations_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// How many applies the random test makes, in clusters of their own.
const (
	clustersSampled = 3
	appliesSampled  = 3
	clustersOfAll   = 5
	appliesOfAll    = 100
	eachRefused     = 8
	leavePlanes     = 2 * mostPlanes
	leaveWorkers    = 2 * mostWorkers
	mostPlanes      = 4
	mostWorkers     = 3
	planePrefix     = "cp"
	workerPrefix    = "w"
	machineLeaveOne = "talosop_machine_leave"
	// longest is how long one operation may take: far more than it needs, so that one that waits forever says why.
	longest = "4m"
	// patient is the time between two observations: up to eight runs observe at once, and more often only costs time.
	patient = 500 * time.Millisecond
)

// order is how an apply orders VMs and the cluster on them.
type order string

const (
	vmsFirst     order = "VMs end before the cluster changes"
	clusterFirst order = "VMs end after the cluster changed (create_before_destroy)"
	unordered    order = "VMs end while the cluster changes"
)

// vmWorld is a cluster on VMs: each is a simulated machine that vanishes when its VM is destroyed.
type vmWorld struct {
	*sitetest.Site

	t       *testing.T
	random  *rand.Rand
	bundle  string
	cluster *tftest.Driven
	leaves  map[string]*tftest.Driven
	// vms are the machines by the name of their VM.
	vms map[string]*sim.Machine

	// recorded are the machines that the cluster had after its last change. A new VM is none of them.
	recorded map[string]*sim.Machine
	// refused is true after an apply that ended before it changed the cluster.
	refused bool

	mu sync.Mutex
}

// process is one process of the provider, which all resources of an apply share.
func (w *vmWorld) process() tfprotov6.ProviderServer {
	m := tftest.QuickProviderData()
	m.Policy.RegisterTimeout, m.Policy.ResetTimeout = 2*time.Second, 30*time.Second
	m.Interval, m.Talos.Timeouts.Poll = patient, patient

	server, err := providerserver.NewProtocol6WithError(tftest.NewQuickProvider(m))()
	tftest.Must(w.t, err)
	tftest.Must(w.t, tftest.Configure(server))

	return server
}

// config is the cluster on VMs.
func (w *vmWorld) config(vms map[string]*sim.Machine) tftest.Config {
	of := func(prefix string) tftest.Config {
		machines := tftest.Config{}

		for name, m := range vms {
			if strings.HasPrefix(name, prefix+"-") {
				machines[name] = tftest.Config{"address": m.Address().String(), "uuid": m.UUID()}
			}
		}

		return machines
	}

	config := sitetest.OnMachines(w.Site, w.URL, nil, nil)
	config["secrets"], config["timeouts"] = w.bundle, tftest.Config{"update": longest, "create": longest}
	install := tftest.Config{"disk": "/dev/sda"}
	config["control_plane"] = tftest.Config{"install": install, "machines": of(planePrefix)}
	config["workers"] = tftest.Config{"all": tftest.Config{"install": install, "machines": of(workerPrefix)}}

	return config
}

// leaveConfig is the leave resource of a VM.
func (w *vmWorld) leaveConfig(m *sim.Machine) tftest.Config {
	handle := tftest.Config{"name": "test", "endpoint": w.URL, "secrets": w.bundle}

	return tftest.Config{"cluster": handle, "machine": m.Address().String(), "uuid": m.UUID(),
		"triggers": tftest.Config{"vm": m.Name()}, "timeouts": tftest.Config{"delete": longest}}
}

// spare takes a machine without a VM, and makes it a blank VM.
func (w *vmWorld) spare(role string, taken map[string]*sim.Machine) *sim.Machine {
	pool := w.ControlPlane
	if role == workerPrefix {
		pool = w.Workers
	}

	used := slices.Concat(slices.Collect(maps.Values(w.recorded)), slices.Collect(maps.Values(taken)))

	for _, i := range w.random.Perm(len(pool)) {
		if m := pool[i]; !slices.Contains(used, m) {
			return m
		}
	}

	w.t.Fatalf("no %s is left", role)

	return nil
}

// change is a random change of the VMs of a role: some are destroyed, some replaced, and some are new. One of them
// stays, or, without keep, none of the control planes.
func (w *vmWorld) change(role string, most int, keep bool, next map[string]*sim.Machine) {
	var names []string

	for _, name := range slices.Sorted(maps.Keys(w.vms)) {
		if strings.HasPrefix(name, role+"-") {
			names = append(names, name)
		}
	}

	w.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })

	kept := 0

	for i, name := range names {
		switch draw := w.random.IntN(10); {
		case keep && (i == 0 || draw < 5):
			next[name] = w.vms[name]
			kept++
		case draw < 8:
			next[name] = w.spare(role, next)
			kept++
		}
	}

	for i := range most {
		name := fmt.Sprintf("%s-%d", role, i)
		if _, has := w.vms[name]; !has && (kept == 0 || w.random.IntN(3) == 0) {
			next[name] = w.spare(role, next)
			kept++
		}
	}
}

// apply is one apply. It reports whether it finished.
func (w *vmWorld) apply(next map[string]*sim.Machine, by order) bool {
	server := w.process()
	w.cluster.Server = server

	for _, d := range w.leaves {
		d.Server = server
	}

	var ending []string

	for _, name := range slices.Sorted(maps.Keys(w.vms)) {
		if next[name] != w.vms[name] {
			ending = append(ending, name)
		}
	}

	switch by {
	case vmsFirst:
		if !w.end(ending) {
			return false
		}

		w.begin(next)
		w.converge(next)
	case clusterFirst:
		w.begin(next)
		w.converge(next)

		if !w.end(ending) {
			w.t.Errorf("a machine that the cluster removed before does not leave")
		}
	default:
		w.begin(next)

		ended := make(chan bool)
		go func() { ended <- w.end(ending) }()

		w.converge(next)

		if !<-ended {
			return false
		}
	}

	for name, m := range next {
		w.vms[name] = m

		if w.leaves[name] == nil {
			d := tftest.Drive(w.t, machineLeaveOne, nil)
			d.Apply(w.t, w.leaveConfig(m)).Must(w.t)
			w.leaves[name] = d
		}
	}

	return true
}

// begin makes the new VMs.
func (w *vmWorld) begin(next map[string]*sim.Machine) {
	for name, m := range next {
		if w.vms[name] != m {
			m.Wipe()
			m.PowerOn()
			tftest.Must(w.t, m.AwaitStage(w.t.Context(), sim.StageMaintenance))
		}
	}
}

// converge changes the cluster.
func (w *vmWorld) converge(next map[string]*sim.Machine) {
	done := w.cluster.Apply(w.t, w.config(next))
	if phase := tftest.Text(w.t, w.cluster.State, "phase"); done.Failed() || phase != "Ready" {
		w.t.Errorf("the cluster is %s: %s", phase, tftest.Show(done.Diagnostics))
	}

	// A machine that left in this process is not waited for, and not reported.
	shown := tftest.Show(done.Diagnostics)
	if !w.refused && (strings.Contains(shown, "[machines_not_reset]") || strings.Contains(shown, "[reset_not_finished]")) {
		w.t.Errorf("after all left: %s", shown)
	}

	w.recorded, w.refused = next, false
}

// end lets machines leave in parallel, and destroys the VM of each that left. It reports whether all did.
func (w *vmWorld) end(names []string) bool {
	var (
		wg   sync.WaitGroup
		left = make([]bool, len(names))
	)

	for i, name := range names {
		wg.Go(func() {
			done := w.leaves[name].Apply(w.t, nil)
			if left[i] = !done.Failed(); left[i] {
				w.destroy(name)
			} else {
				w.t.Logf("%s stays: %s", name, tftest.Show(done.Diagnostics))
			}
		})
	}

	wg.Wait()

	for i, name := range names {
		if left[i] {
			delete(w.vms, name)
			delete(w.leaves, name)
		}
	}

	return !slices.Contains(left, false)
}

// destroy destroys a VM. Its machine must have left, and etcd must keep its quorum.
func (w *vmWorld) destroy(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	m := w.vms[name]
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)

	defer cancel()

	w.quorum(ctx, "before the end of "+name, m)
	m.PowerOff()
	w.quorum(ctx, "after the end of "+name, m)
}

// quorum checks that etcd answers, and that a machine is none of its members.
func (w *vmWorld) quorum(ctx context.Context, when string, gone *sim.Machine) {
	members, err := w.EtcdMembers(ctx)
	if err != nil || len(members) == 0 {
		w.t.Errorf("%s etcd has no quorum: %v", when, err)
	}

	if gone != nil && slices.Contains(members, gone.Hostname()) {
		w.t.Errorf("%s %s is a member: %v", when, gone.Hostname(), members)
	}
}

// target is the next random set of VMs; keeps is false for one in which no control plane stays.
func (w *vmWorld) target(keeps bool) map[string]*sim.Machine {
	next := map[string]*sim.Machine{}
	w.change(planePrefix, mostPlanes, keeps, next)
	w.change(workerPrefix, mostWorkers, w.random.IntN(2) > 0, next)

	return next
}

func namesOf(vms map[string]*sim.Machine) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(vms)) {
		names = append(names, name+"="+vms[name].Name())
	}

	return strings.Join(names, " ")
}

// run makes random applies.
func (w *vmWorld) run(applies int) {
	first := map[string]*sim.Machine{"cp-0": w.ControlPlane[0], "cp-1": w.ControlPlane[1], "cp-2": w.ControlPlane[2],
		"w-0": w.Workers[0]}
	w.apply(first, clusterFirst)

	for i := 0; i < applies && !w.t.Failed(); i++ {
		keeps := i%eachRefused != 1
		next := w.target(keeps)
		by := []order{vmsFirst, vmsFirst, clusterFirst, unordered}[w.random.IntN(4)]

		if !keeps {
			by = vmsFirst
		}

		w.t.Logf("apply %d: %s -> %s: %s", i, namesOf(w.vms), namesOf(next), by)

		begun := time.Now()
		done := w.apply(next, by)

		w.t.Logf("took %s", time.Since(begun).Round(time.Second/10))

		w.refused = !done

		if !done && keeps {
			w.t.Error("a machine did not leave although a control plane stays")
		} else if done && !keeps {
			w.t.Error("the last control plane left")
		}

		w.quorum(w.t.Context(), "after the apply", nil)
	}
}

// Random applies destroy, replace, shrink and grow VMs, and their machines leave first: whatever the order of VMs and
// cluster is, no etcd member dies without leaving, and etcd keeps its quorum. An apply without a control plane that
// stays is refused, and the cluster lives on.
func TestMachineLeave_randomApplies(t *testing.T) {
	t.Parallel()

	clusters, applies := clustersSampled, appliesSampled
	if testenv.Everything() {
		clusters, applies = clustersOfAll, appliesOfAll
	}

	for seed := range clusters {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()

			w := &vmWorld{Site: sitetest.New(t, leavePlanes, leaveWorkers), t: t, bundle: tftest.Bundle(),
				random:  rand.New(rand.NewPCG(uint64(seed), 0)), //nolint:gosec // not for secrets
				cluster: tftest.Drive(t, "talosop_cluster", nil), leaves: map[string]*tftest.Driven{},
				vms: map[string]*sim.Machine{}}
			w.run(applies)
		})
	}
}
