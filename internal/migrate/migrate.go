// Package migrate reads the files of other tools that make Talos clusters: talhelper and topf. It makes the
// configuration that the tool gave to each machine, in the order in which the tool makes it, and lists what it could
// not make.
//
// It starts no program and contacts no machine. Files that are encrypted, templates whose variables are missing, and
// nodes of other programs are errors that say what to do first.
package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// Cluster is a cluster as the files of a tool describe it.
type Cluster struct {
	Name     string
	Bundle   *pki.Bundle
	Machines []Machine
	// Omitted is what the machines may have and their configurations here lack, and what has no effect on machines.
	Omitted []Omission
}

// Machine is one machine of a cluster.
type Machine struct {
	Name         string
	Address      string
	ControlPlane bool
	TalosVersion string
	Config       []byte
}

// Omission is a field that was not translated.
type Omission struct {
	Field  string
	Reason string
}

// Readers are the tools by name.
var Readers = map[string]func(Options) (Cluster, error){"talhelper": Talhelper, "topf": Topf}

func (c *Cluster) omit(field, reason string) {
	one := Omission{Field: field, Reason: reason}
	if !slices.Contains(c.Omitted, one) {
		c.Omitted = append(c.Omitted, one)
	}
}

func (m Machine) role() machine.Type {
	if m.ControlPlane {
		return machine.TypeControlPlane
	}

	return machine.TypeWorker
}

// check refuses clusters that no import can describe.
func (c *Cluster) check() error {
	seen, planes := map[string]bool{}, 0

	for _, m := range c.Machines {
		switch {
		case m.Name == "" || m.Address == "":
			return errors.New("a node has no name or no address")
		case seen[m.Name]:
			return fmt.Errorf("two nodes are called %s", m.Name)
		case m.ControlPlane:
			planes++
		}

		seen[m.Name] = true
	}

	if planes == 0 {
		return errors.New("no node is a control plane")
	}

	return nil
}

// input is what the machinery library generates the configurations of a cluster from.
func (c *Cluster) input(endpoint, kubernetes, talos string, options ...generate.Option) (*generate.Input, error) {
	contract, err := config.ParseContractFromVersion(talos)
	if err != nil {
		return nil, fmt.Errorf("parse Talos version %s: %w", talos, err)
	}

	if contract.Greater(config.TalosVersion1_13) {
		return nil, fmt.Errorf("%w: Talos version %s", errContract, talos)
	}

	options = append([]generate.Option{generate.WithVersionContract(contract),
		generate.WithSecretsBundle(c.Bundle.Secrets())}, options...)

	return generate.NewInput(c.Name, endpoint, strings.TrimPrefix(kubernetes, "v"), options...)
}

// errContract is about versions from which the tools, made before them, generate other configurations than the library.
var errContract = errors.New("from Talos 1.14, what a tool generates depends on its release: let it write the " +
	"machine configurations, with `talhelper genconfig` or `topf render`, and name their folder with -configs")

// patched applies patches of one step at once, as talosctl does.
func patched(base []byte, patches ...string) ([]byte, error) {
	if len(patches) == 0 {
		return base, nil
	}

	loaded, err := configpatcher.LoadPatches(patches)
	if err != nil {
		return nil, err
	}

	output, err := configpatcher.Apply(configpatcher.WithBytes(base), loaded)
	if err != nil {
		return nil, err
	}

	return output.Bytes()
}

// secrets reads the secrets of the cluster: from the file that the user names, or from the first of the usual ones.
func (o Options) secrets(usual ...string) (*pki.Bundle, error) {
	if o.Secrets != "" {
		usual = []string{o.Secrets}
	}

	for _, name := range usual {
		content, err := o.read(name)

		switch {
		case errors.Is(err, fs.ErrNotExist) && o.Secrets == "":
			continue
		case err != nil:
			return nil, fmt.Errorf("read the secrets: %w", err)
		}

		if content, err = o.substituted(content); err != nil {
			return nil, fmt.Errorf("read the secrets from %s: %w", name, err)
		}

		bundle, err := pki.Parse(content)
		if err != nil {
			return nil, fmt.Errorf("read the secrets from %s: %w", name, err)
		}

		return bundle, nil
	}

	return nil, fmt.Errorf("found none of %s in %s: name the file with the secrets with -secrets",
		strings.Join(usual, ", "), o.Folder)
}

// generated reads the configurations that the tool wrote, by the names of their files.
func (o Options) generated(c *Cluster, file func(Machine) string) error {
	for i := range c.Machines {
		m := &c.Machines[i]

		name := filepath.Join(o.Configurations, file(*m))

		content, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read the configuration of %s: %w", m.Name, err)
		}

		if err := refuseEncrypted(name, content); err != nil {
			return err
		}

		m.Config = content
	}

	return nil
}

// version is the version of a file, or the one that the user gives for files that have none.
func (o Options) version(field, written string) (string, error) {
	version := machineconfig.CanonicalVersion(cmp.Or(written, o.TalosVersion))
	if version == "" {
		return "", fmt.Errorf("%s is not set, so that the tool used the version it was built for: name the version that the "+
			"machines run with -talos-version", field)
	}

	return version, nil
}
