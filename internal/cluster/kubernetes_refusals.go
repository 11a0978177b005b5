package cluster

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// refuseKubernetes names what no Kubernetes upgrade does. It does not downgrade a minor version. It passes minor
// versions only with a release and an image for each. It makes no component newer than the API servers.
func refuseKubernetes(want Spec, have Snapshot, p Policy, d *Decision) {
	u := kubernetesUpgrade{want: want, have: have, policy: p, target: want.Kubernetes.Version, final: true}
	if u.target == "" {
		return
	}

	u.refuseGaps(d)
	u.refuseAhead(d)
	u.refuseDowngrade(d)
	u.refuseBeyondLocked(d)
	u.refuseBeyondUnmanaged(d)
}

// refuseGaps refuses paths that cannot take one minor version at a time.
func (u kubernetesUpgrade) refuseGaps(d *Decision) {
	lowest := u.span(func(Machine, kubenames.Component) bool { return true }).lowest

	for _, m := range u.want.all() {
		for _, c := range u.order() {
			if !u.changes(m, c) {
				continue
			}

			version, known := u.version(m, c)

			if reason := u.gap(m, c, version); known && reason != "" {
				d.refuse(m.Name, reason, fmt.Sprintf(
					"Upgrade Kubernetes one minor version at a time, or list the releases in between; %s stays at %s until then",
					c,
					version))

				return
			}

			if !known && versions.MinorsBetween(lowest, u.target) > 1 {
				d.refuse(m.Name, fmt.Sprintf("Kubernetes %s runs, and the image of %s, %s, has no version, so the "+
					"intermediate releases on the way to %s are unknown",
					lowest, c, u.has(m, c), u.target),
					"Upgrade Kubernetes one minor version at a time, or use an image with a version tag")

				return
			}
		}
	}
}

// refuseAhead refuses images that would make a component newer than the API servers of the spec will be, for example
// a patch that pins one of them.
func (u kubernetesUpgrade) refuseAhead(d *Decision) {
	lowest, of := "", ""

	for _, m := range u.want.sorted(step.ControlPlane) {
		version, known := kubenames.ImageVersion(m.Images[kubenames.KubeAPIServer])
		if known && (lowest == "" || versions.Older(version, lowest)) {
			lowest, of = version, m.Name
		}
	}

	for _, m := range u.want.all() {
		for _, c := range kubenames.BehindAPIServer() {
			version, known := kubenames.ImageVersion(m.Images[c])
			if known && versions.MinorsBetween(lowest, version) > 0 && u.changes(m, c) {
				d.refuse(m.Name, fmt.Sprintf("its %s would become %s, newer than the kube-apiserver of %s with %s", c,
					version, of, lowest),
					"Use the same Kubernetes version for both images, or set only kubernetes_version")

				return
			}
		}
	}
}

// span is the lowest and the highest version of components, and whether all of their machines may be downgraded to an
// older patch release.
type span struct {
	lowest, highest string
	allowed         bool
}

// span finds those of the components that count and that change.
func (u kubernetesUpgrade) span(counts func(Machine, kubenames.Component) bool) span {
	s := span{allowed: true}

	for _, m := range u.want.all() {
		for _, c := range u.order() {
			version, known := u.version(m, c)
			if !known || u.image(m, c) == "" || !counts(m, c) {
				continue
			}

			s.allowed = s.allowed && m.AllowDowngrade

			s.lowest = versions.Oldest(s.lowest, version)

			if s.highest == "" || versions.Older(s.highest, version) {
				s.highest = version
			}
		}
	}

	return s
}

// refuseDowngrade refuses to downgrade, except to revert a failed upgrade. While a control plane component still runs
// the older version, the upgrade is unfinished, and what is newer can be reverted. A worker that was left behind does
// not prove that. Without control planes in the spec, its kubelets decide.
func (u kubernetesUpgrade) refuseDowngrade(d *Decision) {
	all := u.span(u.changes)
	base := u.span(func(m Machine, c kubenames.Component) bool {
		return !u.pinned(m, c) && (m.Role == step.ControlPlane || !u.want.OwnsControlPlane())
	})

	switch {
	case versions.MinorsBetween(u.target, all.highest) > 1,
		versions.MinorsBetween(u.target, base.lowest) > 0 && !u.silent():
		// No unfinished upgrade leaves more than one minor version to revert.
		d.refuse("", fmt.Sprintf("cannot downgrade Kubernetes from %s to %s: an older minor version is not supported",
			cmp.Or(all.highest, base.lowest), u.target),
			"Set kubernetes_version to "+cmp.Or(all.highest, base.highest)+" or later")
	case versions.Older(u.target, base.lowest) && !u.silent() && !base.allowed:
		d.refuse("", fmt.Sprintf("cannot downgrade Kubernetes from %s to %s without allow_downgrade",
			base.lowest, u.target),
			"Set kubernetes_version to "+cmp.Or(all.highest, base.highest)+
				" or later, or allow_downgrade = true to downgrade to an older patch release")
	}
}

// pinned reports whether a component is wanted with another version than the cluster's.
func (u kubernetesUpgrade) pinned(m Machine, c kubenames.Component) bool {
	version, known := kubenames.ImageVersion(m.Images[c])

	return !known || version != u.target
}

// silent reports whether a machine that this run rebooted does not answer. It may be the one with the oldest version,
// so Kubernetes does not change before it is back.
func (u kubernetesUpgrade) silent() bool {
	return slices.ContainsFunc(u.want.all(), func(m Machine) bool {
		s := u.have.Machines[m.Name]

		return s.RebootedFrom != "" && s.Access != step.Member
	})
}

// gap says why a component cannot pass each minor version on its path: one has no release, or its image is unknown.
func (u kubernetesUpgrade) gap(m Machine, c kubenames.Component, version string) string {
	for at := version; versions.MinorsBetween(at, u.target) > 1; {
		i := slices.IndexFunc(u.want.Kubernetes.Via, func(via string) bool { return versions.MinorsBetween(at, via) == 1 })
		if i < 0 {
			return fmt.Sprintf("%s runs %s, and the upgrade to %s needs a release that is one minor version later than %s",
				c, version, u.target, at)
		}

		via := u.want.Kubernetes.Via[i]
		if got, ok := kubenames.ImageVersion(kubenames.ImageAt(m.Images[c], u.target, via)); !ok || got != via {
			return fmt.Sprintf("%s runs %s, and the name of its image %s at the intermediate release %s is unknown",
				c, version, m.Images[c], via)
		}

		at = via
	}

	return ""
}
