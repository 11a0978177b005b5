package sim

import (
	"errors"
	"path"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
)

// SetImage says what the registries have under a reference. Machines that pulled the
// image before keep it, but see its new content, as if it had been so all along.
func (s *Simulator) SetImage(reference string, img images.Image) error {
	return s.registries.Set(reference, img)
}

// TalosImage is what the registries have under the reference of a container's image: what SetImage says, with the
// release of the tag if the image's name ends with "talos". A registry that fails is ErrNoRegistry, and everything else
// ErrNoImage.
func (s *Simulator) TalosImage(reference string) (images.Image, error) {
	ref, err := image.ParseReference(reference)
	if err != nil {
		return images.Image{}, err
	}

	_, _, img := s.registries.Resolve(ref)

	switch {
	case img.Unavailable:
		return img, ErrNoRegistry
	case img.Missing:
		return img, ErrNoImage
	case img.Version != "":
		return img, nil
	}

	version, isVersion := strings.CutPrefix(ref.Tag, "v")
	if _, err := semver.Parse(version); err != nil || !isVersion || path.Base(ref.Repository) != "talos" {
		return img, ErrNoImage
	}

	img.Version = ref.Tag

	return img, nil
}

// The reasons why a container's image is not pulled.
var (
	ErrNoImage    = errors.New("not found")
	ErrNoRegistry = errors.New("unexpected status from HEAD request: 503 Service Unavailable")
)
