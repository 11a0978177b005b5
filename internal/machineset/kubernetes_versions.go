package machineset

import (
	"errors"
	"maps"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// KubernetesPath is the upgrade path of a resource from its running Kubernetes version to the wanted one.
type KubernetesPath struct {
	// Lowest and highest are the running versions, from the recorded state.
	Lowest, highest machineconfig.KubernetesVersion
	// base is the lowest version that is not a downgrade. A control plane component in an older version shows an upgrade
	// that did not finish; a worker that was left behind does not. Without control planes it is lowest.
	base machineconfig.KubernetesVersion
	To   machineconfig.KubernetesVersion
	// Releases are those that the path may pass through.
	Releases []machineconfig.KubernetesVersion
}

// hops are the versions on the path, the wanted one last; none when every machine runs it or a newer one.
func (k KubernetesPath) hops() []machineconfig.KubernetesVersion {
	if k.Lowest.GTE(k.To.Version) {
		return nil
	}

	return machineconfig.KubernetesPath(k.Lowest, k.To, k.Releases)
}

// kubernetesPath finds the path of an upgrade; ok is false when no running version is known.
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

// follows reports whether an image is that of a version, instead of pinned to another one.
func follows(image string, version machineconfig.KubernetesVersion) bool {
	named, known := kubenames.ImageVersion(image)

	return known && compareVersions(named, version.String()) == 0
}

// runningComponent is a Kubernetes component on a machine with its version.
type runningComponent struct {
	component kubenames.Component
	version   machineconfig.KubernetesVersion
}

// kubernetesOn is the Kubernetes versions on a machine: those of its images or, where Talos chooses an image, the
// observed version. An image without a version that stays is the user's responsibility.
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

// refuseKubernetesVersion refuses Kubernetes versions that machines cannot reach from the recorded ones. An
// unfinished upgrade may be reverted while a control plane component still runs the version before. Talos is upgraded
// first, so the wanted Talos counts.
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

		// Several machines have the same problem, which is appended once.
		keep, finish := path.possible(problem)
		diags.Append(kubernetesChange.At(p.ClusterPath("kubernetes_version"), finding.Args{"cluster": p.Settings.Name,
			"lowest": path.Lowest, "highest": path.newerParts(), "found": field.Found, "allowed": field.Allowed,
			"fix": finding.Sentences(field.Fix), "keep": keep, "finish": finish}))
	}

	return diags
}

// refuseSettingsTooNew refuses what a kube-apiserver has only after the upgrade of the same plan.
func refuseSettingsTooNew(p Set, recorded PriorState, files Rendered) finding.List {
	to, err := machineconfig.ParseKubernetesVersion(p.Settings.KubernetesVersion)
	if err != nil {
		return nil
	}

	machines := map[[3]string][]string{} // by the running version, the setting and its versions

	for _, name := range p.Names() {
		for _, running := range recorded.kubernetesOn(name, files.Machines[name].Images, to) {
			if running.component != kubenames.KubeAPIServer || running.version.Minor >= to.Minor {
				continue
			}

			for _, s := range machineconfig.TooNewFor(files.Configs[name], running.version) {
				key := [3]string{running.version.String(), s.String(), s.Versions()}
				machines[key] = append(machines[key], name)
			}
		}
	}

	var diags finding.List

	inOrder := func(a, b [3]string) int { return slices.Compare(a[:], b[:]) }

	for _, key := range slices.SortedFunc(maps.Keys(machines), inOrder) {
		diags.Append(settingTooNew.At(p.ClusterPath("kubernetes_version"), finding.Args{"cluster": p.Settings.Name,
			"running": key[0], "setting": key[1], "versions": key[2], "machines": machines[key], "to": to}))
	}

	return diags
}

// From is the version that decides whether the wanted one is a downgrade, and where the path begins otherwise.
func (k KubernetesPath) From() machineconfig.KubernetesVersion {
	if k.To.LT(k.base.Version) {
		return k.base
	}

	return k.Lowest
}

// newerParts is the version of components that an unfinished upgrade reached; empty for none.
func (k KubernetesPath) newerParts() string {
	if k.Lowest.EQ(k.highest.Version) {
		return ""
	}

	return k.highest.String()
}

// possible are the versions that are possible instead of a refused downgrade: the one without newer components and,
// in an unfinished upgrade, the one that finishes it.
func (k KubernetesPath) possible(problem error) (keep, finish string) {
	switch {
	case !errors.Is(problem, machineconfig.ErrMinorDowngrade) && !errors.Is(problem, machineconfig.ErrPatchDowngrade):
		return "", ""
	case k.base.LT(k.highest.Version):
		return k.base.String(), k.highest.String()
	default:
		return k.highest.String(), ""
	}
}

// imagesThatStay are the errors about images that do not follow the versions on the path. An image that a machine
// already has passes.
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

// UpgradeOf is a Kubernetes upgrade in a plan.
type UpgradeOf struct {
	Path KubernetesPath
	// Machines are the running machines of the resource.
	Machines []cluster.Machine
}

// Minors are the steps of one minor version in an upgrade.
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
