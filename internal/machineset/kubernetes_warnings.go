package machineset

import (
	"fmt"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// What a plan reports about Kubernetes from configuration and state alone, beside the version: images that do not fit
// together, and obstacles of an upgrade.

// ahead is a component that would be too new. It is comparable, so that machines with the same one are named
// together.
type ahead struct {
	component kubenames.Component
	// limit is the version that it must not exceed, and plane the control plane whose API server has it.
	image, limit, plane string
}

// refuseAhead refuses images in patches with a newer minor version than kube-apiserver gets, or kubelets newer than
// the version of the cluster. It accepts images that machines already have.
func (p Set) refuseAhead(recorded PriorState, files Rendered) finding.List {
	var machines finding.Alike[ahead]

	for _, name := range p.Names() {
		for _, c := range kubenames.BehindAPIServer() {
			image := files.Machines[name].Images[c]
			version, known := kubenames.ImageVersion(image)

			limit, plane := p.limitOf(c, files)
			if !known || limit == "" || !laterMinor(version, limit) || recorded.Machines[name].Images[c] == image {
				continue
			}

			machines.Add(ahead{component: c, image: image, limit: limit, plane: plane}, name)
		}
	}

	var diags finding.List

	for problem, names := range machines.All() {
		diags.Append(imageAhead.At(p.machinePath(names[0]), finding.Args{"component": problem.component,
			"image": problem.image, "machines": names, "limit": problem.limit, "plane": problem.plane}))
	}

	return diags
}

// limitOf is the version whose minor version a component must not exceed, and the control plane whose API server gets
// it. The limit is empty for none, and the control plane for the version of the cluster.
func (p Set) limitOf(c kubenames.Component, files Rendered) (limit, plane string) {
	if c == kubenames.Kubelet {
		limit = p.Settings.KubernetesVersion
	}

	for _, name := range p.Names() {
		if api, known := kubenames.ImageVersion(files.Machines[name].Images[kubenames.KubeAPIServer]); known &&
			(limit == "" || compareVersions(api, limit) < 0) {
			limit, plane = api, name
		}
	}

	return limit, plane
}

// laterMinor reports whether a Kubernetes version has a later minor version than another.
func laterMinor(version, other string) bool {
	a, err := machineconfig.ParseKubernetesVersion(version)
	b, wrong := machineconfig.ParseKubernetesVersion(other)

	return err == nil && wrong == nil && (a.Major > b.Major || a.Major == b.Major && a.Minor > b.Minor)
}

// warnOfKubernetes warns about the effects and obstacles of a Kubernetes upgrade, from the recorded state. way is its
// path and steps are those of the plan.
func (p Set) warnOfKubernetes(path KubernetesPath, recorded PriorState, steps []step.Step) finding.List {
	diags := p.warnOfUnready(recorded, len(path.hops()) > 0 || step.TotalOf(steps).UpgradesKubernetes)
	diags.Append(p.warnOfDowngrade(path, steps)...)
	diags.Append(p.warnOfRunning(recorded, steps)...)
	diags.Append(p.warnOfNotPassed(path)...)

	return diags
}

// warnOfUnready names the machines that hold a Kubernetes upgrade.
func (p Set) warnOfUnready(recorded PriorState, upgrade bool) finding.List {
	var unready []string

	for _, m := range p.Members(recorded) {
		if !recorded.Machines[m.Name].Ready {
			unready = append(unready, m.Name)
		}
	}

	if !upgrade || len(unready) == 0 {
		return nil
	}

	return finding.List{kubernetesAwaitsMachines.With(finding.Args{"cluster": p.Settings.Name, "machines": unready})}
}

// warnOfDowngrade names what an apply downgrades, and why.
func (p Set) warnOfDowngrade(path KubernetesPath, steps []step.Step) finding.List {
	var (
		lines  []string
		minors bool
	)

	for _, s := range changesOf(steps) {
		from, known := kubenames.ImageVersion(s.From)
		to, named := kubenames.ImageVersion(s.Image)

		if known && named && compareVersions(to, from) < 0 {
			lines = append(lines, fmt.Sprintf("%s of %s: %s -> %s", s.Component, s.Machine, from, to))
			minors = minors || laterMinor(from, to)
		}
	}

	if len(lines) == 0 {
		return nil
	}

	message := kubernetesPatchDowngrade
	if minors {
		message = kubernetesDowngrade
	}

	return finding.List{message.With(finding.Args{"cluster": p.Settings.Name, "version": path.To,
		"components": finding.Shortened(lines)})}
}

// warnOfRunning names components that run in another version than their image, and that an apply waits for.
func (p Set) warnOfRunning(recorded PriorState, steps []step.Step) finding.List {
	var lines []string

	for _, s := range changesOf(steps) {
		if running := recorded.Seen[s.Machine].Running[s.Component]; s.From == s.Image && running != "" {
			lines = append(lines, fmt.Sprintf("%s of %s runs %s, and its image is %s", s.Component, s.Machine, running, s.Image))
		}
	}

	if len(lines) == 0 {
		return nil
	}

	return finding.List{kubernetesRunsOther.With(
		finding.Args{"cluster": p.Settings.Name, "components": finding.Shortened(lines)})}
}

// changesOf are the upgrades of components among steps, each alone.
func changesOf(steps []step.Step) (each []step.UpgradeComponent) {
	for _, op := range steps {
		if s, ok := op.(step.UpgradeComponent); ok {
			each = append(each, s.Each()...)
		}
	}

	return each
}

// warnOfNotPassed names releases of kubernetes_upgrade_via that are not on the upgrade path.
func (p Set) warnOfNotPassed(path KubernetesPath) finding.List {
	var diags finding.List

	hops := path.hops()
	if len(hops) == 0 {
		return nil
	}

	for i, v := range p.Changes.KubernetesVia {
		if !slices.ContainsFunc(hops, func(hop machineconfig.KubernetesVersion) bool { return hop.EQ(v.Version) }) {
			diags.Append(releaseNotPassed.At(finding.Root("kubernetes_upgrade_via").AtListIndex(i),
				finding.Args{"release": v, "from": path.Lowest, "to": path.To}))
		}
	}

	return diags
}
