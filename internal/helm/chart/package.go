package chart

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v3/pkg/action"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// Package is a chart that was fetched. It is safe for concurrent use.
type Package struct {
	Pin
	AppVersion string
	// KubeVersion is the range of Kubernetes versions that the chart is for, empty for any.
	KubeVersion string
	// Deprecated is whether the chart marks itself as deprecated.
	Deprecated bool

	// archive is the package, nil for a folder.
	archive []byte
	// files are those of a folder, with the dependencies that were fetched for it.
	files []*loader.BufferedFile
}

// Chart reads the chart again on each call, because Helm's actions change the chart that they get.
func (p *Package) Chart() (*helmchart.Chart, error) {
	if p.archive == nil {
		return loader.LoadFiles(p.files)
	}
	return loader.LoadArchive(bytes.NewReader(p.archive))
}

// download is a package as it came.
type download struct {
	// from says where from, for people.
	from string
	// name of the file, which is what a provenance file calls it.
	name    string
	archive []byte
	// pin is what the caller expected; empty fields were not expected.
	pin Pin
	// provenance reads the provenance file, or returns errGone.
	provenance func(context.Context) ([]byte, error)
}

// open makes sure that the chart can be installed and is the one that was expected.
func (p download) open(from Source) (*Package, error) {
	read, err := loadArchive(p.from, p.archive, newRoom())
	if errors.Is(err, ErrTooLarge) {
		return nil, err
	}
	if err != nil {
		return nil, newError(fmt.Sprintf("%s is not a chart package (%s)", p.from, contentKind(p.archive)), err, ErrDamaged)
	}
	opened, err := describe(p.from, read, from.Version)
	if err != nil {
		return nil, err
	}
	if err := checkExpected(p, read.Metadata); err != nil {
		return nil, err
	}
	if err := action.CheckDependencies(read, read.Metadata.Dependencies); err != nil {
		return nil, newError(p.from+" has missing dependencies; only the publisher of the package can add them", err,
			ErrDamaged)
	}
	if p.pin.Version != "" {
		opened.Name, opened.Version = p.pin.Name, p.pin.Version
	}
	opened.Digest, opened.archive = digestOf(p.archive), p.archive
	return opened, nil
}

// checkExpected compares a chart with its entry in the index or the registry.
func checkExpected(p download, have *helmchart.Metadata) error {
	if p.pin.Version == "" || have.Name == p.pin.Name && sameVersion(have.Version, p.pin.Version) {
		return nil
	}
	text := fmt.Sprintf("%s contains chart %s %s, expected %s %s", p.from, have.Name, have.Version, p.pin.Name,
		p.pin.Version)
	return newError(text, nil, ErrDamaged)
}

// describe checks the chart itself. want is the version that was asked for.
func describe(from string, read *helmchart.Chart, want string) (*Package, error) {
	meta := read.Metadata
	// As helm does before it installs or upgrades (cmd/helm/install.go, checkIfInstallable).
	if meta.Type != "" && meta.Type != "application" {
		text := fmt.Sprintf("%s: %s charts cannot be installed, only used as dependencies", from, meta.Type)
		return nil, newError(text, nil, ErrDamaged)
	}
	if !satisfies(meta.Version, want) {
		text := fmt.Sprintf("%s is chart %s version %s, not %s", from, meta.Name, meta.Version, want)
		return nil, newError(text, nil, ErrNoVersion)
	}
	return &Package{
		Pin:        Pin{Name: meta.Name, Version: meta.Version},
		AppVersion: meta.AppVersion, KubeVersion: meta.KubeVersion, Deprecated: meta.Deprecated,
	}, nil
}

// satisfies reports whether a version is the wanted one or in the wanted range; without one any is.
func satisfies(have, want string) bool {
	if want == "" || have == want {
		return true
	}
	version, err := semver.NewVersion(have)
	if err != nil {
		return false
	}
	wanted, err := semver.NewConstraint(want)
	return err == nil && wanted.Check(version)
}

func sameVersion(a, b string) bool {
	if a == b {
		return true
	}
	first, err := semver.NewVersion(a)
	if err != nil {
		return false
	}
	second, err := semver.NewVersion(b)
	return err == nil && first.Equal(second)
}

// constraint is the version that helm asks for (cmd/helm/install.go: devel is a range, and only without a version).
func (from Source) constraint() string {
	if from.Version == "" && from.Devel {
		return ">0.0.0-0"
	}
	return from.Version
}

// wanted is the constraint in words.
func (from Source) wanted() string {
	switch {
	case from.Version != "":
		return "version " + from.Version
	case from.Devel:
		return "version"
	}
	return "stable version (set devel to allow others)"
}

const digestPrefix = "sha256:"

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return digestPrefix + hex.EncodeToString(sum[:])
}

var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// normalDigest is a digest in our single format, empty when it is no SHA-256.
func normalDigest(text string) string {
	plain := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(text)), digestPrefix)
	if !hexDigest.MatchString(plain) {
		return ""
	}
	return digestPrefix + plain
}

// contentKind describes content that is no package.
func contentKind(content []byte) string {
	start := strings.ToLower(strings.TrimSpace(string(content[:min(len(content), 256)])))
	switch {
	case len(content) == 0:
		return "empty"
	case strings.HasPrefix(start, "<!doctype"), strings.HasPrefix(start, "<html"):
		return "a web page, possibly a login page"
	case bytes.HasPrefix(content, []byte{0x1f, 0x8b}):
		return "a gzip archive"
	}
	return fmt.Sprintf("%d bytes, not gzip", len(content))
}
