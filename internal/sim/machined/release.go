package machined

import (
	"github.com/blang/semver/v4"
)

// KernelBoot is the boot id that the machine shows: of its own kernel, or of the one that its container shares
// with all others of its host, which no restart changes.
func (b *Boot) KernelBoot() string {
	if b.Platform != Container {
		return b.ID
	}

	return b.kernel
}

// Before113 reports whether the machine runs a release with the old maintenance server.
func (b *Boot) Before113() bool { return !b.Since(1, 13) }

// Since reports whether the machine runs at least a release (pre-releases of it included).
// A version that cannot be read counts as the newest.
func (b *Boot) Since(major, minor uint64) bool {
	v, err := semver.ParseTolerant(b.TalosVersion())

	return err != nil || v.Major > major || v.Major == major && v.Minor >= minor
}

// SincePatch is since with a patch release.
func (b *Boot) SincePatch(major, minor, patch uint64) bool {
	v, err := semver.ParseTolerant(b.TalosVersion())

	return err != nil || v.GE(semver.Version{Major: major, Minor: minor, Patch: patch})
}

// TalosVersion is the release that is running.
func (b *Boot) TalosVersion() string { return b.System.Version }
