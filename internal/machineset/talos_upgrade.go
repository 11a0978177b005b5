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

func (o obstacle) finding(at finding.Path, machines []string) finding.Finding {
	return o.why.At(at, finding.Args{"machines": machines, "from": o.from, "to": o.to, "next": o.next,
		"contract": o.contract, "kubernetes": o.kubernetes, "problem": o.problem, "fix": o.fix})
}

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
			diags.Append(problem.finding(g.VersionAt, names))
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
		return obstacle{why: &talosInContainer, from: from.String(), to: describeTalos(to, wanted)}
	case p.Settings.Contract != "" && machineconfig.CheckContract(p.Settings.Contract, to) != nil:
		// The contract stays pinned.
		return obstacle{why: &talosOlderThanContract, from: from.String(), to: to.String(), contract: p.Settings.Contract}
	case to.LT(from.Version):
		return p.downgradeObstacle(from, to, m.Group.Role, kubernetes)
	default:
		return p.pathObstacle(from, to, kubernetes)
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
	if !p.Changes.AllowDowngrade {
		return obstacle{why: &talosDowngrade, from: from.String(), to: to.String()}
	}

	if problem := etcdObstacle(from, to); role == step.ControlPlane && problem != (obstacle{}) {
		return problem
	}

	return p.pathObstacle(from, to, kubernetes)
}

// pathObstacle checks every step of the path: that its installer accepts it, and that the intermediate Talos runs the
// machine's Kubernetes, which is upgraded later.
func (p Set) pathObstacle(from, to machineconfig.TalosVersion, kubernetes []runningComponent) obstacle {
	found := obstacle{from: from.String(), to: to.String()}

	if wanted, err := machineconfig.ParseKubernetesVersion(p.Settings.KubernetesVersion); err == nil &&
		len(kubernetes) == 0 {
		kubernetes = []runningComponent{{version: wanted}}
	}

	for _, next := range talosupgrade.Path(from, to, talosupgrade.Releases(to, p.Changes.Via)) {
		if err := talosupgrade.Check(from, next); err != nil {
			found.why, found.next, found.problem = &talosInstallerRefuses, next.String(), err.Error()

			return found
		}

		for _, running := range kubernetes {
			version := running.version

			var problem *machineconfig.FieldError
			if errors.As(machineconfig.CheckKubernetesSupported(next, version), &problem) {
				found.why, found.next, found.kubernetes = &talosWithoutKubernetes, next.String(), version.String()
				found.problem, found.fix = problem.Allowed, finding.Sentences(problem.Fix)

				return found
			}
		}

		from = next
	}

	return obstacle{}
}
