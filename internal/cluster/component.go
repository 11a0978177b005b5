package cluster

import (
	"strconv"
	"strings"
)

// Component is a part of Kubernetes whose image a machine configuration names. The values
// are the names of the images and, for static pods, those of the pods.
type Component string

// The components, in the order in which an upgrade of Kubernetes reaches them.
const (
	KubeAPIServer         Component = "kube-apiserver"
	KubeControllerManager Component = "kube-controller-manager"
	KubeScheduler         Component = "kube-scheduler"
	// KubeProxy runs as a DaemonSet. The configuration of the control planes names its
	// image, and the bootstrap manifests bring it to the nodes.
	KubeProxy Component = "kube-proxy"
	Kubelet   Component = "kubelet"
)

// StaticPod reports whether the component runs as a pod that Talos gives the kubelet.
func (c Component) StaticPod() bool {
	return c == KubeAPIServer || c == KubeControllerManager || c == KubeScheduler
}

// Images are the images of Kubernetes in a machine configuration, by component: the
// kubelet's on every machine, and on control planes those of all components that are not
// disabled.
type Images map[Component]string

// At are the images of another version of Kubernetes, where version is the one that these
// name; see [ImageAt].
func (i Images) At(version, other string) Images {
	if i == nil {
		return nil
	}

	out := make(Images, len(i))
	for c, image := range i {
		out[c] = ImageAt(image, version, other)
	}

	return out
}

// ImageAt is an image of one version of Kubernetes with the tag that it has at another: the
// version at the beginning of its tag is exchanged, what follows it (-slim, -fat) stays. An
// image whose tag is not that version, or that is pinned by a digest, stays what it is,
// since the user chose it whatever the version.
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
	image, _, _ = strings.Cut(image, "@")

	_, tag, ok := cutTag(image)
	if !ok {
		return "", false
	}

	return ReleaseOf(tag)
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
