// Package versions compares versions of Talos and of Kubernetes. It is pure.
package versions

import (
	"errors"
	"strings"

	"github.com/blang/semver/v4"
)

// farApart is the distance of versions with different majors.
const farApart = 1 << 16

// MinorsBetween counts minor versions from one to another; 0 when either is no version
// that can be compared, farApart across major versions.
func MinorsBetween(from, to string) int {
	a, errA := parse(from)
	b, errB := parse(to)

	switch {
	case from == to:
		return 0
	case errA != nil || errB != nil:
		return 0
	case a.Major < b.Major:
		return farApart
	case a.Major > b.Major:
		return -farApart
	default:
		return int(b.Minor) - int(a.Minor) //nolint:gosec // minor versions are small
	}
}

var errNoVersion = errors.New("no version")

// parse reads a version. That of a release is read without detours, since a forecast
// compares those of every machine in every round.
func parse(version string) (semver.Version, error) {
	var (
		numbers [3]uint64
		at      int
		digits  bool // the current number has any
	)

	if version == "" {
		return semver.Version{}, errNoVersion
	}

	for _, c := range strings.TrimPrefix(version, "v") {
		switch {
		case c == '.' && digits && at < len(numbers)-1:
			at++
			digits = false
		case c >= '0' && c <= '9' && numbers[at] < farApart:
			numbers[at] = numbers[at]*10 + uint64(c-'0')
			digits = true
		default:
			return semver.ParseTolerant(version)
		}
	}

	if !digits {
		return semver.ParseTolerant(version)
	}

	return semver.Version{Major: numbers[0], Minor: numbers[1], Patch: numbers[2]}, nil
}

// Older reports whether a version comes before another; false when they cannot be
// compared.
func Older(a, b string) bool {
	va, errA := parse(a)
	vb, errB := parse(b)

	return errA == nil && errB == nil && va.LT(vb)
}

// Oldest is the older one of two versions; an empty one is none.
func Oldest(a, b string) string {
	if a == "" || b != "" && Older(b, a) {
		return b
	}

	return a
}
