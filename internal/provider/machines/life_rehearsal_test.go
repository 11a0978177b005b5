package machines_test

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// isolatedArgument separates a rehearsal of a restore from the original cluster.
const isolatedArgument = "isolated"

// rehearsable reports whether the provider has rehearsals.
func rehearsable(t *testing.T) bool {
	t.Helper()

	return slices.ContainsFunc(tftest.Schemas(t).ResourceSchemas["talosop_control_plane"].Block.Attributes,
		func(a *tfprotov6.SchemaAttribute) bool { return a.Name == isolatedArgument })
}

// rehearse restores a snapshot of the cluster on the spare control plane, with the secrets and the names of the
// cluster. Isolated it leaves the cluster unchanged. Otherwise it is refused before the spare machine gets anything.
func (w *lifeWorld) rehearse(op lifeOperation) lifeOperation {
	spare := slices.IndexFunc(w.ControlPlane, func(m *sim.Machine) bool { return !m.Configured() })
	if !rehearsable(w.t) || spare < 0 || len(w.members) == 0 || w.turning(op.State) {
		return w.applyAgain(op)
	}

	isolated := w.sometimes(70)
	op.Name = "rehearsal of a restore"

	if !isolated {
		op.Name += ", not isolated"
	}

	op.Instead = func() bool { return w.rehearseOn(op, w.ControlPlane[spare], isolated) }

	return op
}

// staticBlock is a resource whose configuration has no references.
func staticBlock(kind string, config tftest.Config) []lifeBlock {
	return []lifeBlock{{Address: kind + ".rehearsal", Kind: kind,
		Config: func(func(string, string) tftypes.Value) tftest.Config { return config }}}
}

// inOneGo plans and applies blocks; ok reports whether all of it was done.
func (w *lifeWorld) inOneGo(state lifeState, blocks []lifeBlock, o lifeOptions) (after lifeState, diagnostics string, ok bool) {
	o.Random = w.order

	plan := planLife(w.t, state, blocks, o)
	if plan.Refused || len(plan.Bugs) > 0 {
		return state, tftest.Show(plan.Diagnostics), false
	}

	applied := applyLife(w.t, plan, blocks, make(chan struct{}), func() loss { return lossNone })

	return applied.state, tftest.Show(applied.Diagnostics), !applied.failed()
}

func (w *lifeWorld) rehearseOn(op lifeOperation, spare *sim.Machine, isolated bool) bool {
	w.operations++
	w.log("%s on %s", op.Name, spare.Name())
	w.ForgetCalls()

	bundle, folder := w.living(), w.t.TempDir()
	c := op.Config
	handle, _ := w.handleWritten(c).Of(func(string, string) tftypes.Value {
		return tftypes.NewValue(tftypes.String, bundle)
	}).(tftest.Config)

	taken, diagnostics, ok := w.inOneGo(lifeState{}, staticBlock("talosop_etcd_backup",
		tftest.Config{"cluster": handle, "file": tftest.Config{"path": folder}}), lifeOptions{})
	if !ok {
		w.log("    no snapshot: %s", diagnostics)

		return false
	}

	key := tftest.Text(w.t, taken[lifeKey{Address: "talosop_etcd_backup.rehearsal"}].Value, "key")
	config := tftest.Config{
		"mode": "metal", "name": "test", "endpoint": w.URL, "secrets": bundle, "kubernetes_version": "v1.36.2",
		"talos_version": "v1.13.0", "deletion_protection": false, "install": tftest.Config{"disk": "/dev/sda"},
		"restore_from": tftest.Config{"file": tftest.Config{"path": filepath.Join(folder, key)}},
		"timeouts":     tftest.Config{"create": "1m", "delete": "1m"},
		"machines":     tftest.Config{"cp-1": tftest.Config{"address": spare.Address().String(), "hostname": "cp-1"}},
	}

	if isolated {
		config[isolatedArgument], config["endpoint"] = true, "https://"+spare.Address().String()+":6443"
	}

	before := w.production(spare)
	blocks := staticBlock("talosop_control_plane", config)
	state, diagnostics, done := w.inOneGo(lifeState{}, blocks, lifeOptions{})

	w.expectSame(before, w.production(spare), "the rehearsal")

	switch {
	case isolated && !done:
		w.violated("the rehearsal failed: %s", diagnostics)
	case !isolated && (done || spare.Configured()):
		w.violated("a restore that is not isolated began beside the cluster: %s", diagnostics)
	}

	if _, diagnostics, ok := w.inOneGo(state, blocks, lifeOptions{Destroy: true}); isolated && done && !ok {
		w.violated("the rehearsal could not be destroyed: %s", diagnostics)
	}

	w.expectSame(before, w.production(spare), "the end of the rehearsal")

	spare.Wipe()
	spare.PowerOn()
	tftest.Must(w.t, spare.AwaitStage(w.t.Context(), sim.StageMaintenance))
	w.check(map[string]bool{spare.Address().String(): true}, false)

	return true
}

// production is the membership of the cluster, as reported by its own etcd members and its own API.
func (w *lifeWorld) production(spare *sim.Machine) lifeMembership {
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
	defer cancel()

	var m lifeMembership

	for _, plane := range w.ControlPlane {
		if peers, err := w.EtcdPeers(ctx, plane); plane != spare && err == nil {
			m.Members = peers

			break
		}
	}

	m.Nodes = slices.Sorted(maps.Keys(w.nodes(ctx)))

	return m
}

// expectSame checks that the membership is unchanged.
func (w *lifeWorld) expectSame(before, after lifeMembership, what string) {
	if !slices.Equal(before.Members, after.Members) || !slices.Equal(before.Nodes, after.Nodes) {
		w.violated("%s changed the cluster from %v to %v", what, before, after)
	}
}
