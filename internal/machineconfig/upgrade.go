package machineconfig

import (
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"

	"github.com/talosop/terraform-provider-talosop/internal/talosversion"
)

// Releases are the releases that machines pass on their way to a version when they come from further away than the
// minor version beside it, lowest first: one for every minor version that there is, but its own. Those that are
// chosen go before the newest patch this build knows, because what is wrong with an upgrade path is put right in its
// patch releases; of a minor version it does not know, the first release is
// passed, of which nothing is known but that it must exist.
func Releases(to TalosVersion, chosen []TalosVersion) []TalosVersion {
	var releases []TalosVersion

	for minor := minTalosMinor; minor <= max(to.Minor, maxTalosMinor); minor++ {
		if minor == to.Minor {
			continue
		}

		release := TalosVersion{semver.Version{Major: 1, Minor: minor, Patch: latestPatch(minor)}}

		if i := slices.IndexFunc(chosen, func(v TalosVersion) bool { return v.Minor == minor }); i >= 0 {
			release = chosen[i]
		}

		releases = append(releases, release)
	}

	return releases
}

func latestPatch(minor uint64) uint64 {
	if known := talosversion.OfMinor(minor); known.Minor == minor {
		return known.Patch
	}

	return 0
}

// Path lists the versions that a machine passes to get from one version to another, the last one included, as
// Talos is upgraded from one minor version to the next: a release of each minor in between, and then to. Nothing
// when it is there already.
func Path(from, to TalosVersion, releases []TalosVersion) []TalosVersion {
	if from.EQ(to.Version) {
		return nil
	}

	var path []TalosVersion

	for _, r := range releases {
		if between(r.Minor, from.Minor, to.Minor) {
			path = append(path, r)
		}
	}

	if to.Minor < from.Minor {
		slices.Reverse(path)
	}

	return append(path, to)
}

func between(minor, from, to uint64) bool {
	return minor > min(from, to) && minor < max(from, to)
}

// ReadTalosVersion reads a version that a machine reported, which may be older or newer than those that can be
// configured. ok is false for what is no version.
func ReadTalosVersion(s string) (v TalosVersion, ok bool) {
	parsed, err := semver.ParseTolerant(s)

	return TalosVersion{parsed}, err == nil
}

// CheckUpgrade says why the installer of one version of Talos refuses to replace another, older or newer: the
// compatibility table of Talos (machinery 1.14), which the installer asks before it writes anything. Nothing is said
// about a target that is not Known.
func CheckUpgrade(from, to TalosVersion) error {
	if !to.Known() {
		return nil
	}

	host, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: from.String()})
	if err != nil {
		return fmt.Errorf("read Talos version %s: %w", from, err)
	}

	target, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: to.String()})
	if err != nil {
		return fmt.Errorf("read Talos version %s: %w", to, err)
	}

	return target.UpgradeableFrom(host)
}

// LosesEtcd reports whether a control plane that goes back to an older Talos would be left with data of etcd that the
// older one's etcd does not read: the one of another minor version (an etcd is downgraded by a call of its own,
// EtcdDowngradeEnable, before that).
func LosesEtcd(from, to TalosVersion) bool {
	return talosversion.OfMinor(to.Minor).EtcdMinor < talosversion.OfMinor(from.Minor).EtcdMinor
}
