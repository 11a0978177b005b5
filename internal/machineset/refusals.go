package machineset

import (
	"maps"
	"reflect"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// refuseContract refuses other contract changes than the step to the documents of v1.14 and the step back. The step
// back happens only if the configuration names the contract: settings.pinContract keeps the one of state.
func refuseContract(p, prior Set, recorded PriorState) finding.List {
	contract, old := p.Settings.Contract, prior.Settings.Contract
	if contract == "" || contract == old || !recorded.HasMembers() {
		return nil
	}

	if !machineconfig.ContractFollows(old, contract) {
		return finding.List{contractChange.At(p.ClusterPath("version_contract"), finding.Args{"cluster": p.Settings.Name,
			"from": old, "to": contract, "documents": machineconfig.DocumentsContract})}
	}

	var names []string

	for _, name := range p.Names() {
		state := recorded.Machines[name]

		runs, known := machineconfig.ReadTalosVersion(state.TalosVersion)
		if state.Access == step.Member && known && machineconfig.CheckContract(contract, runs) != nil {
			names = append(names, name)
		}
	}

	if len(names) == 0 {
		return nil
	}

	return finding.List{contractTooNew.At(p.ClusterPath("version_contract"), finding.Args{"cluster": p.Settings.Name,
		"machines": names, "contract": contract, "from": old})}
}

// RefuseNewSecrets compares the content of bundles, not their spelling. Secrets that are not generated yet count as
// different.
func (p Set) RefuseNewSecrets(prior Set, record Record) finding.List {
	if p.Unknown.Has(UnknownNewSecrets) && prior.Secrets+prior.RecordedSecrets != "" &&
		(Bootstrapped(record.Phase) || record.HasMembers()) {
		return finding.List{p.newSecrets(prior)}
	}

	if p.Secrets == "" || prior.Secrets == "" || p.Secrets == prior.Secrets && !p.Provided {
		return nil
	}

	planned, err := pki.Parse([]byte(p.Secrets))
	if err != nil {
		return finding.List{finding.InvalidSecrets(p.secretsPath(), err)}
	}

	if p.Provided {
		return p.refuseLostKeys(planned, record)
	}

	former, err := pki.Parse([]byte(prior.Secrets))

	switch {
	case err != nil || planned.Identity() != former.Identity() ||
		!planned.Rotates() && planned.CurrentDigest() != former.CurrentDigest():
		return finding.List{p.newSecrets(prior)}
	case planned.DropsEncryptionKey(former):
		return finding.List{encryptionKeyRemoved.With(finding.Args{"cluster": p.Settings.Name})}
	default:
		return nil
	}
}

// refuseUnreadableSecrets refuses configurations without a key for Secrets that control planes use, and that no secrets
// of talosop can have. A patch can have it.
func (p Set) refuseUnreadableSecrets(seen Record, files Rendered) finding.List {
	var machines []string

	key := ""

	for _, name := range slices.Sorted(maps.Keys(seen.Seen)) {
		for _, lost := range seen.Seen[name].Drift.Of(record.UnreadableSecrets) {
			config := files.Configs[name]
			if has, err := pki.HasEncryptionKey(config, lost.Wanted); len(config) > 0 && (err != nil || !has) {
				machines, key = append(machines, name), lost.Found
			}
		}
	}

	if len(machines) == 0 {
		return nil
	}

	return finding.List{encryptionKeyLost.At(p.secretsPath(),
		finding.Args{"machines": slices.Compact(machines), "key": key})}
}

// refuseLostKeys refuses secrets of the provider configuration that lack an authority which a machine uses, because
// state has no others.
func (p Set) refuseLostKeys(planned *pki.Bundle, record Record) finding.List {
	for _, name := range slices.Sorted(maps.Keys(record.Machines)) {
		if lost := planned.Unknown(record.Machines[name].Keys); len(lost) > 0 {
			return finding.List{keysMissing.At(p.secretsPath(), finding.Args{"machine": name, "key": lost[0]})}
		}
	}

	return nil
}

func (p Set) newSecrets(prior Set) finding.Finding {
	return secretsChanged.At(p.secretsPath(), finding.Args{"cluster": prior.Settings.Name, "provided": prior.Provided})
}

// ClusterPath is the attribute of a cluster setting, on the resource or in its handle.
func (p Set) ClusterPath(name string) finding.Path {
	if p.InHandle {
		return finding.Root("cluster").AtName(name)
	}

	return finding.Root(name)
}

func (p Set) secretsPath() finding.Path { return p.ClusterPath("secrets") }

// changedAt is the changed attribute of a machine in a container; the machine itself where none is changed.
func (p Set) changedAt(prior Set, machine string) finding.Path {
	now, listed := p.Machines[machine]
	before, existed := prior.Machines[machine]

	switch {
	case !p.remakes(prior) || !listed || !existed:
		return p.placeOf(machine)
	case now.Group.TalosVersion != before.Group.TalosVersion:
		return now.Group.VersionAt
	case imageName(now.Image) != imageName(before.Image):
		return p.FindingPath("image")
	case !reflect.DeepEqual(now.Pod, before.Pod):
		return now.Group.podPath()
	default:
		return p.placeOf(machine)
	}
}
