// Package assets names what an Image Factory makes of a schematic: images to boot and to install from. Pure: it
// does not check whether an image exists.
//
// A table of the machinery library says which platform has which images (platforms, 1.14). The paths are in
// docs/api.md of siderolabs/image-factory (v1.5.0): /image/<schematic>/<version>/<file>, and
// /pxe/<schematic>/<version>/<platform>-<arch> for scripts of iPXE.
package assets

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/siderolabs/talos/pkg/machinery/platforms"

	"github.com/talosop/terraform-provider-talosop/internal/image"
)

const (
	// PublicFactory is the URL of Sidero Labs' public Image Factory.
	PublicFactory = "https://" + image.FactoryRegistry
	// publicPXE serves the scripts of the public one. Others serve them beside their images.
	publicPXE = "https://pxe." + image.FactoryRegistry
	// DefaultArchitecture is that of most machines.
	DefaultArchitecture = platforms.ArchAmd64
)

// Image is the input for an image.
type Image struct {
	// Version is the Talos version with its v, Schematic an id.
	Version, Schematic string
	// Platform is one of the names of Platforms, Architecture amd64 or arm64.
	Platform, Architecture string
	SecureBoot             bool
	// Factory is the URL of an Image Factory; empty for the public one.
	Factory string
}

// Assets are the images. One that the platform does not have is empty.
type Assets struct {
	// Installer is the reference of a container image, all others are URLs.
	Installer                  string
	ISO, DiskImage, UKI        string
	Kernel, Initramfs, Cmdline string
	// PXE is the script of iPXE that boots from the factory.
	PXE string
}

// PartError is the problem of one part of an image.
type PartError struct {
	// Field is "platform", "architecture", "secure_boot", "talos_version" or "factory_url".
	Field string
	// Found is the given value, and Allowed the allowed ones.
	Found, Allowed string
}

// Error is the whole message.
func (m *PartError) Error() string { return m.Field + ": found " + m.Found + "; allowed: " + m.Allowed }

// Platforms are the names of all that there are, in the order of the library: metal first.
func Platforms() []string {
	var names []string
	for _, p := range all() {
		names = append(names, p.Name)
	}

	return names
}

func all() []platforms.Platform {
	return append([]platforms.Platform{platforms.MetalPlatform()}, platforms.CloudPlatforms()...)
}

// Check returns the error of the given parts of an image; empty parts are not known yet.
func (i Image) Check() *PartError {
	if _, err := i.base(); err != nil {
		return &PartError{"factory_url", fmt.Sprintf("%q", i.Factory), "a URL such as " + PublicFactory}
	}

	if i.Architecture != "" && !slices.Contains([]string{platforms.ArchAmd64, platforms.ArchArm64}, i.Architecture) {
		return &PartError{"architecture", fmt.Sprintf("%q", i.Architecture), "amd64 or arm64"}
	}

	at := slices.IndexFunc(all(), func(p platforms.Platform) bool { return p.Name == i.Platform })
	if i.Platform == "" || at < 0 {
		if i.Platform == "" {
			return nil
		}

		return &PartError{"platform", fmt.Sprintf("%q", i.Platform), strings.Join(Platforms(), ", ")}
	}

	platform := all()[at]

	switch version, err := semver.ParseTolerant(i.Version); {
	case i.Architecture != "" && !slices.Contains(platform.Architectures, i.Architecture):
		return &PartError{"architecture", fmt.Sprintf("%q", i.Architecture),
			strings.Join(platform.Architectures, " or ") + " on " + platform.Name}
	case i.SecureBoot && !platform.SecureBootSupported:
		return &PartError{"secure_boot", "true", "false on " + platform.Name + ", which has no signed images"}
	case i.Version != "" && err == nil && version.LT(platform.MinVersion):
		return &PartError{"talos_version", i.Version, "v" + platform.MinVersion.String() + " or newer on " + platform.Name}
	}

	return nil
}

// Assets names the images. Version and schematic have to be right.
func (i Image) Assets() (Assets, error) {
	if wrong := i.Check(); wrong != nil {
		return Assets{}, wrong
	}

	base, err := i.base()
	if err != nil {
		return Assets{}, err
	}

	at := slices.IndexFunc(all(), func(p platforms.Platform) bool { return p.Name == i.Platform })
	platform, arch := all()[at], i.Architecture
	file := func(name string) string { return base.JoinPath("image", i.Schematic, i.Version, name).String() }
	chosen := func(plain, signed func(string) string) string {
		if i.SecureBoot {
			return signed(arch)
		}

		return plain(arch)
	}

	found := Assets{
		Kernel: file(platform.KernelPath(arch)), Initramfs: file(platform.InitramfsPath(arch)),
		Cmdline: file("cmdline-" + chosen(platform.PXEScriptPath, platform.SecureBootPXEScriptPath)),
		UKI:     file(chosen(platform.UKIPath, platform.SecureBootUKIPath)),
	}

	for _, method := range platform.BootMethods {
		switch method {
		case platforms.BootMethodISO:
			found.ISO = file(chosen(platform.ISOPath, platform.SecureBootISOPath))
		case platforms.BootMethodDiskImage:
			found.DiskImage = file(chosen(platform.DiskImageDefaultPath, platform.SecureBootDiskImageDefaultPath))
		case platforms.BootMethodPXE:
			found.PXE = i.pxe(base).JoinPath("pxe", i.Schematic, i.Version,
				chosen(platform.PXEScriptPath, platform.SecureBootPXEScriptPath)).String()
		}
	}

	found.Installer, err = i.installer(base)

	return found, err
}

// installer is empty for a platform whose name no registry takes.
func (i Image) installer(base *url.URL) (string, error) {
	if strings.ToLower(i.Platform) != i.Platform {
		return "", nil
	}

	registry := strings.TrimSuffix(base.Host+base.Path, "/")
	if registry == image.FactoryRegistry {
		registry = ""
	}

	return image.Installer{
		Version: i.Version, Schematic: i.Schematic, Platform: i.Platform, SecureBoot: i.SecureBoot, Registry: registry,
	}.Reference()
}

// File is where a factory serves a file of a schematic, below /image.
func (i Image) File(name string) string { return i.Schematic + "/" + i.Version + "/" + name }

func (i Image) pxe(base *url.URL) *url.URL {
	if base.String() != PublicFactory {
		return base
	}

	pxe, err := url.Parse(publicPXE)
	if err != nil {
		return base
	}

	return pxe
}

func (i Image) base() (*url.URL, error) {
	text := cmp.Or(strings.TrimSuffix(i.Factory, "/"), PublicFactory)

	base, err := url.Parse(text)

	switch {
	case err != nil:
		return nil, fmt.Errorf("parse factory URL: %w", err)
	case base.Scheme != "https" && base.Scheme != "http" || base.Host == "" || base.RawQuery != "" || base.User != nil:
		return nil, fmt.Errorf("%q is not a valid factory URL", text)
	}

	return base, nil
}
