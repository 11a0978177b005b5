package machineconfig

import (
	"fmt"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"
)

// settle replaces generated settings by those of the patches. It runs after the patches, because a patch may
// delete or change what was generated.
func (g *Generator) settle(d *documents, m Machine) error {
	main := d.known.RawV1Alpha1()
	if main == nil || main.MachineConfig == nil || main.ClusterConfig == nil {
		// Nothing a machine could use; check says so.
		return nil
	}

	settled, main, err := g.oneForm(d, m)
	if err != nil {
		return fmt.Errorf("assemble configuration: %w", err)
	}

	settled = settleHostname(settled, main, m.Hostname)

	if settled, err = settleInstall(settled, m.Install); err != nil {
		return err
	}

	if settled, err = m.System.Settle(settled); err != nil {
		return fmt.Errorf("assemble configuration: %w", err)
	}

	if g.cluster.AirGapped {
		settled = settleTime(settled, main, g.contract)
	}

	provider, err := container.New(settled...)
	if err != nil {
		return fmt.Errorf("assemble configuration: %w", err)
	}

	d.known = provider

	return nil
}

// settleHostname makes the host name of the settings, and the generated `auto: stable`, give way to what patches
// say, in either form: Talos 1.13 refuses both together ("'auto' and 'hostname' cannot be set at the same time",
// "static hostname is already set in v1alpha1 config").
func settleHostname(documents []config.Document, main *v1alpha1.Config, setting string) []config.Document {
	var settled []config.Document

	for _, document := range documents {
		found, ok := document.(*network.HostnameConfigV1Alpha1)

		switch {
		case !ok:
			settled = append(settled, document)
		case main.Hostname() != "" && byDefault(found, setting):
			// The main document has the name; this one is dropped.
		default:
			settled = append(settled, settledHostname(found, setting))
		}
	}

	return settled
}

// byDefault reports whether a document says nothing but what it was generated with.
func byDefault(document *network.HostnameConfigV1Alpha1, setting string) bool {
	if document.ConfigHostname == "" {
		return document.AutoHostname() == nethelpers.AutoHostnameKindStable
	}

	return document.ConfigHostname == setting
}

// settledHostname decides between a static name and Talos's own: with the name of the settings, which was generated
// with `auto: off`, a patch asks for Talos's own; any other name comes from a patch.
func settledHostname(document *network.HostnameConfigV1Alpha1, setting string) *network.HostnameConfigV1Alpha1 {
	if document.ConfigHostname == "" || document.AutoHostname() != nethelpers.AutoHostnameKindStable {
		return document
	}

	// A copy, because the document may be that of a patch, which is used again.
	settled := document.DeepCopy()

	if document.ConfigHostname == setting {
		settled.ConfigHostname = ""
	} else {
		settled.ConfigAuto = new(nethelpers.AutoHostnameKindOff)
	}

	return settled
}

// settleTime switches time synchronization off where no patch has configured it.
func settleTime(
	documents []config.Document, main *v1alpha1.Config, contract *coreconfig.VersionContract,
) []config.Document {
	if main.MachineConfig.MachineTime != nil || hasKind(documents, network.TimeSyncKind) {
		return documents
	}

	if !contract.MultidocNetworkConfigSupported() {
		main.MachineConfig.MachineTime = &v1alpha1.TimeConfig{TimeDisabled: new(true)}

		return documents
	}

	disabled := network.NewTimeSyncConfigV1Alpha1()
	disabled.TimeEnabled = new(false)

	return append(documents, disabled)
}
