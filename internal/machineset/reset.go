package machineset

import (
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

// validateResets checks how machines are reset when they leave. Machines of a group share its mistakes.
func validateResets(p Set) finding.List {
	var diags finding.List

	for _, name := range p.Names() {
		for _, mistake := range p.validateReset(name) {
			if !slices.ContainsFunc(diags, func(f finding.Finding) bool {
				return f.At.String() == mistake.At.String() && f.Detail == mistake.Detail
			}) {
				diags.Append(mistake)
			}
		}
	}

	return diags
}

// validateReset checks the reset of one machine. What it names must exist, and nothing of the cluster may be left with
// which the machine would join again.
func (p Set) validateReset(name string) finding.List {
	m := p.Machines[name]
	volumes, at := m.Reset.Volumes(), p.resetPath(name).AtName("wipe")

	var diags finding.List

	if m.Graceful && p.onlyControlPlane() == name {
		diags.Append(lastLeavesNothing.At(p.resetPath(name).AtName("graceful"), finding.Args{"machine": name}))
	}

	if unknown := slices.DeleteFunc(volumes, m.mayWipe); len(unknown) > 0 {
		return append(diags, resetUnknownVolume.At(at, finding.Args{"volumes": unknown, "has": m.userVolumes()}))
	}

	volumes = m.Reset.Volumes()

	switch {
	case len(volumes) == 0, m.Reset.WipesSystemDisk() && len(volumes) == 1:
	case m.Reset.WipesSystemDisk():
		diags.Append(resetDiskAndVolumes.At(at, nil))
	case !slices.Contains(volumes, wipe.State):
		diags.Append(resetKeepsState.At(at, finding.Args{"volumes": volumes}))
	case m.Group.Role == step.ControlPlane && !slices.Contains(volumes, wipe.Ephemeral):
		diags.Append(resetKeepsEtcd.At(at, finding.Args{"volumes": volumes}))
	}

	return diags
}

// mayWipe reports whether a machine has a volume, as far as its configuration is known.
func (m Machine) mayWipe(volume string) bool {
	switch {
	case slices.Contains([]string{wipe.State, wipe.Ephemeral, wipe.Meta, wipe.SystemDisk}, volume):
		return true
	case m.Facts == nil:
		return wipe.IsUserVolume(volume)
	default:
		return slices.Contains(m.Facts.UserVolumes, volume)
	}
}

// resetPath is where the reset of a machine is set: on itself, or on its group.
func (p Set) resetPath(name string) finding.Path {
	if p.Single || p.Machines[name].OwnReset {
		return p.machinePath(name).AtName("reset")
	}

	return p.Machines[name].Group.At.AtName("reset")
}

// RefuseOff refuses to replace machines that switch off after their reset: nothing would answer the create. next is
// what replaces them.
func (p Set) RefuseOff(next Set) finding.List {
	var off []string

	for _, name := range p.Names() {
		m := p.Machines[name]
		if m.Reset.Off && next.successor(m, step.MachineState{UUID: m.UUID}) != "" {
			off = append(off, name)
		}
	}

	if len(off) == 0 {
		return nil
	}

	return finding.List{resetStaysOff.At(p.resetPath(off[0]).AtName("reboot"), finding.Args{"machines": off})}
}
