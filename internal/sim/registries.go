package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/blang/semver/v4"

	"github.com/talosop/terraform-provider-talosop/internal/image"
)

// Image is what the registries of the site have under a reference. The zero value is
// what they have under every reference that SetImage was never called for: an image
// that exists and, if its reference reads like an installer's, installs the version of
// its tag with the schematic of its path.
type Image struct {
	// Missing says that no registry has the image.
	Missing bool
	// Unavailable says that the registry answers with an error instead of the image.
	Unavailable bool
	// InstallFails lets the installer exit with an error. Nothing on the disk changes.
	InstallFails bool
	// BootFails lets the installation succeed and every boot of what it installed
	// fail, so that Talos goes back to what ran before (see Machine.Panic).
	BootFails bool
	// Version and Schematic replace what the reference says.
	Version, Schematic string
}

// SetImage says what the registries have under a reference. Machines that pulled the
// image before keep it, but see its new content, as if it had been so all along.
func (s *Simulator) SetImage(reference string, img Image) error {
	ref, err := image.ParseReference(reference)
	if err != nil {
		return err
	}

	s.registries.mu.Lock()
	defer s.registries.mu.Unlock()

	s.registries.images[contentKey(ref)] = img

	return nil
}

// registries are every container registry that machines can reach.
type registries struct {
	mu      sync.Mutex
	images  map[string]Image  // by content key
	digests map[string]string // content keys by the digests that were handed out
}

func newRegistries() *registries {
	return &registries{images: map[string]Image{}, digests: map[string]string{}}
}

// contentKey names the content of a reference: its tag where it has one, since that
// is what tells the version, else its digest.
func contentKey(ref image.Reference) string {
	if ref.Tag != "" {
		ref.Digest = ""
	}

	return ref.String()
}

// resolve finds an image. A digest without a tag is known only if the site gave it out
// or SetImage named it.
func (r *registries) resolve(ref image.Reference) (key, digest string, img Image) {
	r.mu.Lock()
	defer r.mu.Unlock()

	key, digest = contentKey(ref), ref.Digest

	if digest == "" {
		if ref.Tag == "" {
			key = ref.WithTag("latest").String()
		}

		sum := sha256.Sum256([]byte(key))
		digest = "sha256:" + hex.EncodeToString(sum[:])
	} else if known, ok := r.digests[digest]; ok && ref.Tag == "" {
		key = known
	}

	img, set := r.images[key]
	if !set && key == ref.String() && ref.Tag == "" {
		img.Missing = true
	}

	if !img.Missing {
		r.digests[digest] = key
	}

	return key, digest, img
}

// content is what an image of a key is now.
func (r *registries) content(key string) Image {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.images[key]
}

// installs is the system an image installs; ok is false for one that is no installer.
func (r *registries) installs(key string) (sys system, ok bool) {
	img := r.content(key)
	sys = system{version: img.Version, schematic: img.Schematic, bootFails: img.BootFails}

	ref, err := image.ParseReference(key)
	if err != nil {
		return system{}, false
	}

	elements := strings.Split(ref.Repository, "/")

	if last := path.Base(ref.Repository); sys.schematic == "" && image.CheckSchematic(last) == nil {
		sys.schematic = last
	}

	if sys.version != "" {
		return sys, true
	}

	if _, err := semver.Parse(strings.TrimPrefix(ref.Tag, "v")); err != nil || !slices.ContainsFunc(elements, isInstaller) {
		return system{}, false
	}

	sys.version = ref.Tag

	return sys, true
}

// isInstaller recognises the name of an installer image at any registry: "installer",
// "metal-installer", "metal-installer-secureboot", "installer-base".
func isInstaller(element string) bool {
	return slices.Contains(strings.Split(element, "-"), "installer")
}

// system is one Talos that a machine can run: what an installer puts on the disk as a
// boot entry, or what the machine was booted from before it is installed.
type system struct {
	version   string
	schematic string
	bootFails bool
}

// label is the boot entry's name as Talos writes it to META (sd-boot: its UKI file).
func (s system) label() string { return fmt.Sprintf("Talos-%s.efi", s.version) }
