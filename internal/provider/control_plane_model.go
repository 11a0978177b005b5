package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

type controlPlaneModel struct {
	poolModel
	settingsModel
}

func (m controlPlaneModel) life() lifeModel { return m.withSettings(m.lifeModel) }

func (m *controlPlaneModel) setLife(life lifeModel) {
	m.lifeModel = life
	m.setFrom(life)
}

// handle describes the cluster for other resources, as far as the plan knows it.
func (m controlPlaneModel) handle(ctx context.Context) handleModel {
	return m.handleAs(m.TalosVersion, m.Phase, m.talosEndpoints(ctx, m.machinesModel))
}

// pool reads the model as machines of one role in one cluster.
func (m controlPlaneModel) pool(ctx context.Context) (pool, diag.Diagnostics) {
	p, diags := m.poolModel.pool(ctx, m.handle(ctx), m.Host, &group{role: cluster.ControlPlane})

	m.schedule(&p)
	p.declared.resource, p.declared.modeAt = true, path.Root("mode")
	p.object = "control plane"

	return p, append(diags, m.restore(ctx, &p)...)
}

func (m *controlPlaneModel) align(given controlPlaneModel, state *controlPlaneModel) {
	var before *settingsModel
	if state != nil {
		before = &state.settingsModel
	}

	m.pinContract(given.settingsModel, before, m.TalosVersion)
	m.pinEndpoint(given.settingsModel)
}

// derive fills the cluster handle from the model.
func (m *controlPlaneModel) derive(ctx context.Context) diag.Diagnostics {
	m.ID = m.Name

	return m.exportAs(ctx, m.handle(ctx))
}

func (m *controlPlaneModel) settleUpdate(ctx context.Context, done run, plan, state controlPlaneModel) diag.Diagnostics {
	m.lifeModel, plan.lifeModel, state.lifeModel = m.life(), plan.life(), state.life()
	diags := m.poolModel.settleUpdate(ctx, done, &group{role: cluster.ControlPlane}, plan.poolModel, state.poolModel)
	m.setLife(m.lifeModel)

	return diags
}

// recordedPhase is the phase in state; empty when there is none.
func (m lifeModel) recordedPhase() cluster.Phase { return cluster.Phase(m.Phase.ValueString()) }

// bootstrapped reports whether the recorded phase implies that the cluster had an
// etcd: it is only Provisioning or Bootstrapping before that.
func bootstrapped(phase cluster.Phase) bool {
	return slices.Contains([]cluster.Phase{cluster.Joining, cluster.Ready, cluster.Degraded}, phase)
}

// machinesNamed names machines at the beginning of a sentence.
func machinesNamed(names []string) string {
	return verb(names, "machine ", "machines ") + describe(names)
}

// describe names machines in a sentence.
func describe(names []string) string {
	switch len(names) {
	case 0:
		return "no machine"
	case 1:
		return names[0]
	default:
		return fmt.Sprintf("%s and %s", strings.Join(names[:len(names)-1], ", "), names[len(names)-1])
	}
}
