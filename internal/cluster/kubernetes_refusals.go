package cluster

import (
	"fmt"
	"slices"
)

// refuseKubernetes names what no upgrade of Kubernetes does: go back a minor version, and
// pass minor versions without a release, or without an image, for each of them.
func refuseKubernetes(want Spec, have Snapshot, d *Decision) {
	u := kubernetesUpgrade{want: want, have: have, target: want.Kubernetes.Version, final: true}
	if u.target == "" {
		return
	}

	lowest, highest, allowed, silent := "", "", true, false

	var (
		unknown  Machine
		nameless Component
	)

	for _, m := range want.all() {
		// One that this run rebooted may be the one that is furthest behind, and nothing of
		// Kubernetes is done before it is back.
		silent = silent || have.Machines[m.Name].RebootedFrom != "" && have.Machines[m.Name].Access != Member

		for _, c := range u.order() {
			version, known := u.version(m, c)
			if !known && u.changes(m, c) {
				unknown, nameless = m, c
			}

			if !known || u.image(m, c) == "" {
				continue
			}

			allowed = allowed && m.AllowDowngrade

			if lowest == "" || older(version, lowest) {
				lowest = version
			}

			if older(highest, version) || highest == "" {
				highest = version
			}

			if reason := u.gap(m, c, version); reason != "" && u.changes(m, c) {
				d.refuse(m.Name, reason, fmt.Sprintf("Upgrade Kubernetes one minor version at a time, or name releases in between; %s stays at %s until then", c, version))

				return
			}
		}
	}

	switch {
	case nameless != "" && minorsBetween(lowest, u.target) > 1:
		d.refuse(unknown.Name, fmt.Sprintf("Kubernetes %s runs, and the image of %s, %s, does not say what it has to pass on the way to %s",
			lowest, nameless, have.Machines[unknown.Name].Images[nameless], u.target),
			"Upgrade Kubernetes one minor version at a time, or name the image by its version")
	case minorsBetween(u.target, highest) > 1:
		// No upgrade that is under way leaves more than one minor version to take back.
		d.refuse("", fmt.Sprintf("Kubernetes %s runs, and %s is wanted: Kubernetes cannot go back to an older minor version", highest, u.target),
			"Set kubernetes_version to "+highest+" or later")
	case !older(u.target, lowest) || silent:
	case minorsBetween(u.target, lowest) > 0:
		d.refuse("", fmt.Sprintf("Kubernetes %s runs, and %s is wanted: Kubernetes cannot go back to an older minor version", lowest, u.target),
			"Set kubernetes_version to "+highest+" or later")
	case !allowed:
		d.refuse("", fmt.Sprintf("Kubernetes %s runs, and %s is older", lowest, u.target),
			"Set kubernetes_version to "+highest+" or later, or allow_downgrade to go back to an older patch release")
	}
}

// gap says why a component cannot pass each minor version on its way: there is no release of
// one, or its image cannot be named at one.
func (u kubernetesUpgrade) gap(m Machine, c Component, version string) string {
	for at := version; minorsBetween(at, u.target) > 1; {
		i := slices.IndexFunc(u.want.Kubernetes.Via, func(via string) bool { return minorsBetween(at, via) == 1 })
		if i < 0 {
			return fmt.Sprintf("%s runs %s, and no release between it and %s is known that is one minor version later than %s", c, version, u.target, at)
		}

		via := u.want.Kubernetes.Via[i]
		if got, ok := ImageVersion(ImageAt(m.Images[c], u.target, via)); !ok || got != via {
			return fmt.Sprintf("%s runs %s, and its image %s does not say what it is called at %s, which it has to pass on its way", c, version, m.Images[c], via)
		}

		at = via
	}

	return ""
}
