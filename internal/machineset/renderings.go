package machineset

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/utils/lru"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// made is a cache of renderings of this process. A plan compares the same configurations several times, and each
// takes as long as everything else about a machine.
var made = lru.New(mostRenderings)

// mostRenderings is the size of the cache, with some 12 KB for each entry.
const mostRenderings = 2000

// rendering is the digest of everything that a configuration is made from.
type rendering [sha256.Size]byte

// madeOnce is the cached configuration of a rendering, made if it is missing. Errors are not cached.
func madeOnce(key rendering, render func() (renderedMachine, error)) (renderedMachine, error) {
	known, _ := made.Get(key)
	if m, ok := known.(renderedMachine); ok {
		return m, nil
	}

	m, err := render()
	if err == nil {
		made.Add(key, m)
	}

	return m, err
}

// renderMachines renders the machines in the order of their names, with throwaway secrets where there are none.
// Machines with the same settings share a configuration.
func (p Set) renderMachines(bundle *pki.Bundle, use func(string, renderedMachine)) error {
	r, err := p.renderer(bundle)
	if err != nil {
		return p.problems("", err)
	}

	var problems []error

	for _, name := range p.Names() {
		config, err := r.render(p.Machines[name])
		if err != nil {
			problems = append(problems, p.problems(name, err))

			continue
		}

		use(name, config)
	}

	return errors.Join(problems...)
}

// renderer renders machines of one cluster.
type renderer struct {
	generator *machineconfig.Generator
	// of is the digest of what the machines have in common.
	of rendering
}

func (p Set) renderer(bundle *pki.Bundle) (renderer, error) {
	generator, err := p.generator(bundle)
	if err != nil {
		return renderer{}, err
	}

	secrets := ""
	if bundle != nil {
		secrets = bundle.Digest()
	}

	settings, err := json.Marshal([]any{secrets, p.Settings})
	if err != nil {
		return renderer{}, fmt.Errorf("compare the settings of the cluster with others: %w", err)
	}

	return renderer{generator, sha256.Sum256(settings)}, nil
}

func (r renderer) render(m Machine) (renderedMachine, error) {
	kind, err := json.Marshal(m.Config)
	if err != nil {
		return renderedMachine{}, fmt.Errorf("compare the settings of the machine with others: %w", err)
	}

	return madeOnce(sha256.Sum256(append(r.of[:], kind...)),
		func() (renderedMachine, error) { return m.rendered(r.generator) })
}

// generator makes configurations with these secrets, or with throwaway ones.
func (p Set) generator(bundle *pki.Bundle) (*machineconfig.Generator, error) {
	if bundle == nil {
		return machineconfig.NewChecker(p.Settings)
	}

	return machineconfig.NewGenerator(p.Settings, bundle)
}

func (m Machine) rendered(generator *machineconfig.Generator) (out renderedMachine, err error) {
	if out.Config, err = generator.Machine(m.Config); err != nil {
		return out, err
	}

	out.ConfigDigest, out.WantedNode = out.Digest, out.Facts.NodeName

	if out.Images, err = machineconfig.Images(out.Bytes); err != nil {
		return out, err
	}

	if m.Config.Role == machineconfig.ControlPlane {
		out.Etcd = etcdMinor(out.Bytes)
	}

	out.Keys, err = machineconfig.Keys(out.Bytes)

	return out, err
}
