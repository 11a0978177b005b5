// Package images has the images in the container registries of a simulated site, and those that a machine has
// pulled.
package images

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
	// Missing means that no registry has the image.
	Missing bool
	// Unavailable says that the registry answers with an error instead of the image.
	Unavailable bool
	// InstallFails lets the installer exit with an error. Nothing on the disk changes.
	InstallFails bool
	// BootFails lets the installation succeed and every boot of the installed system fail, so that Talos rolls
	// back to the previous one (see Machine.Panic).
	BootFails bool
	// BootHangs lets the installation succeed, and every boot of the installed system stop before META is read: no
	// Talos answers, and nothing rolls back (see Machine.ChooseOtherEntry).
	BootHangs bool
	// Version and Schematic override those of the reference.
	Version, Schematic string
}

// Registries are every container registry that machines can reach.
type Registries struct {
	mu      sync.Mutex
	images  map[string]Image  // by content key
	digests map[string]string // content keys by the digests that were handed out
}

// NewRegistries makes registries that have every image that a reference can name.
func NewRegistries() *Registries {
	return &Registries{images: map[string]Image{}, digests: map[string]string{}}
}

// Set stores an image under a reference.
func (r *Registries) Set(reference string, img Image) error {
	ref, err := image.ParseReference(reference)
	if err != nil {
		return err
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	r.images[contentKey(ref)] = img

	return nil
}

// contentKey names the content of a reference: its tag where it has one, since that shows the version, else its
// digest.
func contentKey(ref image.Reference) string {
	if ref.Tag != "" {
		ref.Digest = ""
	}

	return ref.String()
}

// Resolve finds an image. A digest without a tag is known only if the site gave it out
// or SetImage named it.
func (r *Registries) Resolve(ref image.Reference) (key, digest string, img Image) {
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

// Content is the present image of a key.
func (r *Registries) Content(key string) Image {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.images[key]
}

// Installs is the system an image installs; ok is false for one that is no installer.
func (r *Registries) Installs(key string) (sys System, ok bool) {
	img := r.Content(key)
	sys = System{Version: img.Version, Schematic: img.Schematic, BootFails: img.BootFails,
		BootHangs: img.BootHangs}

	ref, err := image.ParseReference(key)
	if err != nil {
		return System{}, false
	}

	elements := strings.Split(ref.Repository, "/")

	if last := path.Base(ref.Repository); sys.Schematic == "" && image.CheckSchematic(last) == nil {
		sys.Schematic = last
	}

	if sys.Version != "" {
		return sys, true
	}

	if _, err := semver.Parse(strings.TrimPrefix(ref.Tag, "v")); err != nil ||
		!slices.ContainsFunc(elements, isInstaller) {
		return System{}, false
	}

	sys.Version = ref.Tag

	return sys, true
}

// isInstaller recognizes the name of an installer image at any registry: "installer", "metal-installer",
// "metal-installer-secureboot", "installer-base".
func isInstaller(element string) bool {
	return slices.Contains(strings.Split(element, "-"), "installer")
}

// System is one Talos that a machine can run: what an installer puts on the disk as a
// boot entry, or what the machine was booted from before it is installed.
type System struct {
	Version   string
	Schematic string
	BootFails bool
	BootHangs bool
}

// Label is the boot entry's name as Talos writes it to META (sd-boot: its UKI file).
func (s System) Label() string { return fmt.Sprintf("Talos-%s.efi", s.Version) }
