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

// settle lets generated defaults give way to what the patches set. It runs after the patches, because a
// patch is free to delete or change the default itself.
func (d *documents) settle(airGapped bool, contract *coreconfig.VersionContract) error {
	main := d.known.RawV1Alpha1()
	if main == nil || main.MachineConfig == nil {
		// Nothing a machine could use; check says so.
		return nil
	}

	settled := settleHostname(d.known.Documents(), main)
	if airGapped {
		settled = settleTime(settled, main, contract)
	}

	provider, err := container.New(settled...)
	if err != nil {
		return fmt.Errorf("put configuration together: %w", err)
	}

	d.known = provider

	return nil
}

// settleHostname makes the generated `auto: stable` give way to a static host name, in either form: Talos
// 1.13 refuses both together ("'auto' and 'hostname' cannot be set at the same time", "static hostname is
// already set in v1alpha1 config"), and nobody who sets a host name wants the generated one.
func settleHostname(documents []config.Document, main *v1alpha1.Config) []config.Document {
	var settled []config.Document

	for _, document := range documents {
		hostname, ok := document.(*network.HostnameConfigV1Alpha1)
		if !ok || hostname.AutoHostname() != nethelpers.AutoHostnameKindStable {
			settled = append(settled, document)

			continue
		}

		switch {
		case hostname.ConfigHostname != "":
			// A copy, because the document may be that of a patch, which is used again.
			static := hostname.DeepCopy()
			static.ConfigAuto = new(nethelpers.AutoHostnameKindOff)
			settled = append(settled, static)
		case main.Hostname() != "":
			// The main document has the name; this one is dropped.
		default:
			settled = append(settled, document)
		}
	}

	return settled
}

// settleTime switches time synchronisation off where no patch has configured it.
func settleTime(
	documents []config.Document, main *v1alpha1.Config, contract *coreconfig.VersionContract,
) []config.Document {
	if main.MachineConfig.MachineTime != nil { //nolint:staticcheck // the form before contract v1.12
		return documents
	}

	for i, document := range documents {
		if _, ok := document.(*network.TimeSyncConfigV1Alpha1); ok {
			return documents
		}

		if found, ok := document.(*v1alpha1.Config); ok && !contract.MultidocNetworkConfigSupported() {
			changed := found.DeepCopy()
			changed.MachineConfig.MachineTime = &v1alpha1.TimeConfig{TimeDisabled: new(true)} //nolint:staticcheck // as above
			documents[i] = changed
		}
	}

	if !contract.MultidocNetworkConfigSupported() {
		return documents
	}

	disabled := network.NewTimeSyncConfigV1Alpha1()
	disabled.TimeEnabled = new(false)

	return append(documents, disabled)
}
