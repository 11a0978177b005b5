package image

import (
	"fmt"
	"regexp"
	"strings"
)

// Reference is an image reference taken apart. It is comparable.
type Reference struct {
	// Registry is the host, with its port when it has one; "docker.io" when the reference names none.
	Registry string
	// Repository is the path of the image within its registry.
	Repository string
	// Tag and Digest ("sha256:…") are empty when the reference does not have them.
	Tag, Digest string
}

var (
	registryPattern   = regexp.MustCompile(`^(\[[0-9a-fA-F:]+\]|[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?)(:[0-9]{1,5})?$`)
	repositoryPattern = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	tagPattern        = regexp.MustCompile(`^\w[\w.-]{0,127}$`)
	digestPattern     = regexp.MustCompile(`^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$`)
)

// ParseReference takes an image reference apart. A colon before the last slash belongs to the port of the
// registry, not to a tag; a reference may have a tag, a digest, both or neither.
func ParseReference(reference string) (Reference, error) {
	rest, digest, hasDigest := strings.Cut(reference, "@")
	if hasDigest && !digestPattern.MatchString(digest) {
		return Reference{}, fmt.Errorf("%w %q: %q is not a digest such as sha256:<64 hex digits>", ErrInvalidReference,
			reference, digest)
	}

	parsed := Reference{Registry: "docker.io", Digest: digest}

	if colon := strings.LastIndex(rest, ":"); colon > strings.LastIndex(rest, "/") {
		parsed.Tag = rest[colon+1:]
		rest = rest[:colon]

		if !tagPattern.MatchString(parsed.Tag) {
			return Reference{}, fmt.Errorf("%w %q: %q is not a tag", ErrInvalidReference, reference, parsed.Tag)
		}
	}

	// The first segment is a registry only when it cannot be part of a name on Docker Hub.
	if first, path, ok := strings.Cut(rest, "/"); ok && (strings.ContainsAny(first, ".:[") || first == "localhost") {
		parsed.Registry, rest = first, path
	}

	parsed.Repository = rest

	if !registryPattern.MatchString(parsed.Registry) {
		return Reference{}, fmt.Errorf("%w %q: %q is not a registry host", ErrInvalidReference, reference, parsed.Registry)
	}

	if !repositoryPattern.MatchString(parsed.Repository) {
		return Reference{}, fmt.Errorf("%w %q: %q is not an image name", ErrInvalidReference, reference, parsed.Repository)
	}

	return parsed, nil
}

// String puts the reference together again.
func (r Reference) String() string {
	s := r.Registry + "/" + r.Repository
	if r.Tag != "" {
		s += ":" + r.Tag
	}

	if r.Digest != "" {
		s += "@" + r.Digest
	}

	return s
}

// WithTag is the same image at another version. A digest is dropped, since it names one version only.
func (r Reference) WithTag(tag string) Reference {
	r.Tag, r.Digest = tag, ""

	return r
}

// Installer recognizes the references that Installer.Reference writes and those of older factory paths
// (<registry>/installer/<schematic>:<version>), at any registry, so mirrors of the factory work. ok is false for
// all others, which may be installers of unknown content.
func (r Reference) Installer() (installer Installer, ok bool) {
	if r.Tag == "" || checkVersion(r.Tag) != nil {
		return Installer{}, false
	}

	if r.Registry+"/"+r.Repository == plainInstaller {
		return Installer{Version: r.Tag, Platform: DefaultPlatform}, true
	}

	path := strings.Split(r.Repository, "/")
	if len(path) < 2 || CheckSchematic(path[len(path)-1]) != nil {
		return Installer{}, false
	}

	name, secureBoot := strings.CutSuffix(path[len(path)-2], "-secureboot")

	platform, ok := strings.CutSuffix(name, "-installer")
	if !ok {
		if name != "installer" {
			return Installer{}, false
		}

		platform = DefaultPlatform
	}

	installer = Installer{Version: r.Tag, Schematic: path[len(path)-1], Platform: platform, SecureBoot: secureBoot}
	if r.Registry != FactoryRegistry || len(path) > 2 {
		installer.Registry = strings.Join(append([]string{r.Registry}, path[:len(path)-2]...), "/")
	}

	return installer, true
}
