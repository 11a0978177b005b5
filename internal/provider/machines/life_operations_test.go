package machines_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// fresh is an unused name.
func (w *lifeWorld) fresh(begins string) string {
	return fmt.Sprintf("%s%d", begins, w.random.IntN(1000))
}

// choose is a random element.
func choose[T any](w *lifeWorld, of []T) T { return of[w.random.IntN(len(of))] }

// sometimes is true with a probability in percent.
func (w *lifeWorld) sometimes(percent int) bool { return w.random.IntN(100) < percent }

// addressesOf are those of the current objects of a state.
func (w *lifeWorld) addressesOf(state lifeState, secrets bool) []string {
	var out []string

	for _, key := range state.sorted() {
		if key.Deposed == 0 && (secrets || key.Address != lifeSecrets) {
			out = append(out, key.Address)
		}
	}

	return out
}

// renamed moves the resources of one configuration to their names in another one.
func (w *lifeWorld) renamed(from, to lifeConfig) func(lifeState) {
	name := func(c lifeConfig) []string {
		var out []string
		for _, b := range w.blocks(c) {
			out = append(out, b.Address)
		}

		return out
	}

	// The blocks of both are in the same order, as only label and prefix differ.
	old, now := name(from), name(to)

	return func(state lifeState) {
		addresses := map[string]string{}
		for i := range old {
			addresses[old[i]] = now[i]
		}

		for _, key := range state.sorted() {
			object := *state[key]
			delete(state, key)

			object.Needs = slices.Clone(object.Needs)
			for i, need := range object.Needs {
				if other, ok := addresses[need]; ok {
					object.Needs[i] = other
				}
			}

			if other, ok := addresses[key.Address]; ok {
				key.Address = other
			}

			state[key] = &object
		}
	}
}

// operation is the next operation, in one of the states with content.
func (w *lifeWorld) operation() lifeOperation {
	i := 0
	if len(w.states[1]) > 0 && (len(w.states[0]) == 0 || w.sometimes(50)) {
		i = 1
	}

	op := lifeOperation{State: i, Config: w.consents(w.configs[i])}
	if w.sometimes(30) {
		op.Interrupt = 1 + w.random.IntN(choose(w, []int{10, 50, 300}))
		op.Kill = w.sometimes(50)
	}

	op.Loss = choose(w, []loss{lossOfAnswers, lossOfPrivate})

	if len(op.Config.Planes) == 0 || w.identity == "" || len(w.addressesOf(w.states[i], false)) == 0 {
		return w.recreate(op)
	}

	if w.states[i][lifeKey{Address: lifeSecrets}] == nil && w.sometimes(80) {
		return w.importSecrets(op)
	}

	kinds := []func(lifeOperation) lifeOperation{
		w.applyAgain, w.rename, w.rename, w.renameMachines, w.relayout, w.relayout, w.stateRemove, w.stateRemove, w.importBack,
		w.importBack, w.replace, w.replace, w.taint, w.taint, w.destroy, w.shrink, w.shrink, w.grow, w.setting, w.setting,
		w.otherState, w.otherState, w.secretsGo, w.removeAll, w.replaceFirst, w.replaceFirst, w.goBack,
		w.exchange, w.exchange, w.exchange, w.rotate, w.rotate, w.rotate,
		w.replaceAll, w.replaceAll, w.taintAll, w.loseState, w.loseState, w.outdatedState, w.outdatedState, w.takeOverPart,
		w.loseEtcd, w.loseEtcd, w.rehearse, w.rehearse, w.forgeMark, w.forgeMark, w.forgeMark,
	}

	return choose(w, kinds)(op)
}

// recreate creates the cluster of a destroyed state again, or starts over with another layout.
func (w *lifeWorld) recreate(op lifeOperation) lifeOperation {
	op.Name = "create"

	if len(w.addressesOf(w.states[op.State], false)) > 0 && w.sometimes(50) {
		op.Name = "go on" // with the destroy or the apply

		return op
	}

	secrets := op.Config
	op.Config = w.consents(w.start())
	op.Config.SecretsUnlocked = secrets.SecretsUnlocked

	return op
}

// start is a configuration of all machines except the spare ones.
func (w *lifeWorld) start() lifeConfig {
	return lifeConfig{
		Layout: choose(w, lifeLayouts), Label: "this", Planes: []int{0, 1, 2}, Workers: []int{0, 1},
		Protected: w.sometimes(35), SecretsUnlocked: w.sometimes(30), CreateFirst: w.sometimes(15),
	}
}

func (w *lifeWorld) applyAgain(op lifeOperation) lifeOperation {
	op.Name = "apply again"

	return op
}

// rename gives the resources another label, with or without moved blocks.
func (w *lifeWorld) rename(op lifeOperation) lifeOperation {
	was := op.Config
	op.Config.Label = w.fresh("r")
	op.Name = "rename without moved"

	if w.sometimes(50) {
		op.Name, op.Moved = "rename with moved", w.renamed(was, op.Config)
	}

	return op
}

// renameMachines gives the machines other names.
func (w *lifeWorld) renameMachines(op lifeOperation) lifeOperation {
	was := op.Config
	op.Config.Prefix = w.fresh("p")
	op.Name = "rename machines without moved"

	if w.sometimes(50) {
		op.Name, op.Moved = "rename machines with moved", w.renamed(was, op.Config)
	}

	return op
}

// relayout describes the cluster with other resources, with or without removed blocks.
func (w *lifeWorld) relayout(op lifeOperation) lifeOperation {
	op.Config.Layout = choose(w, lifeLayouts)
	op.Name = "other resources without removed"

	if w.sometimes(65) {
		op.Name, op.Options.Forget = "other resources with removed", w.addressesOf(w.states[op.State], false)
	}

	return op
}

// forgotten removes addresses from a state; it first saves secrets that are removed.
func (w *lifeWorld) forgotten(addresses ...string) func(lifeState) {
	return func(state lifeState) {
		for _, key := range state.sorted() {
			if slices.Contains(addresses, key.Address) {
				maps.Copy(w.files, bundlesIn(w.t, lifeState{key: state[key]}))
				delete(state, key)
			}
		}
	}
}

func (w *lifeWorld) stateRemove(op lifeOperation) lifeOperation {
	address := choose(w, w.addressesOf(w.states[op.State], false))
	op.Name, op.Commands = "state rm "+address, w.forgotten(address)

	return op
}

// importBack removes a resource from the state and imports it.
func (w *lifeWorld) importBack(op lifeOperation) lifeOperation {
	address := choose(w, w.addressesOf(w.states[op.State], true))
	op.Name = "state rm and import " + address
	op.Commands = func(state lifeState) {
		w.forgotten(address)(state)

		for _, b := range w.blocks(op.Config) {
			if b.Address == address {
				w.importInto(state, op.Config, b)
			}
		}
	}

	return op
}

// importInto imports a resource; after a failure it is not in the state.
func (w *lifeWorld) importInto(state lifeState, c lifeConfig, b lifeBlock) {
	walk := newLifeWalk(w.t, state)
	walk.importObject(w.t.Context(), b, w.importID(w.t, c, b.Address, w.saved(w.t, w.living())))

	if walk.failed() {
		w.log("    import failed: %s %v", tftest.Show(walk.Diagnostics), walk.Bugs)

		return
	}

	maps.Copy(state, walk.state)
}

func (w *lifeWorld) replace(op lifeOperation) lifeOperation {
	address := choose(w, w.addressesOf(w.states[op.State], true))
	op.Name, op.Options.Replace = "-replace "+address, []string{address}

	return op
}

// replaceFirst replaces with create_before_destroy.
func (w *lifeWorld) replaceFirst(op lifeOperation) lifeOperation {
	address := choose(w, w.addressesOf(w.states[op.State], false))
	op.Name, op.Options.Replace = "-replace with create_before_destroy "+address, []string{address}
	op.Config.CreateFirst = true

	if op.Interrupt == 0 && w.sometimes(50) {
		op.Interrupt = 1 + w.random.IntN(150)
	}

	return op
}

// goBack applies the former configuration.
func (w *lifeWorld) goBack(op lifeOperation) lifeOperation {
	op.Name = "apply the configuration from before"

	if was := w.previous[op.State]; len(was.Planes) > 0 {
		if len(w.states[1-op.State]) > 0 {
			was.Turn = op.Config.Turn
		}

		op.Config = was
	}

	return op
}

// importSecrets restores secrets that are no longer in the state.
func (w *lifeWorld) importSecrets(op lifeOperation) lifeOperation {
	op.Name, op.Config.NoSecrets = "import the secrets", false
	op.Commands = func(state lifeState) { w.importInto(state, op.Config, w.blocks(op.Config)[0]) }

	return op
}

// rotate rotates keys, if no other state has the secrets, too.
func (w *lifeWorld) rotate(op lifeOperation) lifeOperation {
	if len(w.states[1-op.State]) > 0 || w.states[op.State][lifeKey{Address: lifeSecrets}] == nil {
		return w.setting(op)
	}

	for range 1 + w.random.IntN(2) {
		op.Config.Turn[w.random.IntN(len(lifeTriggers))] = w.fresh("k")
	}

	op.Name = "turn keys over"

	if op.Interrupt == 0 && w.sometimes(50) {
		op.Interrupt, op.Kill = 1+w.random.IntN(choose(w, []int{30, 100, 300})), w.sometimes(70)
	}

	return op
}

// turning reports whether keys of a state are being rotated.
func (w *lifeWorld) turning(state int) bool {
	for _, text := range bundlesIn(w.t, w.states[state]) {
		if bundle, err := pki.Parse([]byte(text)); err == nil && len(bundle.Turning()) > 0 {
			return true
		}
	}

	return false
}

func (w *lifeWorld) taint(op lifeOperation) lifeOperation {
	address := choose(w, w.addressesOf(w.states[op.State], true))
	op.Name = "taint " + address
	op.Commands = func(state lifeState) {
		object := *state[lifeKey{Address: address}]
		object.Tainted = true
		state[lifeKey{Address: address}] = &object
	}

	return op
}

// untainted removes every taint, as the command does.
func untainted(state lifeState) {
	for key, object := range state {
		if object.Tainted {
			clean := *object
			clean.Tainted = false
			state[key] = &clean
		}
	}
}

func (w *lifeWorld) destroy(op lifeOperation) lifeOperation {
	op.Name, op.Options.Destroy = "destroy", true

	return op
}

// removeAll removes everything with machines from the configuration.
func (w *lifeWorld) removeAll(op lifeOperation) lifeOperation {
	op.Name = "empty configuration"
	op.Config.Planes, op.Config.Workers = nil, nil

	if w.sometimes(40) {
		op.Name = "empty configuration with removed"
		op.Options.Forget = w.addressesOf(w.states[op.State], false)
	}

	return op
}

func (w *lifeWorld) shrink(op lifeOperation) lifeOperation {
	if len(op.Config.Planes) > 1 && w.sometimes(60) {
		out := w.random.IntN(len(op.Config.Planes))
		op.Name = fmt.Sprintf("remove control plane %d", op.Config.Planes[out]+1)
		op.Config.Planes = slices.Delete(slices.Clone(op.Config.Planes), out, out+1)

		return op
	}

	if len(op.Config.Workers) > 1 {
		op.Name, op.Config.Workers = "remove a worker", op.Config.Workers[:1]
	}

	return op
}

func (w *lifeWorld) grow(op lifeOperation) lifeOperation {
	op.Name, op.Config.Planes, op.Config.Workers = "all machines", []int{0, 1, 2}, []int{0, 1}

	return op
}

// setting changes an argument.
func (w *lifeWorld) setting(op lifeOperation) lifeOperation {
	c := &op.Config

	switch w.random.IntN(5) {
	case 0:
		op.Name, c.Protected = "toggle deletion_protection", !c.Protected
	case 1:
		op.Name, c.Preserve = "toggle on_destroy", !c.Preserve
	case 2:
		op.Name, c.CreateFirst = "toggle create_before_destroy", !c.CreateFirst
	case 3:
		op.Name, c.Rack = "another label of nodes", w.fresh("rack")
	default:
		op.Name, c.SecretsUnlocked = "toggle deletion_protection of the secrets", !c.SecretsUnlocked
	}

	return op
}

// otherState lets the other state take the cluster over: with the secrets from a file, by a create or by an import.
func (w *lifeWorld) otherState(op lifeOperation) lifeOperation {
	if w.turning(op.State) {
		return w.applyAgain(op)
	}

	op.State = 1 - op.State
	if len(w.states[op.State]) > 0 {
		return w.setting(lifeOperation{State: op.State, Config: w.configs[op.State]})
	}

	held := w.configs[1-op.State]
	op.Config = w.start()
	op.Config.PlaneSpare, op.Config.WorkerSpare = held.PlaneSpare, held.WorkerSpare
	op.Name = "take over in the other state"
	imports := w.sometimes(40)

	if imports {
		op.Name = "import into the other state"
	}

	op.Commands = func(state lifeState) {
		for _, b := range w.blocks(op.Config) {
			if b.Address == lifeSecrets || imports {
				w.importInto(state, op.Config, b)
			}
		}
	}

	return op
}

// exchange replaces the hardware of a machine, which keeps its name. The former machine comes back when another one
// took its place. Unless the configuration names the new hardware, nothing is sent to it.
func (w *lifeWorld) exchange(op lifeOperation) lifeOperation {
	c := &op.Config
	role, places, spare := lifePlane, c.Planes, &c.PlaneSpare

	if len(c.Workers) > 0 && w.sometimes(50) {
		role, places, spare = lifeWorker, c.Workers, &c.WorkerSpare
	}

	place := choose(w, places)
	if *spare > 0 && slices.Contains(places, *spare-1) {
		place = *spare - 1
	}

	before, was := w.machineOf(*c, role, place), *c
	c.Hardware = w.sometimes(85)

	if *spare == place+1 {
		*spare = 0
	} else {
		*spare = place + 1
	}

	now := w.machineOf(*c, role, place)
	op.Name = fmt.Sprintf("exchange %s for %s", before.Name(), now.Name())

	if !c.Hardware && !now.Configured() && w.knows(op.State, before) {
		op.Name, op.Spared = op.Name+" without telling", now
	}

	alone, wipes := len(w.states[1-op.State]) == 0, !was.Preserve && !c.Preserve

	if dies := role == lifeWorker || len(w.members) == 3; c.Hardware && dies && w.sometimes(30) {
		op.Name, op.Dies, wipes = op.Name+", which is dead", before, false
	}

	op.Then = func() {
		switch {
		case !now.Configured():
			w.violated("%s did not join", now.Name())
		case alone && wipes && before.Configured():
			w.violated("%s was not reset", before.Name())
		}
	}

	return op
}

// knows reports whether a state has a record of the hardware of a machine.
func (w *lifeWorld) knows(state int, m *sim.Machine) bool {
	for _, object := range w.states[state] {
		if strings.Contains(object.Value.String(), m.UUID()) {
			return true
		}
	}

	return false
}

// secretsGo changes the secrets.
func (w *lifeWorld) secretsGo(op lifeOperation) lifeOperation {
	switch w.random.IntN(3) {
	case 0:
		op.Name, op.Options.Replace = "-replace "+lifeSecrets, []string{lifeSecrets}
	case 1:
		op.Name = "everything removed"
		op.Config.Planes, op.Config.Workers, op.Config.NoSecrets = nil, nil, true
	default:
		op.Name = "state rm of the secrets"
		op.Commands = w.forgotten(lifeSecrets)
	}

	return op
}

// describe is a readable sequence.
func (w *lifeWorld) describe() string { return strings.Join(w.Log, "\n") }
