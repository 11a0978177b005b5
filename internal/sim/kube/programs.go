package kube

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/talosop/terraform-provider-talosop/internal/sim/process"
)

// Parts run kube-apiservers.
type Parts struct {
	Programs Programs
	Dir      string
	Nursery  *process.Nursery
	Hidden   func() (netip.Addr, error) // an address that no machine has
}

// kubeProgram is a kube-apiserver of one version.
type kubeProgram struct {
	path    string
	version semver.Version
}

// Programs are the versions of Kubernetes that a site can run, at most one of a minor.
type Programs []*kubeProgram

// FindPrograms looks for kube-apiservers in a folder and in the folders in it, and asks
// each for its version.
func FindPrograms(ctx context.Context, folder string) (Programs, error) {
	if _, err := process.FindProgram(folder, "kube-apiserver"); err != nil {
		return nil, err
	}

	var programs Programs

	for _, pattern := range []string{"kube-apiserver", "*/kube-apiserver"} {
		paths, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			return nil, fmt.Errorf("look for kube-apiserver: %w", err)
		}

		for _, path := range paths {
			program, err := askVersion(ctx, path)
			if err != nil {
				return nil, err
			}

			if _, err := programs.of(program.version.String()); err != nil {
				programs = append(programs, program)
			}
		}
	}

	return programs, nil
}

// askVersion runs a kube-apiserver, which prints "Kubernetes v1.36.3".
func askVersion(ctx context.Context, path string) (*kubeProgram, error) {
	output, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for its version: %w", path, err)
	}

	version, err := semver.ParseTolerant(strings.TrimPrefix(strings.TrimSpace(string(output)), "Kubernetes "))
	if err != nil {
		return nil, fmt.Errorf("read version of %s: %w", path, err)
	}

	return &kubeProgram{path: path, version: version}, nil
}

// of finds the program for a version, which is the one of its minor: patch releases of
// Kubernetes differ in nothing that a cluster of the simulator shows but their number.
func (p Programs) of(version string) (*kubeProgram, error) {
	wanted, err := semver.ParseTolerant(version)
	if err != nil {
		return nil, fmt.Errorf("read Kubernetes version %q: %w", version, err)
	}

	there := make([]string, 0, len(p))

	for _, program := range p {
		if program.version.Major == wanted.Major && program.version.Minor == wanted.Minor {
			return program, nil
		}

		there = append(there, "v"+program.version.String())
	}

	return nil, fmt.Errorf("no kube-apiserver for Kubernetes %s (there are %s)", version, strings.Join(there, ", "))
}
