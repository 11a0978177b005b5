package machineset

import (
	"errors"
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// KubernetesPath is the way of a resource from the Kubernetes that its machines run to the
// one that is wanted.
type KubernetesPath struct {
	// Lowest and highest are the versions that run, as state knows.
	Lowest, highest machineconfig.KubernetesVersion
	// base is the lowest that nothing goes back from but by a downgrade: a component of the
	// control plane that still runs an older version tells of an upgrade that did not finish, a
	// worker that was left behind does not. Without control planes it is lowest.
	base machineconfig.KubernetesVersion
	To   machineconfig.KubernetesVersion
	// Releases are those that may be passed on the way.
	Releases []machineconfig.KubernetesVersion
}

// running says what runs, as a sentence begins.
func (k KubernetesPath) running() string {
	if k.Lowest.EQ(k.highest.Version) {
		return fmt.Sprintf("Kubernetes %s runs", k.Lowest)
	}

	return fmt.Sprintf("Kubernetes %s runs, in parts %s already", k.Lowest, k.highest)
}

// hops are the versions that are passed, the wanted one last; none when every machine runs
// that or a newer one.
func (k KubernetesPath) hops() []machineconfig.KubernetesVersion {
	if k.Lowest.GTE(k.To.Version) {
		return nil
	}

	return machineconfig.KubernetesPath(k.Lowest, k.To, k.Releases)
}

// KubernetesPath finds the way that an upgrade takes; ok is false when nothing is known to run.
func (p Set) kubernetesPath(recorded PriorState, files Rendered) (k KubernetesPath, ok bool) {
	to, err := machineconfig.ParseKubernetesVersion(p.Settings.KubernetesVersion)
	if err != nil {
		return k, false
	}

	k.To, k.Releases = to, machineconfig.KubernetesReleases(to, p.Changes.KubernetesVia)

	based := false

	for _, name := range p.Names() {
		for _, running := range recorded.kubernetesOn(name, files.Machines[name].Images, to) {
			version := running.version
			if !ok || version.LT(k.Lowest.Version) {
				k.Lowest = version
			}

			if !ok || version.GT(k.highest.Version) {
				k.highest = version
			}

			ok = true

			wanted := files.Machines[name].Images[running.component]
			if p.Machines[name].Group.Role == step.ControlPlane && follows(wanted, to) &&
				(!based || version.LT(k.base.Version)) {
				k.base, based = version, true
			}
		}
	}

	if !based {
		k.base = k.Lowest
	}

	return k, ok
}

// follows reports whether an image is that of a version, rather than pinned to another one.
func follows(image string, version machineconfig.KubernetesVersion) bool {
	named, known := kubenames.ImageVersion(image)

	return known && compareVersions(named, version.String()) == 0
}

// runningComponent is a component of Kubernetes on a machine with its version.
type runningComponent struct {
	component kubenames.Component
	version   machineconfig.KubernetesVersion
}

// kubernetesOn is the versions of Kubernetes on a machine: those of its images or, where its
// configuration leaves one to Talos, what was seen to run. An image that says nothing of the
// version and stays is the user's business.
func (r PriorState) kubernetesOn(
	machine string, wanted kubenames.Images, to machineconfig.KubernetesVersion,
) []runningComponent {
	state := r.Machines[machine]
	if state.Access != step.Member {
		return nil
	}

	var versions []runningComponent

	for _, c := range kubenames.Components() {
		text, known := kubenames.ImageVersion(state.Images[c])
		if !known {
			text = r.Seen[machine].Running[c]
		}

		version, err := machineconfig.ParseKubernetesVersion(text)
		if err != nil || wanted[c] != "" && wanted[c] == state.Images[c] && !version.EQ(to.Version) {
			continue
		}

		versions = append(versions, runningComponent{component: c, version: version})
	}

	return versions
}

// refuseKubernetesVersion refuses versions of Kubernetes that machines cannot be brought to,
// by what state knows to run on them. What an upgrade began and could not finish may be
// taken back: something of the control plane still runs the version before then. Talos is
// upgraded first, so that the wanted one counts.
func refuseKubernetesVersion(p Set, recorded PriorState, files Rendered) finding.List {
	path, known := p.kubernetesPath(recorded, files)
	if !known {
		return nil
	}

	var problems []error

	for _, g := range p.Groups {
		talos, err := machineconfig.ParseTalosVersion(g.TalosVersion)
		if err != nil || len(p.namesOf(g)) == 0 {
			continue
		}

		problems = append(problems, machineconfig.CheckKubernetesUpgrade(path.From(), path.To, path.Releases, talos))
	}

	problems = append(problems, p.imagesThatStay(path, recorded, files)...)

	var diags finding.List

	for _, problem := range finding.Flatten(errors.Join(problems...)) {
		var field *machineconfig.FieldError
		if errors.Is(problem, machineconfig.ErrPatchDowngrade) && p.Changes.AllowDowngrade || !errors.As(problem, &field) {
			continue
		}

		// Many machines have the same problem, which is appended once.
		diags.Append(finding.Refused(p.ClusterPath("kubernetes_version"), "Unsupported change of kubernetes_version",
			fmt.Sprintf("%s, and kubernetes_version is %s", path.running(), field.Found), "Allowed is "+field.Allowed, field.Fix,
			path.wayOut(problem)))
	}

	return diags
}

// From is the version that decides whether the wanted one is a downgrade, and which way there
// is to it otherwise.
func (k KubernetesPath) From() machineconfig.KubernetesVersion {
	if k.To.LT(k.base.Version) {
		return k.base
	}

	return k.Lowest
}

// wayOut says which versions are possible instead of one that is refused as a downgrade.
func (k KubernetesPath) wayOut(problem error) string {
	switch {
	case !errors.Is(problem, machineconfig.ErrMinorDowngrade) && !errors.Is(problem, machineconfig.ErrPatchDowngrade):
		return ""
	case k.base.LT(k.highest.Version):
		return fmt.Sprintf("Set kubernetes_version to %s to take back what is newer, or to %s to go on", k.base, k.highest)
	default:
		return fmt.Sprintf("Set kubernetes_version to %s to keep what runs", k.highest)
	}
}

// imagesThatStay are the mistakes about images that say nothing of the versions on the way.
// An image that a machine has already passes them all.
func (p Set) imagesThatStay(path KubernetesPath, recorded PriorState, files Rendered) []error {
	var problems []error

	for _, name := range p.Names() {
		state, changing := recorded.Machines[name], map[string]string{}

		for c, image := range files.Machines[name].Images {
			if state.Access == step.Member && image != state.Images[c] {
				changing[string(c)] = image
			}
		}

		problems = append(problems, machineconfig.CheckImagesFollow(changing, path.To, path.hops()))
	}

	return problems
}

// UpgradeOf is an upgrade of Kubernetes in a plan.
type UpgradeOf struct {
	Path KubernetesPath
	// Machines are those of the resource that run.
	Machines []cluster.Machine
}

// Minors are the steps of one minor version that an upgrade takes.
func (u UpgradeOf) Minors() [][2]string {
	var steps [][2]string

	from := u.Path.Lowest

	for _, hop := range u.Path.hops() {
		if hop.Minor != from.Minor {
			steps = append(steps, [2]string{from.String(), hop.String()})
		}

		from = hop
	}

	return steps
}
