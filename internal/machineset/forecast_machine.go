package machineset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// Field is a field of what is recorded of a machine.
type Field string

// The fields that a plan says something of.
const (
	FieldStage          Field = "stage"
	FieldReady          Field = "ready"
	FieldTalosVersion   Field = "talos_version"
	FieldSchematic      Field = "schematic"
	FieldInstaller      Field = "installer"
	FieldUUID           Field = "uuid"
	FieldBootID         Field = "boot_id"
	FieldKubeletVersion Field = "kubelet_version"
	FieldConfigDigest   Field = "config_digest"
	FieldKeys           Field = "keys"
	FieldMemberID       Field = "member_id"
	FieldNodeName       Field = "node_name"
	FieldAddress        Field = "address"
	FieldDrift          Field = "drift"
	FieldImages         Field = "images"
	FieldKubernetes     Field = "kubernetes"
	FieldRestoredAt     Field = "etcd_restored_at"
	FieldPodDigest      Field = "pod_digest"
)

// MachineForecast is what a plan says of what will be recorded of one machine: what it does not name stays as it is.
type MachineForecast struct {
	// Anew is true when nothing is known: the machine joins.
	Anew bool
	// From is the name under which state has the machine.
	From string
	// Open are the fields that the plan may change, to what only the apply finds out.
	Open []Field
	// Texts are fields whose value the plan knows, and Components those parts of maps by component that it knows.
	Texts      map[Field]string
	Components map[Field]map[cluster.Component]string
}

// forecastMachines says of every machine of a set what a plan changes in its record.
func (r PriorState) forecastMachines(p Set, files Rendered, steps []cluster.Step) map[string]MachineForecast {
	out, byMachine := map[string]MachineForecast{}, map[string][]cluster.Step{}
	for _, step := range steps {
		byMachine[step.On()] = append(byMachine[step.On()], step)
	}

	begins := slices.ContainsFunc(steps, cluster.BeginsEtcd)

	for _, name := range p.Names() {
		known, recorded := r.Machines[name]
		if !recorded || begins || r.exchanged(name) || !wasWhole(p, known) {
			out[name] = MachineForecast{Anew: true}

			continue
		}

		f := MachineForecast{
			From: cmp.Or(r.Renamed[name], name), Open: r.unsettled(name, known), Texts: map[Field]string{},
			Components: map[Field]map[cluster.Component]string{FieldImages: {}, FieldKubernetes: {}},
		}

		if at := p.Machines[name].Address; p.Host == nil && at != "" && r.Addresses[f.From] != at {
			f.Texts[FieldAddress] = at
		}

		for _, step := range byMachine[name] {
			f.add(step)
		}

		if p.Host == nil && slices.Contains(f.Open, FieldConfigDigest) && files.Digests[name] != "" {
			f.Texts[FieldConfigDigest] = files.Digests[name]
		}

		f.Open = slices.DeleteFunc(f.Open, func(field Field) bool { return f.Texts[field] != "" })
		out[name] = f
	}

	return out
}

// wasWhole is whether a machine was seen to work, so that its record has all that there is to say of it: a run that was
// killed may have stored less. Boards without SMBIOS have no UUID.
func wasWhole(p Set, known cluster.MachineState) bool {
	return known.Access == cluster.Member && known.Stage == cluster.StageRunning && known.TalosVersion != "" &&
		(known.BootID != "" || p.Host != nil)
}

// exchanged is whether a machine is other hardware than the one that had its name.
func (r PriorState) exchanged(name string) bool {
	return slices.Contains(slices.Collect(maps.Values(r.Replaced)), name)
}

// unsettled are the fields of a machine that was not seen at rest: an apply waits for it.
func (r PriorState) unsettled(name string, known cluster.MachineState) []Field {
	var open []Field

	if !known.Ready {
		open = append(open, FieldReady)
	}

	drift := r.Drift[cmp.Or(r.Renamed[name], name)]
	if len(drift) > 0 {
		open = append(open, FieldDrift)
	}

	if drift.Has(NoMember) || drift.Has(LeftEtcd) {
		open = append(open, FieldMemberID)
	}

	if slices.ContainsFunc(r.changes[name], machineconfig.Change.Renames) {
		open = append(open, FieldNodeName)
	}

	if known.ConfigDigest != "" && known.Keys == (rotation.Keys{}) { // another build read the configuration
		open = append(open, FieldKeys)
	}

	if known.NodeName == "" {
		open = append(open, FieldNodeName, FieldKubeletVersion, FieldKubernetes)
	}

	return open
}

// add notes what a step changes.
func (f *MachineForecast) add(step cluster.Step) {
	switch s := step.(type) {
	case cluster.ApplyConfig:
		f.configure(s)
	case cluster.Upgrade:
		f.upgrade(s)
	case cluster.UpgradeComponent:
		f.upgradeComponent(s)
	case cluster.RestartKubelet, cluster.DeleteNode:
		f.Open = append(f.Open, FieldNodeName, FieldKubeletVersion, FieldKubernetes)
	case cluster.WriteMeta:
		if strings.Contains(s.Keys, fmt.Sprintf("0x%02x", cluster.MetaUUIDOverride)) {
			f.Open = append(f.Open, FieldUUID)
		}
	case cluster.LeaveEtcd, cluster.RemoveMember:
		f.Open = append(f.Open, FieldMemberID)
	case cluster.Reset, cluster.ReplaceVolumes:
		f.Anew = true
	}
}

func (f *MachineForecast) configure(s cluster.ApplyConfig) {
	f.Anew = f.Anew || s.Access != cluster.Member
	f.Open = append(f.Open, FieldConfigDigest)

	if s.Moves != "" {
		f.Open = append(f.Open, FieldKeys)
	}

	if s.Reboot != "" {
		f.Open = append(f.Open, FieldBootID)
	}
}

// upgradeComponent notes what runs after it; kube-proxy runs in pods of its own, which no machine is asked for.
func (f *MachineForecast) upgradeComponent(s cluster.UpgradeComponent) {
	f.Components[FieldImages][s.Component] = s.Image

	version, known := kubenames.ImageVersion(s.Image)

	switch {
	case s.Component == cluster.KubeProxy:
	case !known:
		f.Open = append(f.Open, FieldKubernetes, FieldKubeletVersion)
	default:
		f.Components[FieldKubernetes][s.Component] = version
	}

	if s.Component == cluster.Kubelet && known {
		f.Texts[FieldKubeletVersion] = version
	}
}

// upgrade notes what is another after an upgrade; a pod is another one.
func (f *MachineForecast) upgrade(s cluster.Upgrade) {
	f.Anew = f.Anew || s.Loses
	f.Open = append(f.Open, FieldBootID)
	f.Texts[FieldTalosVersion] = s.To

	if s.Container {
		f.Open = append(f.Open, FieldUUID, FieldPodDigest, FieldAddress, FieldSchematic, FieldInstaller)

		return
	}

	f.Open = append(f.Open, FieldSchematic)
	f.Texts[FieldInstaller] = s.Installer

	if s.Schematic != "" {
		f.Texts[FieldSchematic] = s.Schematic
	}
}
