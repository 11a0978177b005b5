package machines_test

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// lifeNode is a node of the graph of an apply.
type lifeNode struct {
	Change lifeChange
	// Creates is true for the part of a change that creates or updates; otherwise it destroys or forgets.
	Creates bool
	After   []*lifeNode
}

// lifeApply is the apply of a plan.
type lifeApply struct {
	*lifeWalk

	kinds map[string]string
	// deposed maps objects that are created before they are destroyed to their new keys.
	deposed map[string]lifeKey
	// Lost decides what a kill loses of an answer.
	Lost func() loss
}

// loss is what is lost when a process is killed.
type loss int

const (
	lossNone loss = iota
	// lossOfAnswers is the end of the CLI and the provider: the state is that before the call.
	lossOfAnswers
	// lossOfPrivate is the end of the provider alone: the CLI stores the former attributes of a resource under change,
	// and no private state (Terraform 1.11.4, OpenTofu 1.12.6: node_resource_abstract_instance.go, apply).
	lossOfPrivate
)

// applyLife applies a plan as the CLIs do, in a separate process of the provider. stop is closed for an interrupt.
func applyLife(t *testing.T, p lifePlan, blocks []lifeBlock, stop <-chan struct{}, lost func() loss) *lifeApply {
	t.Helper()

	a := &lifeApply{lifeWalk: newLifeWalk(t, p.State), kinds: kindsOf(blocks), deposed: map[string]lifeKey{}, Lost: lost}
	ctx, cancel := context.WithCancel(t.Context())

	defer cancel()

	stopped := context.AfterFunc(ctx, func() {})
	defer stopped()

	go func() {
		select {
		case <-stop:
			_, _ = a.server.StopProvider(ctx, &tfprotov6.StopProviderRequest{})
			cancel()
		case <-ctx.Done():
		}
	}()

	a.run(ctx, lifeGraph(p.Changes), p.Parallelism)

	return a
}

// lifeGraph orders changes (Terraform, DestroyEdgeTransformer and CBDEdgeTransformer).
func lifeGraph(changes []lifeChange) []*lifeNode {
	var nodes []*lifeNode

	creators, destroyers := map[string]*lifeNode{}, map[string][]*lifeNode{}

	for _, c := range changes {
		if c.Action != actDestroy && c.Action != actForget {
			n := &lifeNode{Change: c, Creates: true}
			creators[c.Key.Address] = n
			nodes = append(nodes, n)
		}

		if c.Action == actDestroy || c.Action == actForget || c.replaces() {
			n := &lifeNode{Change: c}
			destroyers[c.Key.Address] = append(destroyers[c.Key.Address], n)
			nodes = append(nodes, n)
		}
	}

	for _, n := range nodes {
		if n.Creates {
			for _, need := range n.Change.Block.Needs {
				if c := creators[need]; c != nil {
					n.After = append(n.After, c)

					if c.Change.Action == actReplaceCreated {
						for _, d := range destroyers[need] {
							d.After = append(d.After, n) // a replaced object is destroyed after its dependents have moved on
						}
					}
				}
			}

			continue
		}

		n.orderDestroy(creators, destroyers)
	}

	return nodes
}

// orderDestroy orders the destroy of an object: after those of its dependents, and before changes of its
// dependencies.
func (n *lifeNode) orderDestroy(creators map[string]*lifeNode, destroyers map[string][]*lifeNode) {
	own := creators[n.Change.Key.Address]

	switch {
	case n.Change.Action == actReplace:
		own.After = append(own.After, n)
	case n.Change.Action == actReplaceCreated:
		n.After = append(n.After, own)
	}

	for _, need := range n.Change.Prior.Needs {
		for _, d := range destroyers[need] {
			if d != n {
				d.After = append(d.After, n)
			}
		}

		if c := creators[need]; c != nil && n.Change.Action != actReplaceCreated && n.Change.Key.Deposed == 0 {
			c.After = append(c.After, n)
		}
	}
}

// run runs the nodes that are ready in parallel; it skips what comes after a failure.
func (a *lifeApply) run(ctx context.Context, nodes []*lifeNode, parallelism int) {
	type result struct {
		node *lifeNode
		ok   bool
	}

	results, running, state := make(chan result), 0, map[*lifeNode]bool{} // in state: true once it succeeded
	begun := map[*lifeNode]bool{}

	// With a limit, destroys go first, the order in which a removal may wait forever.
	if parallelism > 0 {
		slices.SortStableFunc(nodes, func(x, y *lifeNode) int { return cmp.Compare(btoi(x.Creates), btoi(y.Creates)) })
	}

	for {
		for _, n := range nodes {
			if begun[n] || parallelism > 0 && running == parallelism || slices.ContainsFunc(n.After, func(o *lifeNode) bool { return !state[o] }) {
				continue
			}

			begun[n] = true
			running++

			go func() { results <- result{n, ctx.Err() == nil && a.do(ctx, n)} }()
		}

		if running == 0 {
			break
		}

		r := <-results
		running--
		state[r.node] = r.ok
	}

	if waiting := len(nodes) - len(begun); waiting > 0 && !a.failed() && ctx.Err() == nil {
		a.bug("%d changes depend on each other", waiting)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}

	return 0
}

// do executes one node of the graph.
func (a *lifeApply) do(ctx context.Context, n *lifeNode) bool {
	c := n.Change

	switch {
	case c.Action == actForget:
		a.store(c.Key, nil)

		return true
	case n.Creates:
		return a.create(ctx, c)
	case c.Action == actReplaceCreated || c.Key.Deposed > 0:
		key := c.Key
		if c.Action == actReplaceCreated {
			key = a.deposed[c.Key.Address]
		}

		// The apply plans the destroy of a deposed object again.
		again, ok := a.planDestroy(ctx, key)

		return ok && a.destroy(ctx, again)
	default:
		return a.destroy(ctx, c)
	}
}

// destroy destroys an object. After a failure it stays in state.
func (a *lifeApply) destroy(ctx context.Context, c lifeChange) bool {
	current := a.object(c.Key)
	null := tftypes.NewValue(c.Prior.Value.Type(), nil)

	resp, err := a.server.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: c.Kind, PriorState: tftest.Dynamic(a.t, c.Prior.Value), PlannedState: tftest.Dynamic(a.t, null),
		Config: tftest.Dynamic(a.t, null), PlannedPrivate: c.Private,
	})
	if err != nil {
		return a.note(c.Key.String(), nil, err)
	}

	if a.Lost() != lossNone {
		return false
	}

	ok := a.note(c.Key.String(), resp.Diagnostics, nil)
	value := tftest.Decoded(a.t, null.Type(), resp.NewState)

	switch {
	case ok && !value.IsNull():
		a.bug("%s was destroyed and is still there", c.Key)
	case ok:
		a.store(c.Key, nil)
	case !value.IsNull():
		left := *current
		left.Value, left.Private = value, resp.Private
		a.store(c.Key, &left)
	}

	return ok
}

// create is the part of a change that creates or updates. It is planned again, with the values known by now.
func (a *lifeApply) create(ctx context.Context, c lifeChange) bool {
	key := c.Key
	if a.Lost() != lossNone {
		return false
	}

	if c.Action == actReplaceCreated {
		a.depose(key)
	}

	prior := a.object(key)

	a.mu.Lock()
	delete(a.planned, key.Address)
	a.mu.Unlock()

	again, ok := a.propose(ctx, *c.Block, prior, a.kinds, false)
	if !ok {
		a.restore(key)

		return false
	}

	a.compare("the plan of the apply", key, c.Planned, again.Planned)

	if again.Action == actNothing {
		return true
	}

	done := a.applied(ctx, c, again, prior)
	a.restore(key)

	return done
}

// applied sends a change, and stores the result.
func (a *lifeApply) applied(ctx context.Context, c, again lifeChange, prior *lifeObject) bool {
	config := a.evaluate(*c.Block, a.kinds)
	from := tftypes.NewValue(config.Type(), nil)

	if prior != nil {
		from = prior.Value
	}

	resp, err := a.server.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: c.Kind, PriorState: tftest.Dynamic(a.t, from), PlannedState: tftest.Dynamic(a.t, again.Planned),
		Config: tftest.Dynamic(a.t, config), PlannedPrivate: again.Private,
	})
	if err != nil {
		return a.note(c.Key.String(), nil, err)
	}

	switch lost := a.Lost(); {
	case lost == lossOfPrivate && prior != nil:
		bare := *prior
		bare.Private = nil
		a.store(c.Key, &bare)

		return false
	case lost != lossNone:
		return false
	}

	ok := a.note(c.Key.String(), resp.Diagnostics, nil)
	value := tftest.Decoded(a.t, config.Type(), resp.NewState)

	if !value.IsNull() {
		a.store(c.Key, &lifeObject{
			Kind: c.Kind, Value: value, Private: resp.Private, Tainted: !ok && prior == nil, Needs: c.Block.Needs,
		})
	}

	if ok {
		a.compare("the state", c.Key, again.Planned, value)

		if !value.IsFullyKnown() || value.IsNull() {
			a.bug("%s is not known after its apply", c.Key)
		}
	}

	return ok
}

// compare notes where the result differs from the known values of a plan.
func (a *lifeApply) compare(what string, key lifeKey, planned, got tftypes.Value) {
	differences, err := planned.Diff(got)
	tftest.Must(a.t, err)

	for _, difference := range differences {
		if v := difference.Value1; v != nil && v.IsFullyKnown() {
			a.bug("%s of %s has %v at %s, where %v was planned", what, key, difference.Value2, difference.Path, v)
		}
	}
}

// depose puts the current object of an address aside.
func (a *lifeApply) depose(key lifeKey) {
	a.mu.Lock()
	defer a.mu.Unlock()

	at := lifeKey{key.Address, 1}
	for a.state[at] != nil {
		at.Deposed++
	}

	a.deposed[key.Address] = at
	a.state[at] = a.state[key]
	delete(a.state, key)
}

// restore restores a deposed object that was not replaced.
func (a *lifeApply) restore(key lifeKey) {
	a.mu.Lock()
	defer a.mu.Unlock()

	at, deposed := a.deposed[key.Address]
	if deposed && a.state[key] == nil && a.state[at] != nil {
		a.state[key] = a.state[at]
		delete(a.state, at)
	}
}
