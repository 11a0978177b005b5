package machines_test

import (
	"context"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// planLife plans a configuration as the CLIs do. A destroy is planned in two walks. The first is a plan of the
// configuration, which refreshes the state and whose errors count (Terraform, Context.destroyPlan).
func planLife(t *testing.T, state lifeState, blocks []lifeBlock, o lifeOptions) lifePlan {
	t.Helper()

	w := newLifeWalk(t, state)
	changes := w.plan(t.Context(), blocks, o)

	if o.Destroy && !w.failed() {
		destroy := newLifeWalk(t, w.state)
		changes = destroy.planDestroyAll(t.Context(), o)
		w.Bugs, w.Diagnostics = append(w.Bugs, destroy.Bugs...), destroy.Diagnostics
	}

	return lifePlan{
		State: w.state, Changes: changes, Diagnostics: w.Diagnostics, Bugs: w.Bugs,
		Refused: tftest.Outcome{Diagnostics: w.Diagnostics}.Failed(),
	}
}

// createFirst are the addresses that are created before they are destroyed: those with the argument, and their
// dependencies.
func createFirst(blocks []lifeBlock) map[string]bool {
	first := map[string]bool{}

	for range blocks {
		for _, b := range blocks {
			if !b.CreateFirst && !first[b.Address] {
				continue
			}

			first[b.Address] = true
			for _, need := range b.Needs {
				first[need] = true
			}
		}
	}

	return first
}

func kindsOf(blocks []lifeBlock) map[string]string {
	kinds := map[string]string{}
	for _, b := range blocks {
		kinds[b.Address] = b.Kind
	}

	return kinds
}

// plan is the walk of a plan. Independent resources are planned in any order.
func (w *lifeWalk) plan(ctx context.Context, blocks []lifeBlock, o lifeOptions) []lifeChange {
	var changes []lifeChange

	pending := slices.Clone(blocks)
	o.Random.Shuffle(len(pending), func(i, j int) { pending[i], pending[j] = pending[j], pending[i] })

	kinds, first, done, failed := kindsOf(blocks), createFirst(blocks), map[string]bool{}, map[string]bool{}
	others := w.withoutBlock(kinds)
	o.Random.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })

	for len(pending)+len(others) > 0 {
		if len(pending) == 0 || len(others) > 0 && o.Random.IntN(len(pending)+len(others)) < len(others) {
			changes = append(changes, w.planRemoved(ctx, others[0], o)...)
			others = others[1:]

			continue
		}

		ready := slices.IndexFunc(pending, func(b lifeBlock) bool {
			return !slices.ContainsFunc(b.Needs, func(need string) bool { return !done[need] })
		})
		b := pending[ready]
		pending = slices.Delete(pending, ready, ready+1)
		done[b.Address] = true

		if slices.ContainsFunc(b.Needs, func(need string) bool { return failed[need] }) {
			failed[b.Address] = true // its dependency was not planned

			continue
		}

		change, ok := w.planBlock(ctx, b, kinds, first[b.Address], slices.Contains(o.Replace, b.Address))
		failed[b.Address] = !ok

		if ok && change.Action != actNothing {
			changes = append(changes, change)
		}
	}

	return changes
}

// withoutBlock are the objects in state without a block: orphans, and deposed ones.
func (w *lifeWalk) withoutBlock(kinds map[string]string) []lifeKey {
	return slices.DeleteFunc(w.state.sorted(), func(key lifeKey) bool { return key.Deposed == 0 && kinds[key.Address] != "" })
}

// planBlock refreshes and plans one resource of the configuration.
func (w *lifeWalk) planBlock(
	ctx context.Context, b lifeBlock, kinds map[string]string, first, replace bool,
) (lifeChange, bool) {
	key := lifeKey{Address: b.Address}
	if w.object(key) != nil && !w.refresh(ctx, key) {
		return lifeChange{}, false
	}

	change, ok := w.propose(ctx, b, w.object(key), kinds, replace)

	if ok && first && change.Action == actReplace {
		change.Action = actReplaceCreated
	}

	if ok {
		w.mu.Lock()
		w.planned[b.Address] = change.Planned
		w.mu.Unlock()
	}

	return change, ok
}

// propose validates and plans the change of an object for a block (Terraform, NodeAbstractResourceInstance.plan). A
// tainted object is planned as a create, without its private state.
func (w *lifeWalk) propose(
	ctx context.Context, b lifeBlock, object *lifeObject, kinds map[string]string, replace bool,
) (lifeChange, bool) {
	config := w.evaluate(b, kinds)
	change := lifeChange{Key: lifeKey{Address: b.Address}, Kind: b.Kind, Prior: object, Block: &b}

	validated, err := w.server.ValidateResourceConfig(ctx, &tfprotov6.ValidateResourceConfigRequest{
		TypeName: b.Kind, Config: tftest.Dynamic(w.t, config),
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	if err != nil || !w.note(b.Address, validated.Diagnostics, nil) {
		return change, w.note(b.Address, nil, err) && false
	}

	null := tftypes.NewValue(config.Type(), nil)
	prior, private := null, []byte(nil)

	if object != nil && !object.Tainted {
		prior, private = object.Value, object.Private
	}

	resp, ok := w.planCall(ctx, b.Address, b.Kind, prior, config, private)
	if !ok {
		return change, false
	}

	change.Planned, change.Private = tftest.Decoded(w.t, config.Type(), resp.PlannedState), resp.PlannedPrivate

	switch {
	case object == nil:
		change.Action = actCreate
	case object.Tainted:
		change.Action = actReplace
	case replace || len(resp.RequiresReplace) > 0:
		change.Action = actReplace

		// The create has the private state of the replaced object, and its warnings are dropped.
		if resp, ok = w.planCreateLeg(ctx, b, null, config, change.Private); !ok {
			return change, false
		}

		change.Planned, change.Private = tftest.Decoded(w.t, config.Type(), resp.PlannedState), resp.PlannedPrivate
	case change.Planned.Equal(object.Value):
		change.Action = actNothing
	default:
		change.Action = actUpdate
	}

	return change, true
}

func (w *lifeWalk) planCreateLeg(
	ctx context.Context, b lifeBlock, null, config tftypes.Value, private []byte,
) (*tfprotov6.PlanResourceChangeResponse, bool) {
	w.mu.Lock()
	before := len(w.Diagnostics)
	w.mu.Unlock()

	resp, ok := w.planCall(ctx, b.Address, b.Kind, null, config, private)
	if ok {
		w.mu.Lock()
		w.Diagnostics = w.Diagnostics[:before]
		w.mu.Unlock()
	}

	return resp, ok
}

// planRemoved plans objects without a block: orphans and deposed objects.
func (w *lifeWalk) planRemoved(ctx context.Context, key lifeKey, o lifeOptions) []lifeChange {
	forget := slices.Contains(o.Forget, key.Address)

	if (o.ReadsOrphansFirst || key.Deposed > 0 && !forget) && !w.refresh(ctx, key) {
		return nil
	}

	object := w.object(key)
	if object == nil {
		return nil
	}

	if forget {
		return []lifeChange{{Key: key, Action: actForget, Kind: object.Kind, Prior: object}}
	}

	change, ok := w.planDestroy(ctx, key)
	if !ok {
		return nil
	}

	// The private state of the plan and the planned value stay, even when the object is read after it.
	if !o.ReadsOrphansFirst && key.Deposed == 0 && !w.refresh(ctx, key) {
		return nil
	}

	if w.object(key) == nil {
		return nil
	}

	return []lifeChange{change}
}

// planDestroy plans the destroy of one object.
func (w *lifeWalk) planDestroy(ctx context.Context, key lifeKey) (lifeChange, bool) {
	object := w.object(key)
	null := tftypes.NewValue(object.Value.Type(), nil)

	resp, ok := w.planCall(ctx, key.String(), object.Kind, object.Value, null, object.Private)
	if !ok {
		return lifeChange{}, false
	}

	return lifeChange{
		Key: key, Action: actDestroy, Kind: object.Kind, Prior: object, Planned: null, Private: resp.PlannedPrivate,
	}, true
}

// planDestroyAll plans the destroy of every object.
func (w *lifeWalk) planDestroyAll(ctx context.Context, o lifeOptions) []lifeChange {
	var changes []lifeChange

	keys := w.state.sorted()
	o.Random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })

	for _, key := range keys {
		if change, ok := w.planDestroy(ctx, key); ok {
			changes = append(changes, change)
		}
	}

	return changes
}
