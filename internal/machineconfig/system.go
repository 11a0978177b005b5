package machineconfig

import (
	"fmt"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/container"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/system"
)

func checkSystem(found *problems, c Cluster, m Machine, s strictness) {
	mistakes := m.System.Check(m.Role == ControlPlane, s == partial)

	if m.Mode == Container {
		mistakes = append(mistakes, m.System.CheckContainer()...)
	}

	if talos, ok := ReadTalosVersion(m.TalosVersion); ok {
		mistakes = append(mistakes, m.System.CheckTalos(talos.Minor)...)
	}

	if contract, err := parseContract(c.Contract); err == nil {
		mistakes = append(mistakes, m.System.CheckContract(contract)...)
	}

	for _, p := range mistakes {
		found.add("machine."+p.Field, p.Found, p.Allowed, p.Fix)
	}
}

// VolumeChanges lists the changes of volumes from one configuration to another that machines with data do not take.
func VolumeChanges(before, after []byte) ([]system.Change, error) {
	old, err := knownIn(before)
	if err != nil {
		return nil, fmt.Errorf("compare volumes: the old configuration: %w", err)
	}

	updated, err := knownIn(after)
	if err != nil {
		return nil, fmt.Errorf("compare volumes: the new configuration: %w", err)
	}

	return system.Changes(old, updated), nil
}

// knownIn is the part of a configuration that the machinery library knows.
func knownIn(cfg []byte) (coreconfig.Provider, error) {
	documents, err := load(cfg)
	if err != nil {
		return nil, err
	}

	var known []config.Document

	for _, d := range documents {
		if d.provider != nil {
			known = append(known, d.provider.Documents()...)
		}
	}

	provider, err := container.New(known...)
	if err != nil {
		return nil, fmt.Errorf("assemble configuration: %w", err)
	}

	return provider, nil
}
