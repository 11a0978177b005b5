// Package image names the container images a Talos machine installs and upgrades itself from.
//
// Where a machine boots from decides what it is: the installer image carries the Talos version and, in
// the images of the Image Factory, the system extensions and kernel arguments of a schematic. A schematic
// is content-addressed: its id is the SHA-256 of its canonical YAML, and the same id at another version gives
// the same extensions at that version. The installer of plain Talos, without extensions, is published at
// ghcr.io/siderolabs/installer (up to Talos 1.13) and, as the empty schematic, by the factory as well.
//
// The package is pure: it writes and reads references and never asks a registry or the factory. Package factory,
// below, asks.
package image

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/blang/semver/v4"
)

const (
	// FactoryRegistry is where Sidero Labs' public Image Factory serves installers.
	FactoryRegistry = "factory.talos.dev"
	// DefaultPlatform is the platform of machines that are not in a cloud, virtual ones included.
	DefaultPlatform = "metal"
	// VanillaSchematic is the id of the empty schematic: Talos without extensions or extra kernel arguments.
	VanillaSchematic = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"

	plainInstaller = "ghcr.io/siderolabs/installer"
)

// ErrInvalidReference is wrapped by every error about an image reference that cannot be read.
var ErrInvalidReference = errors.New("invalid image reference")

// Installer names an installer image by its content.
type Installer struct {
	// Version is the Talos version, such as "v1.13.0". Required.
	Version string
	// Schematic is the id of the schematic, 64 hex digits. Empty means plain Talos.
	Schematic string
	// Platform is the one the factory builds for, such as "metal" or "aws". Empty means metal. Only
	// factory images differ by platform.
	Platform string
	// SecureBoot selects the image signed for UEFI SecureBoot, which only the factory has.
	SecureBoot bool
	// Registry is the host of another Image Factory. Empty means the public one.
	Registry string
}

// Reference gives the image reference:
// <registry>/<platform>-installer[-secureboot]/<schematic>:<version> from a factory, or
// ghcr.io/siderolabs/installer:<version> for plain Talos up to 1.13 on metal without SecureBoot.
func (i Installer) Reference() (string, error) {
	if err := checkVersion(i.Version); err != nil {
		return "", err
	}

	platform := cmp.Or(i.Platform, DefaultPlatform)

	if !platformPattern.MatchString(platform) {
		return "", fmt.Errorf("platform %q: expected lower-case letters, digits and dashes, such as metal or aws", i.Platform)
	}

	schematic := i.Schematic

	switch {
	case schematic != "":
		if err := CheckSchematic(schematic); err != nil {
			return "", err
		}
	case i.SecureBoot || platform != DefaultPlatform || i.Registry != "" || !plainPublished(i.Version):
		schematic = VanillaSchematic
	default:
		return plainInstaller + ":" + i.Version, nil
	}

	registry := cmp.Or(i.Registry, FactoryRegistry)

	written := fmt.Sprintf("%s/%s/%s:%s", registry, repository(platform, i.SecureBoot), schematic, i.Version)

	// The registry is the only part that has not been checked yet.
	if _, err := ParseReference(written); err != nil {
		return "", fmt.Errorf("registry %q: %w", i.Registry, err)
	}

	return written, nil
}

// plainPublished reports whether there is an installer of plain Talos outside of the factory: up to Talos 1.13.
func plainPublished(version string) bool {
	parsed, err := semver.ParseTolerant(version)

	return err == nil && parsed.Major == 1 && parsed.Minor <= 13
}

func repository(platform string, secureBoot bool) string {
	if secureBoot {
		return platform + "-installer-secureboot"
	}

	return platform + "-installer"
}

var (
	schematicPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)
	platformPattern  = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
)

// CheckSchematic returns why id cannot be the id of a schematic.
func CheckSchematic(id string) error {
	if !schematicPattern.MatchString(id) {
		return fmt.Errorf("schematic ID %q: expected 64 lower-case hex digits", id)
	}

	return nil
}

func checkVersion(version string) error {
	bare, prefixed := strings.CutPrefix(version, "v")
	if !prefixed {
		return fmt.Errorf("version %q: expected a Talos version with a leading v", version)
	}

	if _, err := semver.Parse(bare); err != nil {
		return fmt.Errorf("version %q: expected a Talos version with three numbers", version)
	}

	return nil
}
