package provider

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// notYet begins every refusal of something that is planned for a later version.
const notYet = "This version of the provider does not "

func refuseTalosVersion(p, prior pool, recorded recordedPool) diag.Diagnostics {
	var diags diag.Diagnostics

	for _, g := range p.groups {
		if old := prior.counterpart(g); old != nil {
			diags.Append(refuseVersionOf(g, old, recorded)...)
		}
	}

	return diags
}

// refuseVersionOf compares a group with what it was.
func refuseVersionOf(g, prior *group, recorded recordedPool) diag.Diagnostics {
	version, old := g.talosVersion.ValueString(), prior.talosVersion.ValueString()
	if version == "" || version == old {
		return nil
	}

	others := slices.DeleteFunc(
		recorded.running(func(m cluster.MachineState) bool { return m.TalosVersion != "" && m.TalosVersion != version }),
		func(name string) bool { return !g.owns(name) })
	if len(others) == 0 {
		return nil
	}

	return diag.Diagnostics{refused(g.versionAt, "Unsupported change of talos_version",
		fmt.Sprintf("talos_version would change from %s to %s, and %s %s another version", old, version,
			describe(others), verb(others, "runs", "run")),
		notYet+"upgrade machines that run",
		fmt.Sprintf("Keep %s, or upgrade the machines with `talosctl upgrade`, refresh, and set the new version afterwards", old))}
}

func refuseKubernetesVersion(p, prior pool, recorded recordedPool) diag.Diagnostics {
	version, old := p.settings.KubernetesVersion, prior.settings.KubernetesVersion
	if version == "" || version == old {
		return nil
	}

	others := recorded.running(func(m cluster.MachineState) bool { return true })
	if len(others) == 0 {
		return nil
	}

	return diag.Diagnostics{refused(p.clusterPath("kubernetes_version"), "Unsupported change of kubernetes_version",
		fmt.Sprintf("kubernetes_version would change from %s to %s, and %s %s in the cluster already", old, version,
			describe(others), verb(others, "is", "are")),
		notYet+"upgrade Kubernetes on a running cluster",
		"Keep "+old)}
}

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

// refuseRemovals refuses to forget machines. One that is known to wait in
// maintenance mode carries nothing of the cluster and may go.
func refuseRemovals(p, prior pool, recorded recordedPool) diag.Diagnostics {
	if p.unnamed {
		return nil
	}

	var diags diag.Diagnostics

	for _, g := range prior.groups {
		var removed []string

		for _, name := range prior.namesOf(g) {
			if _, stays := p.machines[name]; !stays && recorded.machines[name].Access != cluster.Maintenance {
				removed = append(removed, name)
			}
		}

		if len(removed) == 0 {
			continue
		}

		at := path.Root("workers")
		if p.counterpart(g) != nil {
			at = g.at.AtName("machines")
		}

		diags.Append(refused(at, "Unsupported removal of machines",
			fmt.Sprintf("%s does not list %s any more", lastName(at.Steps()), describe(removed)),
			notYet+"take single machines out of a cluster",
			"Put the machines back. A machine that was only renamed has to keep its name here"))
	}

	return diags
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

func verb(subjects []string, one, many string) string {
	if len(subjects) == 1 {
		return one
	}

	return many
}
