package provider

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

func refuseContract(p, prior pool, recorded recordedPool) diag.Diagnostics {
	contract, old := p.settings.Contract, prior.settings.Contract
	if contract == "" || contract == old || len(recorded.running(func(cluster.MachineState) bool { return true })) == 0 {
		return nil
	}

	return diag.Diagnostics{refused(p.clusterPath("version_contract"), "Unsupported change of version_contract",
		fmt.Sprintf("version_contract would change from %s to %s", old, contract),
		"The contract is pinned when the cluster is created; another one rewrites the configuration of every machine, which this version "+
			"of the provider does not do",
		"Set version_contract to "+old+", or leave it out")}
}

// refuseNewSecrets compares what bundles say, not how they are written.
func refuseNewSecrets(p, prior pool) diag.Diagnostics {
	if p.secrets == "" || prior.secrets == "" || p.secrets == prior.secrets {
		return nil
	}

	planned, err := pki.Parse([]byte(p.secrets))
	if err != nil {
		return diag.Diagnostics{invalidSecrets(p.secretsPath(), err)}
	}

	if sameBundle(planned, prior.secrets) {
		return nil
	}

	return diag.Diagnostics{refused(p.secretsPath(), "Unsupported change of secrets",
		"the secrets of the cluster would change, and its machines only trust the old ones",
		"Nothing can be sent to the machines with the new secrets",
		"Give the old secrets back. To make the cluster anew with other secrets, replace the resource as well (-replace)")}
}

func sameBundle(bundle *pki.Bundle, other string) bool {
	parsed, err := pki.Parse([]byte(other))
	if err != nil {
		return false
	}

	a, errA := bundle.YAML()
	b, errB := parsed.YAML()

	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// clusterPath finds a setting of the cluster, on the resource or in its handle.
func (p pool) clusterPath(name string) path.Path {
	if p.inHandle {
		return path.Root("cluster").AtName(name)
	}

	return path.Root(name)
}

func (p pool) secretsPath() path.Path { return p.clusterPath("secrets") }

// changedAt is the attribute of a machine in a container that a plan changes; the machine itself where none of them is changed.
func (p pool) changedAt(prior pool, machine string) path.Path {
	now, listed := p.machines[machine]
	before, existed := prior.machines[machine]

	switch {
	case p.host == nil || prior.host == nil || !listed || !existed:
		return p.placeOf(machine)
	case !now.group.talosVersion.Equal(before.group.talosVersion):
		return now.group.versionAt
	case imageName(now.image) != imageName(before.image):
		return p.findingPath("image")
	case !reflect.DeepEqual(now.pod, before.pod):
		return now.group.storagePath().ParentPath()
	default:
		return p.placeOf(machine)
	}
}

func verb(subjects []string, one, many string) string {
	if len(subjects) == 1 {
		return one
	}

	return many
}
