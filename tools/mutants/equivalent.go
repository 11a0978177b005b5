package main

import (
	"fmt"
	"os"
	"slices"

	"sigs.k8s.io/yaml"
)

// equivalent is a mutant that no test can notice, and the reason.
type equivalent struct {
	In       string `json:"in"`
	Original string `json:"original"`
	Mutated  string `json:"mutated"`
	Reason   string `json:"reason"`
}

type equivalents []equivalent

// readEquivalents returns the documented mutants by package.
func readEquivalents(file string) (known map[string]equivalents, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}

	if err := yaml.UnmarshalStrict(content, &known); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}

	for name, entries := range known {
		for _, e := range entries {
			if e.Reason == "" {
				return nil, fmt.Errorf("%s: %s: %s has no reason", file, name, e.In)
			}
		}
	}

	return known, nil
}

func (e equivalent) key() key { return key{e.In, e.Original, e.Mutated} }

func (all equivalents) find(k key) (equivalent, bool) {
	i := slices.IndexFunc(all, func(e equivalent) bool { return e.key() == k })
	if i < 0 {
		return equivalent{}, false
	}

	return all[i], true
}

// stale are the entries that match no mutant of a package.
func (all equivalents) stale(p *mutated) (gone equivalents) {
	for _, e := range all {
		if !slices.ContainsFunc(p.mutants, func(m mutant) bool { return m.key == e.key() }) {
			gone = append(gone, e)
		}
	}

	return gone
}
