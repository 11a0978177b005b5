package machineset

import (
	"cmp"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/metakey"
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
	FieldExtensions     Field = "extensions"
	FieldInstaller      Field = "installer"
	FieldUUID           Field = "uuid"
	FieldPlatform       Field = "platform"
	FieldBootID         Field = "boot_id"
	FieldKubeletVersion Field = "kubelet_version"
	FieldConfigDigest   Field = "config_digest"
	FieldStagedDigest   Field = "staged_config_digest"
	FieldKeys           Field = "keys"
	FieldMemberID       Field = "member_id"
	FieldNodeName       Field = "node_name"
	FieldAddress        Field = "address"
	FieldDrift          Field = "drift"
	FieldImages         Field = "images"
	FieldKubernetes     Field = "kubernetes"
	FieldRestoredAt     Field = "etcd_restored_at"
	FieldPodDigest      Field = "pod_digest"
	FieldPeerAddress    Field = "peer_address"
	FieldHostnameUnset  Field = "hostname_unset"
)

// MachineForecast is what a plan says of what will be recorded of one machine: what it does not name stays as it is.
type MachineForecast struct {
	// Anew is true when nothing is known, because state has no record under the name.
	Anew bool
	// Joins is true when the machine becomes a working part of its cluster by this plan, be it again.
	Joins bool
	// From is the name under which state has the machine.
	From string
	// Open are the fields that the plan may change, to what only the apply finds out.
	Open []Field
	// Texts are fields whose value the plan knows, and Components those parts of maps by component that it knows.
	Texts      map[Field]string
	Components map[Field]map[kubenames.Component]string
}

// forecastMachines says of every machine of a set what a plan changes in its record.
func (r PriorState) forecastMachines(p Set, files Rendered, steps []step.Step) map[string]MachineForecast {
	out, byMachine := map[string]MachineForecast{}, map[string][]step.Step{}
	for _, step := range steps {
		byMachine[step.On()] = append(byMachine[step.On()], step)
	}

	begins := slices.ContainsFunc(steps, step.BeginsEtcd)

	for _, name := range p.Names() {
		if known, recorded := r.Machines[r.recordOf(name)]; recorded {
			out[name] = r.forecastMachine(p, name, known, files, byMachine[name], begins)
		} else {
			out[name] = MachineForecast{Anew: true}
		}
	}

	return out
}

// recordOf is the name under which the record of a machine is now, that of other hardware which had its name included.
func (r PriorState) recordOf(name string) string {
	for as, of := range r.Replaced {
		if of == name {
			return as
		}
	}

	return name
}

func (r PriorState) forecastMachine(
	p Set, name string, known cluster.MachineState, files Rendered, steps []step.Step, begins bool,
) MachineForecast {
	f := MachineForecast{
		From: cmp.Or(r.Renamed[name], name), Open: r.unsettled(name, known), Texts: map[Field]string{},
		Components: map[Field]map[kubenames.Component]string{FieldImages: {}, FieldKubernetes: {}},
		Joins:      begins || r.exchanged(name) || !wasWhole(p, known),
	}

	if at := p.Machines[name].Address; p.Host == nil && at != "" && r.Addresses[f.From] != at {
		f.Texts[FieldAddress] = at
	}

	for _, step := range steps {
		f.add(step)
	}

	if files.Nodes[name] != "" && r.HostnameUnset[r.recordOf(name)] {
		f.Open = append(f.Open, FieldHostnameUnset)
	}

	if f.Joins {
		f.join(p, p.Machines[name], known, files.Nodes[name], r.exchanged(name))
	}

	if p.Host == nil && slices.Contains(f.Open, FieldConfigDigest) && !slices.Contains(f.Open, FieldStagedDigest) &&
		files.Digests[name] != "" {
		f.Texts[FieldConfigDigest] = files.Digests[name]
	}

	f.Open = slices.DeleteFunc(f.Open, func(field Field) bool { return f.Texts[field] != "" })

	return f
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

	if known.StagedDigest != "" {
		open = append(open, FieldConfigDigest, FieldStagedDigest, FieldBootID)
	}

	if known.NodeName == "" {
		open = append(open, FieldNodeName, FieldKubeletVersion, FieldKubernetes)
	}

	return open
}

// add notes what a step changes.
func (f *MachineForecast) add(op step.Step) {
	switch s := op.(type) {
	case step.ApplyConfig:
		f.configure(s)
	case step.Upgrade:
		f.upgrade(s)
	case step.UpgradeComponent:
		f.upgradeComponent(s)
	case step.RestartKubelet, step.DeleteNode:
		f.Open = append(f.Open, FieldNodeName, FieldKubeletVersion, FieldKubernetes)
	case step.WriteMeta:
		if strings.Contains(s.Keys, metakey.Text(metakey.UUIDOverride)) {
			f.Open = append(f.Open, FieldUUID)
		}
	case step.LeaveEtcd, step.RemoveMember:
		f.Open = append(f.Open, FieldMemberID)
	case step.Reset, step.ReplaceVolumes:
		f.Joins = true
	}
}

func (f *MachineForecast) configure(s step.ApplyConfig) {
	f.Joins = f.Joins || s.Access != step.Member
	f.Open = append(f.Open, FieldConfigDigest)

	if s.Moves != "" {
		f.Open = append(f.Open, FieldKeys)
	}

	if s.Reboot != "" {
		f.Open = append(f.Open, FieldBootID)
	}

	if s.Staged != "" {
		f.Open = append(f.Open, FieldStagedDigest) // the machine may boot at any time
	}
}

// upgradeComponent notes what runs after it; kube-proxy runs in pods of its own, which no machine is asked for.
func (f *MachineForecast) upgradeComponent(s step.UpgradeComponent) {
	if s.Awaits { // a later apply may make the change
		f.Open = append(f.Open, FieldImages, FieldKubernetes)

		if s.Component == kubenames.Kubelet {
			f.Open = append(f.Open, FieldKubeletVersion)
		}

		return
	}

	f.Components[FieldImages][s.Component] = s.Image

	version, known := kubenames.ImageVersion(s.Image)

	switch {
	case s.Component == kubenames.KubeProxy:
	case !known:
		f.Open = append(f.Open, FieldKubernetes, FieldKubeletVersion)
	default:
		f.Components[FieldKubernetes][s.Component] = version
	}

	if s.Component == kubenames.Kubelet && known {
		f.Texts[FieldKubeletVersion] = version
	}
}

// upgrade notes what is another after an upgrade; a pod is another one.
func (f *MachineForecast) upgrade(s step.Upgrade) {
	f.Joins = f.Joins || s.Loses
	f.Open = append(f.Open, FieldBootID)
	f.Texts[FieldTalosVersion] = s.To

	if s.Container {
		f.Open = append(f.Open, FieldUUID, FieldPodDigest, FieldAddress, FieldSchematic, FieldExtensions, FieldInstaller)

		return
	}

	f.Open = append(f.Open, FieldSchematic, FieldExtensions)
	f.Texts[FieldInstaller] = s.Installer

	if s.Schematic != "" {
		f.Texts[FieldSchematic] = s.Schematic
	}
}
