package cluster

import (
	"fmt"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// upgradeOf is the next upgrade of a running machine: to another version, minor by minor, to another schematic, or
// from another image. An unknown version is not compared.
func upgradeOf(have Snapshot, m Machine, p Policy) (step.Upgrade, bool) {
	s := have.Machines[m.Name]

	release, ok := nextRelease(m, s.TalosVersion)
	if ok && replaceable(m, s) {
		return replacement(have, m, release, p), true
	}

	if s.Access != step.Member || s.TalosVersion == "" || !ok || outgrown(m, s) || onMedium(m, s) {
		return step.Upgrade{}, false
	}

	same := runs(s, release.Version, m.Schematic)

	switch {
	case same && outdated(m, s):
		return replacement(have, m, release, p), true
	case same && !reinstalls(m, s):
		return step.Upgrade{}, false
	}

	return step.Upgrade{
		Machine: m.Name, Role: m.Role, From: s.TalosVersion, To: release.Version, Schematic: m.Schematic,
		Installer: release.Installer, Reinstall: same, Container: m.Container, Loses: m.Ephemeral,
		Extensions: extensionChange(s, m), Evacuation: EvacuationOf(have, m, p),
	}, true
}

// extensionChange lists the system extensions that come and go with an upgrade. The same schematic has the same ones,
// whatever their names are in the running image.
func extensionChange(s step.MachineState, m Machine) string {
	if m.Extensions == nil || m.Schematic != "" && m.Schematic == s.Schematic {
		return ""
	}

	return step.ExtensionChange(s.Extensions, m.Extensions)
}

// onMedium is true for a machine that runs from its boot medium: it has the Talos of the medium, and the installation
// brings the wanted one. Talos refuses to upgrade it ("machine is not installed", Talos 1.13,
// machined/internal/server/v1alpha1). A machine that was never recorded as a member and has not booted completely may
// be one of them.
func onMedium(m Machine, s step.MachineState) bool {
	return s.Uninstalled || s.Stage == step.StageInstalling ||
		m.Platform().Installed && !m.InService && s.Stage == step.StageBooting
}

// reinstalls is true for a machine that runs the wanted Talos from another image, until this run upgraded it:
// machines do not report their image.
func reinstalls(m Machine, s step.MachineState) bool {
	return m.Reinstall && s.TalosVersion == m.TalosVersion && s.Upgraded.Version != m.TalosVersion
}

// findHops finds the lowest version that any machine must reach next, and the highest one among downgrades. A machine
// that was upgraded and has not worked since has not finished its hop. A silent machine may still be at the beginning
// of its path, unless this run upgraded it.
func (r *rollout) findHops() {
	for _, m := range r.want.all() {
		s := r.have.Machines[m.Name]

		if upgrade, ok := r.upgrades[m.Name]; ok {
			first, until := &r.hops, m.Name+" runs "+upgrade.To
			if m.Locked {
				first, until = &r.locked, isLocked(m.Name)+" and runs "+upgrade.From
			}

			first.reach(upgrade.To, versions.Older(upgrade.To, upgrade.From), until)
		}

		if done := s.Upgraded.Version; done != "" {
			if reason := NotReady(r.want, r.have, m); reason != "" {
				until := m.Name + " works with " + done + Because(reason)
				r.hops.reach(done, false, until)
				r.hops.reach(done, true, until)
			}
		}

		// The cause of this reboot is unknown: an earlier run may have begun it.
		if release, ok := nextRelease(m, s.TalosVersion); s.Stage == step.StageBooting && ok &&
			release.Version != s.TalosVersion && r.have.Time.Sub(s.Since) <= r.policy.BootTimeout {
			r.hops.reach(s.TalosVersion, downgrades(m, s), m.Name+" works with "+s.TalosVersion)
		}

		if _, upgrades := r.upgrades[m.Name]; upgrades || s.Answers() || s.Current || s.Upgraded.Version != "" {
			continue
		}

		for _, via := range m.Via {
			if passed(m, s, via) {
				continue
			}

			r.hops.reach(via.Version, versions.Older(m.TalosVersion, via.Version),
				m.Name+" answers, which may not run "+via.Version+" yet")
		}
	}
}

// reach records a version that a machine must reach.
func (h *hops) reach(version string, down bool, until string) {
	switch {
	case down && (h.down.target == "" || versions.MinorsBetween(h.down.target, version) > 0):
		h.down = hop{version, until}
	case !down && (h.up.target == "" || versions.MinorsBetween(h.up.target, version) < 0):
		h.up = hop{version, until}
	}
}

// before says what must happen before an upgrade, because other machines are one minor version behind; empty for
// nothing.
func (r rollout) before(upgrade step.Upgrade) string {
	if until := r.hops.before(upgrade); until != "" {
		return fmt.Sprintf("goes on to %s once %s", upgrade.To, until)
	}

	return ""
}

// before says until what an upgrade is ahead of others.
func (h hops) before(upgrade step.Upgrade) string {
	first, ahead := h.up, versions.MinorsBetween(h.up.target, upgrade.To)
	if versions.Older(upgrade.To, upgrade.From) {
		first, ahead = h.down, versions.MinorsBetween(upgrade.To, h.down.target)
	}

	// A machine that does not run and is not known to be old waits for no other one.
	if first.target == "" || ahead <= 0 || upgrade.From == upgrade.To || upgrade.From == "" {
		return ""
	}

	return first.until
}

// nextRelease is the next release on a machine's path from a version to the wanted one. Talos supports upgrades to
// the next minor version only, so those in between are passed; ok is false when none of them is known.
func nextRelease(m Machine, from string) (r Release, ok bool) {
	final := Release{Version: m.TalosVersion, Installer: m.Installer}

	if m.TalosVersion == "" || from == "" || from == m.TalosVersion {
		return final, m.TalosVersion != ""
	}

	minors := versions.MinorsBetween(from, m.TalosVersion)
	if minors >= -1 && minors <= 1 {
		return final, true
	}

	step := 1
	if minors < 0 {
		step = -1
	}

	for _, via := range m.Via {
		if versions.MinorsBetween(from, via.Version) == step {
			return via, true
		}
	}

	return Release{}, false
}

// downgrades reports whether the machine wants an older Talos.
func downgrades(m Machine, s step.MachineState) bool {
	return versions.Older(m.TalosVersion, s.TalosVersion)
}

// refuseUpgrades names the upgrades that cannot or must not be made.
func refuseUpgrades(want Spec, have Snapshot, d *Decision) {
	for _, m := range want.upgraded() {
		s := have.Machines[m.Name]
		if s.Access != step.Member || s.TalosVersion == "" || m.TalosVersion == "" || runs(s, m.TalosVersion, m.Schematic) ||
			outgrown(m, s) || onMedium(m, s) {
			continue
		}

		_, known := nextRelease(m, s.TalosVersion)

		switch {
		case RolledBack(s) && NotReady(want, have, m) != "": // awaitRolledBack
		case RolledBack(s) && !m.Platform().Installed:
			d.refuse(m.Name, fmt.Sprintf("its pod was replaced to run %s and runs %s: the image holds another Talos than its "+
				"tag says", described(s.Upgraded.Version, ""), described(s.TalosVersion, "")),
				"No other machine was touched after it. Look at the image that the pod was made with; applying again tries once "+
					"more")
		case RolledBack(s):
			d.refuse(m.Name, fmt.Sprintf("it was upgraded to %s and came back with %s: Talos rolled the upgrade back",
				described(s.Upgraded.Version, s.Upgraded.Schematic), described(s.TalosVersion, s.Schematic)),
				"No other machine was upgraded after it. Look at its console or `talosctl dmesg` for the reason; applying again "+
					"tries once more")
		case s.Platform == PlatformContainer && m.Platform().Installed:
			d.refuse(m.Name, fmt.Sprintf("it runs Talos %s in a container, which cannot be upgraded from within to %s",
				s.TalosVersion, described(m.TalosVersion, m.Schematic)),
				"Start the container from another image, or set talos_version to the one that runs")
		case downgrades(m, s) && !m.AllowDowngrade:
			d.refuse(m.Name, fmt.Sprintf("it runs Talos %s, wanted is the older %s", s.TalosVersion, m.TalosVersion),
				"Set talos_version to the version that runs, or allow_downgrade to go back on purpose")
		case !known:
			d.refuse(m.Name, fmt.Sprintf("it runs Talos %s, and no release is known on the way to %s", s.TalosVersion,
				m.TalosVersion),
				"Talos is upgraded from one minor version to the next: name a release of each one in between in upgrade_via")
		}
	}
}

// PlatformContainer is Talos's name of the platform without a disk.
const PlatformContainer = "container"

// awaitRolledBack waits for the machines that did not return with their new version. The run ends once they work, so
// that their nodes are uncordoned, and begins nothing else before.
func awaitRolledBack(want Spec, have Snapshot, d *Decision) {
	for _, m := range want.upgraded() {
		s := have.Machines[m.Name]
		if s.Access != step.Member || !RolledBack(s) {
			continue
		}

		if reason := NotReady(want, have, m); reason != "" {
			d.hold(m.Name, "came back from the upgrade to %s with %s, and %s", described(s.Upgraded.Version, ""),
				described(s.TalosVersion, ""), reason)
		}
	}
}

// RolledBack is true for a machine that rebooted after this run upgraded it, and does not run the new version.
func RolledBack(s step.MachineState) bool {
	mark := s.Upgraded

	return mark.Version != "" && s.BootID != "" && s.BootID != mark.BootID && !runs(s, mark.Version, mark.Schematic)
}

// hung reports a boot that Talos does not roll back: one that fails before META was read, which has the entry to roll
// back to (Talos 1.14, machined revert.go; seen on Talos 1.13, emulated metal).
func hung(have Snapshot, m Machine, p Policy) string {
	mark, since := have.Machines[m.Name].Upgraded, have.Machines[m.Name].Since
	if mark.Version == "" || mark.Booted || !m.Platform().Installed || have.Time.Sub(since) <= p.BootTimeout {
		return ""
	}

	return fmt.Sprintf(". It was upgraded to %s and does not answer since %s. Talos does not go back by itself when a "+
		"boot hangs before META is read: look at its console, choose the other entry in its boot menu, and apply again",
		described(mark.Version, mark.Schematic), since.UTC().Format(time.RFC3339))
}

func described(version, schematic string) string {
	if schematic == "" {
		return "Talos " + version
	}

	return fmt.Sprintf("Talos %s (schematic %s)", version, step.ShortID(schematic))
}
