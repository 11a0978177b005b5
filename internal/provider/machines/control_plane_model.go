package machines

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
)

// ControlPlaneModel is the resource talosop_control_plane.
type ControlPlaneModel struct {
	machineSetModel
	settingsModel
	settings.PlaneModel
}

func (m ControlPlaneModel) common() CommonModel { return m.withSettings(m.CommonModel) }

func (m *ControlPlaneModel) setCommon(common CommonModel) {
	m.CommonModel = common
	m.setFrom(common)
}

// handle describes the cluster for other resources, as far as it is known.
func (m ControlPlaneModel) handle(ctx context.Context) clusterhandle.HandleModel {
	return m.handleAs(m.TalosVersion, m.Phase, m.talosEndpoints(ctx, m.machinesModel))
}

// MachineSet reads the model as machines of one role in one cluster.
func (m ControlPlaneModel) MachineSet(ctx context.Context) (writtenSet, diag.Diagnostics) {
	p, diags := m.machineSetModel.MachineSet(ctx, m.handle(ctx), m.Host, machineset.Group{Role: step.ControlPlane},
		types.StringNull(), m.PlaneModel)

	m.putOwn(ctx, &p.Set)
	p.allowBootstrap = m.AllowBootstrap
	p.Object = "control plane"

	return p, append(diags, m.restore(ctx, &p)...)
}

func (m *ControlPlaneModel) align(given ControlPlaneModel, state *ControlPlaneModel) {
	var before *settingsModel
	if state != nil {
		before = &state.settingsModel
	}

	m.pinContract(given.settingsModel, before, m.TalosVersion)
	m.pinEndpoint(given.settingsModel)
}

// derive fills the cluster handle from the model.
func (m *ControlPlaneModel) derive(ctx context.Context) diag.Diagnostics {
	m.ID = m.Name

	return m.exportAs(ctx, m.handle(ctx), m.ConfigPatches)
}

func (m *ControlPlaneModel) settleUpdate(
	ctx context.Context, done run, plan, state ControlPlaneModel,
) diag.Diagnostics {
	m.CommonModel, plan.CommonModel, state.CommonModel = m.common(), plan.common(), state.common()
	diags := m.machineSetModel.settleUpdate(ctx, done, &machineset.Group{Role: step.ControlPlane}, plan.machineSetModel,
		state.machineSetModel)
	m.setCommon(m.CommonModel)

	return diags
}

// recordedPhase is the phase in state; empty when there is none.
func (m CommonModel) recordedPhase() cluster.Phase { return cluster.Phase(m.Phase.ValueString()) }
