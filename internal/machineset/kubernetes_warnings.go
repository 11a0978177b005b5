package machineset

import (
	"fmt"
	"slices"
	"strings"

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
	component             kubenames.Component
	Image, limit, because string
}

// refuseAhead refuses images in patches with a newer minor version than kube-apiserver gets, or kubelets newer than
// the version of the cluster. It accepts images that machines already have.
func (p Set) refuseAhead(recorded PriorState, files Rendered) finding.List {
	var machines finding.Alike[ahead]

	for _, name := range p.Names() {
		for _, c := range kubenames.BehindAPIServer() {
			image := files.Machines[name].Images[c]
			version, known := kubenames.ImageVersion(image)

			limit, because := p.limitOf(c, files)
			if !known || limit == "" || !laterMinor(version, limit) || recorded.Machines[name].Images[c] == image {
				continue
			}

			machines.Add(ahead{component: c, Image: image, limit: limit, because: because}, name)
		}
	}

	var diags finding.List

	for problem, names := range machines.All() {
		diags.Append(finding.Invalid(p.machinePath(names[0]), "image of "+string(problem.component),
			fmt.Sprintf("found %s for %s of %s", finding.Quote(problem.Image), problem.component, finding.MachinesNamed(names)),
			fmt.Sprintf("allowed is the minor version of %s or an older one: %s", problem.limit, problem.because),
			"Change the patch that names this image, or the version of the others with it"))
	}

	return diags
}

// limitOf is the version whose minor version a component must not exceed, and why; empty for none.
func (p Set) limitOf(c kubenames.Component, files Rendered) (limit, because string) {
	if c == kubenames.Kubelet {
		limit, because = p.Settings.KubernetesVersion,
			"a kubelet is never newer than kube-apiserver, and kubernetes_version is "+p.Settings.KubernetesVersion
	}

	for _, name := range p.Names() {
		if api, known := kubenames.ImageVersion(files.Machines[name].Images[kubenames.KubeAPIServer]); known &&
			(limit == "" || compareVersions(api, limit) < 0) {
			limit, because = api, fmt.Sprintf("%s is never newer than kube-apiserver, and %s is to run that of %s", c, name, api)
		}
	}

	return limit, because
}

// laterMinor reports whether a Kubernetes version has a later minor version than another.
func laterMinor(version, other string) bool {
	a, err := machineconfig.ParseKubernetesVersion(version)
	b, wrong := machineconfig.ParseKubernetesVersion(other)

	return err == nil && wrong == nil && (a.Major > b.Major || a.Major == b.Major && a.Minor > b.Minor)
}

// warnOfKubernetes warns about the effects and obstacles of a Kubernetes upgrade, from the recorded state. way is its
// path and steps are those of the plan.
func (p Set) warnOfKubernetes(way KubernetesPath, recorded PriorState, steps []step.Step) finding.List {
	diags := p.warnOfUnready(recorded, len(way.hops()) > 0 || step.TotalOf(steps).UpgradesKubernetes)
	diags.Append(warnOfTakenBack(way, steps)...)
	diags.Append(recorded.warnOfRunning(steps)...)
	diags.Append(p.warnOfNotPassed(way)...)

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

	return finding.List{finding.Warn("Machines that are not ready hold the upgrade of Kubernetes",
		fmt.Sprintf("When they were last seen these were not ready: %s. The upgrade waits for every machine of the "+
			"resource to answer and to be Ready, until its time is out (see timeouts). Bring them back first; one that is "+
			"gone for good is taken out of the configuration.",
			finding.Describe(unready)))}
}

// warnOfTakenBack names what an apply downgrades, and why.
func warnOfTakenBack(way KubernetesPath, steps []step.Step) finding.List {
	var (
		lines  []string
		minors bool
	)

	for _, op := range steps {
		s, ok := op.(step.UpgradeComponent)
		from, known := kubenames.ImageVersion(s.From)
		to, named := kubenames.ImageVersion(s.Image)

		if ok && known && named && compareVersions(to, from) < 0 {
			lines = append(lines, fmt.Sprintf("%s of %s: %s -> %s", s.Component, s.Machine, from, to))
			minors = minors || laterMinor(from, to)
		}
	}

	if len(lines) == 0 {
		return nil
	}

	why := fmt.Sprintf("These get an older release of the minor version that they have, by kubernetes_version, which is "+
		"%s, or by images of their own.", way.To)
	if minors {
		why = fmt.Sprintf("kubernetes_version is %s, and these are newer: what an upgrade began and did not finish, or "+
			"somebody changed, is undone.", way.To)
	}

	if more := len(lines) - finding.MostSteps; more > 0 {
		lines = append(lines[:finding.MostSteps], fmt.Sprintf("%d more", more))
	}

	return finding.List{finding.Warn("Kubernetes will be taken back", why+"\n  - "+strings.Join(lines, "\n  - "))}
}

// warnOfRunning names components that run in another version than their image, and that an apply waits for.
func (r PriorState) warnOfRunning(steps []step.Step) finding.List {
	var lines []string

	for _, op := range steps {
		s, ok := op.(step.UpgradeComponent)
		if running := r.Seen[s.Machine].Running[s.Component]; ok && s.From == s.Image && running != "" {
			lines = append(lines, fmt.Sprintf("%s of %s runs %s, and its image is %s", s.Component, s.Machine, running, s.Image))
		}
	}

	if len(lines) == 0 {
		return nil
	}

	if more := len(lines) - finding.MostSteps; more > 0 {
		lines = append(lines[:finding.MostSteps], fmt.Sprintf("%d more", more))
	}

	return finding.List{finding.Warn("Kubernetes runs otherwise than its images say",
		"The apply waits until these run with the images that their machines have, and says what keeps them from it.\n  - "+
			strings.Join(lines, "\n  - "))}
}

// warnOfNotPassed names releases of kubernetes_upgrade_via that are not on the upgrade path.
func (p Set) warnOfNotPassed(way KubernetesPath) finding.List {
	var diags finding.List

	hops := way.hops()
	if len(hops) == 0 {
		return nil
	}

	for i, v := range p.Changes.KubernetesVia {
		if !slices.ContainsFunc(hops, func(hop machineconfig.KubernetesVersion) bool { return hop.EQ(v.Version) }) {
			diags.Append(finding.Questionable(finding.Root("kubernetes_upgrade_via").AtListIndex(i), "kubernetes_upgrade_via",
				"found "+v.String(),
				fmt.Sprintf("The upgrade from %s to %s does not pass it", way.Lowest, way.To),
				"Leave it out, or name one of a minor version in between"))
		}
	}

	return diags
}
