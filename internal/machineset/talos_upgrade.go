package machineset

import (
	"errors"
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/talosupgrade"
)

// obstacle is why machines cannot change from their Talos version to the wanted one. It is comparable, so that
// machines with the same one are named together.
type obstacle struct{ found, Reason, remedy string }

// refuseTalosVersion refuses Talos versions that machines cannot reach from the recorded ones.
func refuseTalosVersion(p Set, recorded PriorState) finding.List {
	var diags finding.List

	if p.Unknown.Has(UnknownChanges) {
		return nil
	}

	for _, g := range p.Groups {
		var machines finding.Alike[obstacle]

		for _, name := range p.namesOf(g) {
			problem := p.obstacle(p.Machines[name], recorded.Machines[name],
				recorded.kubernetesOn(name, nil, machineconfig.KubernetesVersion{}))
			if problem != (obstacle{}) {
				machines.Add(problem, name)
			}
		}

		for problem, names := range machines.All() {
			diags.Append(finding.Refused(g.VersionAt, "Unsupported change of talos_version",
				fmt.Sprintf("%s %s %s", finding.MachinesNamed(names), finding.Verb(names, "runs", "run"), problem.found),
				problem.Reason, problem.remedy))
		}
	}

	return diags
}

// obstacle says why a machine cannot change to the wanted Talos. kubernetes is its Kubernetes versions.
func (p Set) obstacle(m Machine, state step.MachineState, kubernetes []runningComponent) obstacle {
	to, err := machineconfig.ParseTalosVersion(m.Group.TalosVersion)
	from, known := machineconfig.ReadTalosVersion(state.TalosVersion)

	switch wanted := m.schematic(); {
	case err != nil || !known || state.Access != step.Member:
		return obstacle{}
	case from.EQ(to.Version) && (wanted == "" || wanted == state.Schematic):
		return obstacle{}
	case state.Platform == cluster.PlatformContainer && p.Platform().Installed:
		return obstacle{
			found:  fmt.Sprintf("Talos %s in a container, and wanted is %s", from, describeTalos(to, wanted)),
			Reason: "Talos in a container has no disk to install another one to",
			remedy: fmt.Sprintf("Start the container from another image, or keep talos_version %s and no schematic", from),
		}
	case p.Settings.Contract != "" && machineconfig.CheckContract(p.Settings.Contract, to) != nil:
		return p.contractObstacle(from, to)
	case to.LT(from.Version):
		return p.downgradeObstacle(from, to, m.Group.Role, kubernetes)
	default:
		return p.pathObstacle(from, to, kubernetes)
	}
}

// contractObstacle refuses a Talos that does not understand the configurations of the cluster, because the contract
// stays pinned.
func (p Set) contractObstacle(from, to machineconfig.TalosVersion) obstacle {
	return obstacle{
		found: fmt.Sprintf("Talos %s, and talos_version is %s", from, to),
		Reason: fmt.Sprintf("The configurations of the cluster follow version contract %s, and an older Talos refuses the "+
			"documents of a newer contract",
			p.Settings.Contract),
		remedy: fmt.Sprintf("Keep talos_version at %s.0 or newer", p.Settings.Contract),
	}
}

func describeTalos(v machineconfig.TalosVersion, schematic string) string {
	if schematic == "" {
		return v.String()
	}

	return fmt.Sprintf("%s with schematic %s", v, step.ShortID(schematic))
}

func (p Set) downgradeObstacle(
	from, to machineconfig.TalosVersion, role step.Role, kubernetes []runningComponent,
) obstacle {
	found := fmt.Sprintf("Talos %s, and talos_version is the older %s", from, to)

	if !p.Changes.AllowDowngrade {
		return obstacle{
			found: found,
			Reason: "An older Talos may not read the configuration or the data of a newer one, so that machines do not go " +
				"back unless told to",
			remedy: fmt.Sprintf("Set talos_version to %s, or allow_downgrade = true to go back on purpose", from),
		}
	}

	if problem := etcdObstacle(from, to, found); role == step.ControlPlane && problem != (obstacle{}) {
		return problem
	}

	return p.pathObstacle(from, to, kubernetes)
}

// pathObstacle checks every step of the path: that its installer accepts it, and that the intermediate Talos runs the
// machine's Kubernetes, which is upgraded later.
func (p Set) pathObstacle(from, to machineconfig.TalosVersion, kubernetes []runningComponent) obstacle {
	found := fmt.Sprintf("Talos %s, and talos_version is %s", from, to)

	if wanted, err := machineconfig.ParseKubernetesVersion(p.Settings.KubernetesVersion); err == nil &&
		len(kubernetes) == 0 {
		kubernetes = []runningComponent{{version: wanted}}
	}

	for _, next := range talosupgrade.Path(from, to, talosupgrade.Releases(to, p.Changes.Via)) {
		if err := talosupgrade.Check(from, next); err != nil {
			return obstacle{
				found:  found,
				Reason: fmt.Sprintf("The installer of Talos %s refuses it: %s", next, err),
				remedy: "Name other releases to pass in upgrade_via, or bring the machines nearer with `talosctl upgrade` first",
			}
		}

		for _, running := range kubernetes {
			version := running.version

			var problem *machineconfig.FieldError
			if errors.As(machineconfig.CheckKubernetesSupported(next, version), &problem) {
				return obstacle{
					found: found,
					Reason: fmt.Sprintf("Talos %s, which is on the way, does not run Kubernetes %s (allowed: %s)", next, version,
						problem.Allowed),
					remedy: problem.Fix,
				}
			}
		}

		from = next
	}

	return obstacle{}
}
