// Package talosversion is the one table of what releases of Talos can do, as far as talosop needs it. Requests and
// decisions follow from the version that the machine runs, and not from the machinery library of this build. Pure.
package talosversion

import (
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
)

// Release is what all releases of a minor version of Talos 1 have in common.
type Release struct {
	// Minor is the number after "v1.", Patch the newest release of it when this build was made.
	Minor, Patch uint64
	// EtcdMinor is the minor version of etcd 3 that control planes run unless another image is configured
	// (DefaultEtcdVersion of the machinery of that release). No etcd reads the data of a newer minor version.
	EtcdMinor uint64
	// Stepwise is whether an upgrade pulls, installs and boots with separate calls, LifecycleService and
	// ImageService (since Talos 1.13).
	Stepwise bool
	// NeverReboots is whether ApplyConfiguration neither reboots nor refuses a change that needs a reboot, so only
	// the client knows that one is missing (since Talos 1.14, machined/internal/server/v1alpha1,
	// ApplyConfiguration).
	NeverReboots bool
	// OwnVolumes is whether the data of etcd and the directories of containerd, kubelet and logs may be separate
	// partitions, which a reset wipes only when it names them (since Talos 1.14,
	// block/internal/volumes/volumeconfig).
	OwnVolumes bool
	// PullsOnce is whether a machine tries a registry a single time, and says so at once when it does not answer (since
	// Talos 1.14, internal/pkg/containers/image/pull.go; before, Talos itself tried again).
	PullsOnce bool
	// InstallsUnattended is whether an installation may be a document of the configuration, which Talos carries
	// out in stage booting (since Talos 1.14, runtime/unattended_install.go).
	InstallsUnattended bool
}

// releases are the minor versions that this build knows, oldest first. Newest patches: the changelogs of the release
// branches of siderolabs/talos in September 2026.
var releases = []Release{
	{Minor: 10, Patch: 9, EtcdMinor: 5},
	{Minor: 11, Patch: 6, EtcdMinor: 6},
	{Minor: 12, Patch: 12, EtcdMinor: 6},
	{Minor: 13, Patch: 9, EtcdMinor: 6, Stepwise: true},
	{
		Minor: 14, Patch: 1, EtcdMinor: 7, Stepwise: true, NeverReboots: true, OwnVolumes: true, PullsOnce: true,
		InstallsUnattended: true,
	},
}

// Oldest and Newest are the oldest and the newest known release.
func Oldest() Release { return releases[0] }

// Newest is the last release that is known.
func Newest() Release { return releases[len(releases)-1] }

// String is the minor version, such as "v1.13".
func (r Release) String() string { return fmt.Sprintf("v1.%d", r.Minor) }

// Known are all minor versions that are known, oldest first.
func Known() []Release { return slices.Clone(releases) }

// OfMinor is what Talos 1.<minor> can do. A version newer than all known ones counts as the newest of them, and an
// older one as the oldest.
func OfMinor(minor uint64) Release {
	for _, r := range slices.Backward(releases) {
		if r.Minor <= minor {
			return r
		}
	}

	return Oldest()
}

// Of is what a machine can do that reports a version, with or without a leading v. Pre-releases belong to the minor
// version that they come before. A version that cannot be read, such as none, is taken for the oldest: it has nothing
// that may be relied upon.
func Of(version string) Release {
	parsed, err := semver.NewVersion(version)

	switch {
	case err != nil || parsed.Major() < 1:
		return Oldest()
	case parsed.Major() > 1:
		return Newest()
	default:
		return OfMinor(parsed.Minor())
	}
}
