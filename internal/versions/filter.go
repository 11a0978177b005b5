package versions

import (
	"regexp"
	"slices"
	"strings"
)

// Filter chooses releases. Empty fields choose all.
type Filter struct {
	// Minor is the only minor version, such as "v1.14".
	Minor string
	// UpTo is the newest version, such as "v1.14.1", or the newest minor version with all its patches.
	UpTo string
	// NewerThan is a version that comes before all.
	NewerThan string
	// Prereleases includes alpha, beta and release candidates.
	Prereleases bool
}

var (
	releasePattern = regexp.MustCompile(`^v\d{1,4}\.\d{1,4}\.\d{1,4}(-(alpha|beta|rc)\.\d{1,4})?$`)
	minorPattern   = regexp.MustCompile(`^v\d{1,4}\.\d{1,4}$`)
	minorStart     = regexp.MustCompile(`^v\d+\.\d+`)
)

// IsRelease reports whether a text is a release or a pre-release of Talos or Kubernetes, such as "v1.14.0-rc.0".
func IsRelease(text string) bool { return releasePattern.MatchString(text) }

// IsMinor reports whether a text is a minor version, such as "v1.14".
func IsMinor(text string) bool { return minorPattern.MatchString(text) }

// MinorOf is the minor version of a release: v1.14 of v1.14.1.
func MinorOf(release string) string { return minorStart.FindString(release) }

// Choose sorts the chosen releases among tags, oldest first. Tags of other forms, such as those of signatures and
// variants of images, are no releases.
func (f Filter) Choose(tags []string) []string {
	chosen := []string{}

	for _, tag := range tags {
		if IsRelease(tag) && f.takes(tag) {
			chosen = append(chosen, tag)
		}
	}

	slices.SortFunc(chosen, func(a, b string) int {
		switch {
		case Older(a, b):
			return -1
		case Older(b, a):
			return 1
		default:
			return 0
		}
	})

	return slices.Compact(chosen)
}

func (f Filter) takes(release string) bool {
	minor := MinorOf(release)

	return (f.Prereleases || !strings.Contains(release, "-")) &&
		(f.Minor == "" || minor == f.Minor) &&
		(f.UpTo == "" || minor == f.UpTo || !Older(f.UpTo, release)) &&
		(f.NewerThan == "" || Older(f.NewerThan, release))
}

// NewestPatches are the newest of some sorted releases, by their minor versions.
func NewestPatches(sorted []string) map[string]string {
	newest := map[string]string{}
	for _, release := range sorted {
		newest[MinorOf(release)] = release
	}

	return newest
}
