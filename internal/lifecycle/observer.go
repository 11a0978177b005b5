package lifecycle

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

const (
	// atOnce limits the machines that are asked at the same time, and silentAtOnce those of them that were silent
	// before. Each of these costs a connection attempt without an answer, and must not delay the others.
	atOnce       = 32
	silentAtOnce = 256
	// silentTimeout is how long an observation waits for machines that were silent before, so that a dead machine does
	// not delay the others.
	silentTimeout = time.Second
)

// observer keeps the last known state of every machine of a run. The first observation waits for all machines. Later
// ones wait only for machines that answered the last time. For the others they use the old state, and ask them in the
// background.
type observer struct {
	runner *Runner
	want   cluster.Spec
	known  []cluster.Machine // those of want
	// slots limits the machines that are asked, silent those that were silent before.
	slots, silent chan struct{}

	mu     sync.Mutex
	states map[string]step.MachineState
	nodes  *kubestate.State // nil until the first answer
	// manifests is the version of the bootstrap manifests that this run synced.
	manifests string
	// views are the control planes' views of etcd, by machine name; nil when they are not read.
	views map[string]etcdstate.View
	// etcdAside is true when etcd is not asked at all, and reads when nothing will be changed.
	etcdAside, reads bool
	last             cluster.Snapshot
	begun            time.Time
	next             chan struct{} // closed with the next snapshot
	// peers are the control planes that etcd names and the spec does not know.
	peers  []cluster.Machine
	asking map[string]chan struct{} // closed when the answer is in; kubernetes under ""
	asked  map[string]question      // the last of each
	// outdated is when the last answers became invalid, and resting are the workers that are polled rarely.
	outdated map[string]time.Time
	resting  map[string]bool
	epoch    map[string]int // increases with each change; older answers are stale
	// news reports changes between two observations; nil where nothing is awaited.
	news *news
}

// question is when a machine, or Kubernetes, was asked, and after how many changes.
type question struct {
	at    time.Time
	epoch int
}

func newObserver(r *Runner, want cluster.Spec) *observer {
	return &observer{
		runner: r, want: want, known: slices.Clip(want.Known()),
		slots:  make(chan struct{}, atOnce),
		silent: make(chan struct{}, silentAtOnce),
		states: map[string]step.MachineState{},
		asking: map[string]chan struct{}{},
		asked:  map[string]question{},

		outdated: map[string]time.Time{},
		epoch:    map[string]int{},
		next:     make(chan struct{}),
	}
}

// observe asks all machines and Kubernetes. It returns the newest snapshot without waiting for machines that do not
// answer.
func (o *observer) observe(ctx context.Context) cluster.Snapshot {
	o.outdate(o.allNames()...)

	return o.look(ctx)
}

// look is observe that asks again only where the last answer is outdated, changed or older than its pace. A change of
// one of a thousand machines does not outdate the others.
func (o *observer) look(ctx context.Context) cluster.Snapshot {
	begun := time.Now()

	o.ask(ctx)

	have := o.snapshot()
	have.Founder = o.founder()

	if o.runner.Rejoining != nil {
		have.Rejoining = o.runner.Rejoining()
	}

	o.manifestsOf(&have)

	if o.reads {
		have.Etcd = o.listed(ctx, have)
		have.Etcd.GoesBack = o.goesBack()
	} else {
		have.Etcd = o.etcd(ctx, have)
	}

	have.Time = time.Now()

	o.addViews(&have)

	resting := o.atRest(have)

	o.mu.Lock()
	o.last, o.begun, o.resting = have, begun, resting

	close(o.next)
	o.next = make(chan struct{})
	o.mu.Unlock()

	if o.news != nil {
		o.news.follow(have, resting)
	}

	return have
}

// founder names the machine on which another run of this process bootstraps etcd.
func (o *observer) founder() string {
	if o.runner.Founding == nil {
		return ""
	}

	m, ok := o.runner.Founding.Founder()
	if !ok || slices.ContainsFunc(o.want.Machines, func(own cluster.Machine) bool { return own.Address == m.Address }) {
		return ""
	}

	return m.Name
}

// manifestsOf records the bootstrap manifests of an older cluster for which none are recorded: those of its current
// version.
func (o *observer) manifestsOf(have *cluster.Snapshot) {
	o.mu.Lock()
	defer o.mu.Unlock()

	if o.begun.IsZero() && o.want.Kubernetes.Manifests == "" {
		o.manifests = cluster.KubernetesRunning(o.want, *have)
		have.Kubernetes.Manifests = o.manifests
	}
}

// allNames is all machines and, under "", Kubernetes.
func (o *observer) allNames() []string {
	names := []string{""}
	for _, m := range o.machines() {
		names = append(names, m.Name)
	}

	return names
}

// controlPlanes are the machines that may be etcd members, and Kubernetes.
func (o *observer) controlPlanes() []string {
	names := []string{""}

	for _, m := range o.machines() {
		if m.Role == step.ControlPlane {
			names = append(names, m.Name)
		}
	}

	return names
}

// outdate makes the next observation ask them again.
func (o *observer) outdate(names ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()

	for _, name := range names {
		o.outdated[name] = time.Now()
	}
}

// refresh outdates answers that are older than the interval and that the last observation did not use either. It
// reports whether there are any.
func (o *observer) refresh() bool {
	_, begun, _ := o.latest()
	age := max(o.runner.interval(), time.Since(begun))

	old := slices.DeleteFunc(o.allNames(), func(name string) bool { return o.current(name, age) })
	o.outdate(old...)

	return len(old) > 0
}

// restingPace is the pace, in intervals, for a worker that works and waits for nothing, or that reports changes
// itself.
const restingPace = 10

// atRest are the working workers, which are polled more rarely. They are observed before another machine is taken out
// of service, and at the end of a run.
func (o *observer) atRest(have cluster.Snapshot) map[string]bool {
	resting := map[string]bool{}
	lacks := cluster.Unready(o.want, have)

	for _, m := range o.want.Machines {
		s := have.Machines[m.Name]
		if _, unready := lacks[m.Name]; !unready && m.Role == step.Worker && s.Busy == "" && !s.Resetting {
			resting[m.Name] = true
		}
	}

	return resting
}

// latest is the last snapshot, when its observation began, and a channel that closes with the next snapshot.
func (o *observer) latest() (have cluster.Snapshot, begun time.Time, next <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()

	return o.last, o.begun, o.next
}

// ask asks the Kubernetes API and every machine whose last answer is too old and that is not being asked already. It
// waits for the answers of those that were not silent.
func (o *observer) ask(ctx context.Context) {
	var silent, needed []<-chan struct{}

	sort := func(answered <-chan struct{}, silentBefore bool) {
		if silentBefore {
			silent = append(silent, answered)
		} else {
			needed = append(needed, answered)
		}
	}

	if !o.current("", o.pace("")) {
		sort(o.askKubernetes(ctx))
	}

	for _, m := range o.machines() {
		if !o.current(m.Name, o.pace(m.Name)) {
			sort(o.askMachine(ctx, m))
		}
	}

	for _, answered := range needed {
		<-answered
	}

	timer := time.NewTimer(silentTimeout)
	defer timer.Stop()

	for _, answered := range silent {
		select {
		case <-answered:
		case <-timer.C:
			return
		}
	}
}

// pace is how long an answer stays valid while nothing outdates it.
func (o *observer) pace(name string) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()

	if o.resting[name] || o.news.rarely(name) {
		return restingPace * o.runner.interval()
	}

	return o.runner.interval()
}

// current reports whether the last answer is younger than age and not outdated.
func (o *observer) current(name string, age time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()

	last, ok := o.asked[name]

	return ok && last.epoch == o.epoch[name] && last.at.After(o.outdated[name]) && time.Since(last.at) < age
}

// machines are all that are asked: those of the run, and the other control planes.
func (o *observer) machines() []cluster.Machine {
	o.mu.Lock()
	defer o.mu.Unlock()

	return append(o.known, o.peers...)
}

// machine finds one of them by its name.
func (o *observer) machine(name string) cluster.Machine {
	all := o.machines()

	return all[slices.IndexFunc(all, func(m cluster.Machine) bool { return m.Name == name })]
}

// askKubernetes is ask for the Kubernetes API.
func (o *observer) askKubernetes(ctx context.Context) (answered <-chan struct{}, silentBefore bool) {
	o.mu.Lock()
	defer o.mu.Unlock()

	silentBefore = o.nodes != nil && !o.nodes.Reachable

	if answered, ok := o.asking[""]; ok {
		return answered, silentBefore
	}

	answer := make(chan struct{})
	o.asking[""], o.asked[""] = answer, question{time.Now(), o.epoch[""]}

	go func() {
		defer close(answer)

		var nodes kubestate.State

		if err := panics.Call(func() { nodes = o.runner.Kubernetes.Observe(ctx) }); err != nil {
			nodes = kubestate.State{Cause: err.Error()}
		}

		o.mu.Lock()
		defer o.mu.Unlock()

		delete(o.asking, "")

		if !wait.Over(ctx) {
			nodes.Since = time.Now()
			if o.nodes != nil && o.nodes.Reachable == nodes.Reachable {
				nodes.Since = o.nodes.Since
			}

			if o.nodes != nil && !nodes.Reachable {
				nodes.Owners, nodes.Unproven = o.nodes.Owners, o.nodes.Unproven
			}

			o.nodes = &nodes
		}
	}()

	return answer, silentBefore
}

// askMachine starts to ask a machine, unless a request is in progress. It returns a channel that closes with the
// answer, and whether the machine was silent before.
func (o *observer) askMachine(ctx context.Context, m cluster.Machine) (answered <-chan struct{}, silentBefore bool) {
	o.mu.Lock()
	defer o.mu.Unlock()

	state := o.states[m.Name]
	silentBefore = state.Access == step.Unreachable

	if state.Busy != "" {
		return closed, silentBefore
	}

	if answered, ok := o.asking[m.Name]; ok {
		return answered, silentBefore
	}

	answer := make(chan struct{})
	epoch := o.epoch[m.Name]
	o.asking[m.Name], o.asked[m.Name] = answer, question{time.Now(), epoch}

	slots := o.slots
	if silentBefore {
		slots = o.silent
	}

	go func() {
		slots <- struct{}{}
		defer func() { <-slots }()

		defer close(answer)

		api := o.runner.Fleet.Machine(m)

		var (
			state step.MachineState
			view  *etcdstate.View
		)

		// A machine whose request panics counts as one that does not answer: no step runs on it.
		if err := panics.Call(func() {
			state = api.Observe(ctx)
			view = o.view(ctx, m, api, state)
		}); err != nil {
			state, view = step.MachineState{Access: step.Unreachable, Cause: err.Error()}, nil
		}

		o.keep(ctx, m.Name, epoch, state, view)
	}()

	return answer, silentBefore
}

// keep stores an answer and carries over what only this run knows. A machine without a view of etcd counts as not
// healthy. It drops an answer that proves nothing: the machine was changed meanwhile, or an interrupt or a deadline cut
// the request off.
func (o *observer) keep(
	ctx context.Context, name string, epoch int, fresh step.MachineState, view *etcdstate.View,
) {
	o.mu.Lock()
	defer o.mu.Unlock()

	delete(o.asking, name)

	if o.epoch[name] != epoch || wait.Over(ctx) {
		return
	}

	o.states[name] = o.states[name].Next(fresh, time.Now())

	delete(o.views, name)

	if view != nil {
		o.views[name] = *view
	}
}

// etcd asks the control planes for the member list, one after the other, until one answers. The snapshot has the
// former list, which stays when an interrupt cuts the request off.
func (o *observer) etcd(ctx context.Context, have cluster.Snapshot) etcdstate.State {
	state := etcdstate.State{}
	if o.etcdAside {
		return state
	}

	for _, m := range o.machines() {
		s := have.Machines[m.Name]
		if m.Role != step.ControlPlane || s.Access != step.Member || s.Busy != "" || s.EtcdService.WithoutData() {
			continue
		}

		members, err := o.runner.Fleet.Machine(m).EtcdMembers(ctx)
		if err == nil {
			return etcdstate.State{Known: true, Members: members}
		}

		// An interrupt that cuts the request off is not a cause.
		if wait.Over(ctx) {
			return have.Etcd
		}

		state.Cause = err.Error()
	}

	return state
}

// rest waits until no request is in progress.
func (o *observer) rest() {
	o.mu.Lock()
	pending := slices.Collect(maps.Values(o.asking))
	o.mu.Unlock()

	for _, answered := range pending {
		<-answered
	}
}

// snapshot copies what is known.
func (o *observer) snapshot() cluster.Snapshot {
	o.mu.Lock()
	defer o.mu.Unlock()

	have := cluster.Snapshot{Machines: maps.Clone(o.states), Etcd: o.last.Etcd,
		Kubernetes: kubestate.State{Cause: "not queried in time"}}
	if o.nodes != nil {
		have.Kubernetes = *o.nodes
	}

	have.Kubernetes.Manifests = o.manifests

	for _, m := range o.known {
		if s, asked := have.Machines[m.Name]; asked && o.runner.Claimed != nil {
			m.UUID = cmp.Or(s.UUID, m.UUID)
			s.Claimed = o.runner.Claimed(m)
			have.Machines[m.Name] = s
		}
	}

	o.settleLeft(have)

	return have
}

// settleLeft records that removed machines are gone which left their cluster before, and are silent since.
func (o *observer) settleLeft(have cluster.Snapshot) {
	if o.runner.HasLeft == nil {
		return
	}

	for _, m := range o.want.Removed {
		if s := have.Machines[m.Name]; s.Access == step.Unreachable && o.runner.HasLeft(m) {
			s.Access = step.Gone
			have.Machines[m.Name] = s
		}
	}
}

func (o *observer) state(name string) step.MachineState {
	o.mu.Lock()
	defer o.mu.Unlock()

	return o.states[name]
}

// busy records that a step runs on a machine, which is not asked until the step ends.
func (o *observer) busy(name string, op step.Step) {
	o.update(name, func(s *step.MachineState) { s.Begin(op) })
}

// changed records that a step ended, and its known effects until the machine is asked again.
func (o *observer) changed(name string, op step.Step, err error) {
	o.mu.Lock()

	if sync, ok := op.(step.SyncManifests); ok && err == nil {
		o.manifests = sync.Version
	}

	o.mu.Unlock()

	switch op.Outdates(o.machine(name).Role) {
	case step.ItsMachine:
	case step.AndKubernetes:
		o.outdate("")
	case step.AndControlPlanes:
		o.outdate(o.controlPlanes()...)
	}

	o.update(name, func(s *step.MachineState) { s.End(op, err, time.Now()) })
}

func (o *observer) update(name string, change func(*step.MachineState)) {
	o.mu.Lock()
	defer o.mu.Unlock()

	s := o.states[name]
	s.Unmet = slices.Clone(s.Unmet)
	change(&s)
	o.states[name] = s
	o.epoch[name]++
}

// closed is the channel of an answer that already arrived.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)

	return c
}()
