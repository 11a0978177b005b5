package machineset

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// refuseContract refuses other contract changes than the step to the documents of v1.14 and the step back. The step
// back happens only if the configuration names the contract: settings.pinContract keeps the one of state.
func refuseContract(p, prior Set, recorded PriorState) finding.List {
	contract, old := p.Settings.Contract, prior.Settings.Contract
	if contract == "" || contract == old || !recorded.HasMembers() {
		return nil
	}

	if !machineconfig.ContractFollows(old, contract) {
		return finding.List{finding.Refused(p.ClusterPath("version_contract"), "Unsupported change of version_contract",
			fmt.Sprintf("version_contract would change from %s to %s", old, contract),
			"The contract is pinned when the cluster is created; another one rewrites the configuration of every machine, "+
				"and only the step to "+machineconfig.DocumentsContract+" brings anything",
			"Set version_contract to "+old+", or leave it out")}
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

	return finding.List{finding.Refused(p.ClusterPath("version_contract"), "Unsupported change of version_contract",
		fmt.Sprintf("%s %s a Talos that does not know the documents of contract %s", finding.MachinesNamed(names),
			finding.Verb(names, "runs", "run"), contract),
		"A machine refuses documents of a newer Talos, and is given its configuration before it is upgraded, or after",
		fmt.Sprintf("Upgrade talos_version with version_contract %s first, and change version_contract after it", old))}
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
		return finding.List{finding.Warn("A key for Secrets will be removed", "API servers will no longer read Secrets that "+
			"were encrypted with the former key (aescbcencryptionsecret). Write all Secrets again before this apply: the "+
			"guide on secrets says how.")}
	default:
		return nil
	}
}

// refuseLostKeys refuses secrets of the provider configuration that lack an authority which a machine uses, because
// state has no others.
func (p Set) refuseLostKeys(planned *pki.Bundle, record Record) finding.List {
	for _, name := range slices.Sorted(maps.Keys(record.Machines)) {
		if lost := planned.Unknown(record.Machines[name].Keys); len(lost) > 0 {
			return finding.List{finding.Refused(p.secretsPath(), "Keys that machines work with are missing",
				fmt.Sprintf("machine %s works with a %s that the secrets of the provider's configuration do not have", name,
					lost[0]),
				"Nobody could recognise the machine any more",
				"Put the former keys back below `previous` of the bundle, and take them out when an apply has succeeded")}
		}
	}

	return nil
}

func (p Set) newSecrets(prior Set) finding.Finding {
	where := "state still has them, in this attribute, and a file with them can be imported into talosop_secrets"
	if prior.Provided {
		where = "the provider was given them when the cluster was last read"
	}

	return finding.Refused(p.secretsPath(), "Unsupported change of secrets",
		"the secrets of the cluster would change, and its machines only trust the old ones",
		"Nothing can be sent to the machines with the new secrets",
		"Give the old secrets back: "+where,
		"To make the cluster anew with other secrets, `taint` every resource with its machines; the plan of -replace is "+
			"refused all the same")
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
