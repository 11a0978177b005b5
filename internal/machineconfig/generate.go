package machineconfig

import (
	"fmt"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// Generate makes the configuration of one machine. To make those of many, use one Generator for the cluster.
func Generate(c Cluster, m Machine, b *pki.Bundle) (Config, error) {
	generator, err := NewGenerator(c, b)
	if err != nil {
		return Config{}, err
	}

	return generator.Machine(m)
}

// Generator makes the configurations of the machines of one cluster. What they have in common is checked
// and prepared once, and each text of a patch is parsed once. It is safe for concurrent use.
type Generator struct {
	cluster  Cluster
	contract *config.VersionContract
	input    *generate.Input
	bundle   *pki.Bundle
	patches  patchCache
}

// NewGenerator checks the settings of the cluster, all of them at once; see FieldErrors.
func NewGenerator(c Cluster, b *pki.Bundle) (*Generator, error) {
	if err := checkCluster(c, complete); err != nil {
		return nil, err
	}

	contract, err := parseContract(c.Contract)
	if err != nil {
		return nil, err
	}

	input, err := newInput(c, contract, b)
	if err != nil {
		return nil, err
	}

	return &Generator{cluster: c, contract: contract, input: input, bundle: b}, nil
}

// Machine makes the configuration of one machine and checks it as Talos would. The bytes depend on the arguments
// alone. Errors are FieldErrors: all those of the machine's settings at once, but only the first of patches, since
// later ones build upon earlier ones.
func (g *Generator) Machine(m Machine) (Config, error) {
	m = m.within(g.cluster)

	var mistakes problems
	if checkMachine(&mistakes, g.cluster, m, complete); len(mistakes) > 0 {
		return Config{}, mistakes.err()
	}

	documents, err := g.patched(m)
	if err != nil {
		return Config{}, err
	}

	facts := factsOf(documents.known)

	warnings, err := g.check(documents, facts, m)
	if err != nil {
		return Config{}, err
	}

	g.warnOfNodeRestriction(documents, facts, m)

	encoded, err := documents.encode()
	if err != nil {
		return Config{}, err
	}

	if encoded, err = annotated(encoded, g.bundle); err != nil {
		return Config{}, err
	}

	digest, err := Digest(encoded)
	if err != nil {
		return Config{}, err
	}

	return Config{Bytes: encoded, Digest: digest, Warnings: warnings, Ineffective: documents.ineffective,
		Facts: facts}, nil
}

// patched is the base with all patches applied, in the order that is documented for users.
func (g *Generator) patched(m Machine) (*documents, error) {
	base, err := g.base(m)
	if err != nil {
		return nil, err
	}

	for _, scope := range g.scopes(m) {
		for i, text := range scope.patches {
			parsed, err := g.patches.parse(at(scope.field, i), text)
			if err != nil {
				return nil, err
			}

			if err := base.apply(at(scope.field, i), parsed); err != nil {
				return nil, g.withConverted(m, err)
			}
		}
	}

	return base, g.settle(base, m)
}

// What is in `clusters` of the provider for users: Cluster.ProvidedPatches and Machine.ProvidedPatches.
const (
	providedPatches = "clusters.config_patches"
	providedOfOne   = "clusters.machines.config_patches"
)

// scope is a list of patches and the setting it comes from.
type scope struct {
	field   string
	patches []string
}

func (g *Generator) scopes(m Machine) []scope {
	return []scope{{"patches", g.cluster.Patches}, {providedPatches, g.cluster.ProvidedPatches},
		{"pool.patches", m.PoolPatches}, {"machine.patches", m.Patches}, {providedOfOne, m.ProvidedPatches}}
}

// patchCache keeps parsed patches by their text: machines of a cluster share most of theirs, and parsing
// costs more than applying.
type patchCache struct {
	mu     sync.Mutex
	parsed map[string]*patch
}

func (c *patchCache) parse(field, text string) (*patch, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if known, ok := c.parsed[text]; ok {
		return known, nil
	}

	parsed, err := parsePatch(field, text)
	if err != nil {
		return nil, err
	}

	if c.parsed == nil {
		c.parsed = make(map[string]*patch)
	}

	c.parsed[text] = parsed

	return parsed, nil
}

func newInput(c Cluster, contract *config.VersionContract, b *pki.Bundle) (*generate.Input, error) {
	options := []generate.Option{
		generate.WithVersionContract(contract),
		generate.WithSecretsBundle(b.Secrets()),
		generate.WithAdditionalSubjectAltNames(c.CertSANs),
		generate.WithAllowSchedulingOnControlPlanes(c.AllowSchedulingOnControlPlanes),
		generate.WithClusterDiscovery(c.discovery()),
	}

	if c.Container {
		// Validation in containers demands it (Talos 1.13, v1alpha1_validation.go).
		options = append(options, generate.WithHostDNSForwardKubeDNSToHost(true))
	}

	if c.DNSDomain != "" {
		options = append(options, generate.WithDNSDomain(c.DNSDomain))
	}

	kubernetes, err := ParseKubernetesVersion(c.KubernetesVersion)
	if err != nil {
		return nil, err
	}

	input, err := generate.NewInput(c.Name, c.Endpoint, kubernetes.Version.String(), options...)
	if err != nil {
		return nil, fmt.Errorf("prepare configuration of cluster %s: %w", c.Name, err)
	}

	pods, services := c.networks()
	input.PodNet, input.ServiceNet = pods, services

	return input, nil
}
