package kubenames

import (
	"strconv"
	"strings"
)

// ImageAt is an image of one version of Kubernetes with its tag at another version: it replaces the version at the
// beginning of the tag, and keeps the suffix (-slim, -fat). It keeps an image whose tag is not that version, or
// that is pinned by a digest, since the user chose it for every version.
func ImageAt(image, version, other string) string {
	name, tag, ok := cutTag(image)
	if !ok || !strings.HasPrefix(tag, version) {
		return image
	}

	rest := tag[len(version):]
	if rest != "" && rest[0] != '-' && rest[0] != '+' && rest[0] != '_' {
		return image
	}

	return name + ":" + other + rest
}

// ImageVersion is the release of Kubernetes that an image names by its tag, such as v1.36.3;
// ok is false for tags that name none, such as a date or v1.36, and for digests without a tag.
func ImageVersion(image string) (version string, ok bool) {
	tag, ok := Tag(image)
	if !ok {
		return "", false
	}

	return ReleaseOf(tag)
}

// Tag is the tag of an image, whether it has a digest or not; ok is false for one without a tag.
func Tag(image string) (tag string, ok bool) {
	image, _, _ = strings.Cut(image, "@")
	_, tag, ok = cutTag(image)

	return tag, ok
}

// ReleaseOf is the release of Kubernetes that a version belongs to: v1.36.3 of v1.36.3+fips.1,
// which a component may tell. ok is false for what has not all three numbers.
func ReleaseOf(version string) (release string, ok bool) {
	numbers := strings.TrimPrefix(version, "v")

	if end := strings.IndexAny(numbers, "-+_"); end >= 0 {
		numbers = numbers[:end]
	}

	minor, patch, ok := strings.Cut(strings.TrimPrefix(numbers, "1."), ".")
	if !ok || !strings.HasPrefix(numbers, "1.") || !isNumber(minor) || !isNumber(patch) {
		return "", false
	}

	return "v" + numbers, true
}

// isNumber is true for numbers as versions have them: without leading zeros.
func isNumber(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)

	return err == nil && strconv.FormatUint(n, 10) == text
}

// cutTag splits a reference without a digest; the colon of a registry's port is none of a
// tag.
func cutTag(image string) (name, tag string, ok bool) {
	at := strings.LastIndexByte(image, ':')
	if at < strings.LastIndexByte(image, '/') || at < 0 || strings.ContainsRune(image, '@') {
		return image, "", false
	}

	return image[:at], image[at+1:], true
}
