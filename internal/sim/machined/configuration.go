package machined

import (
	"fmt"

	talosx509 "github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// PersistedConfig is the configuration that the next boot starts with, nil when there is none.
func (b *Boot) PersistedConfig() config.Provider {
	b.Mu.Lock()
	defer b.Mu.Unlock()

	return b.persistent
}

// OSAuthority is the Talos CA of the boot's configuration; without its key on workers.
func (b *Boot) OSAuthority() *talosx509.PEMEncodedCertificateAndKey {
	if b.InMaintenance() {
		return nil
	}

	return b.Config().Machine().Security().IssuingCA()
}

// Discovery reports whether the configuration lets machines see each other as members.
func (b *Boot) Discovery() bool {
	if b.InMaintenance() {
		return false
	}

	return len(b.Config().DiscoveryServiceConfigs()) > 0 || b.Config().Cluster().Discovery().Enabled()
}

// CNIReadies reports whether a control plane installs a CNI; without one nodes stay NotReady.
func (b *Boot) CNIReadies() bool {
	cfg := b.Config()

	if main := cfg.RawV1Alpha1().ClusterConfig; main != nil && main.ClusterNetwork != nil {
		return main.CNI().CNIName != constants.NoneCNI
	}

	return cfg.K8sFlannelCNIConfig() != nil || len(cfg.K8sExternalManifestConfigs()) > 0
}

// Config is the active configuration, nil when there is none.
func (b *Boot) Config() config.Provider {
	b.Mu.Lock()
	defer b.Mu.Unlock()

	return b.active
}

// Complete reports whether Talos can boot with the configuration.
func Complete(cfg config.Provider) bool { return cfg != nil && cfg.RawV1Alpha1() != nil }

// InMaintenance reports whether the machine still waits for a complete configuration.
func (b *Boot) InMaintenance() bool {
	b.Mu.Lock()
	defer b.Mu.Unlock()

	return !b.booting
}

// MachineType is the type the configuration gives, TypeUnknown in maintenance.
func (b *Boot) MachineType() machine.Type {
	if b.InMaintenance() {
		return machine.TypeUnknown
	}

	return b.Config().Machine().Type()
}

// ControlPlane reports whether the configuration makes the machine part of the control plane.
func (b *Boot) ControlPlane() bool { return b.MachineType().IsControlPlane() }

// SetActive makes cfg the active configuration and lets everything that depends on
// it follow: resources, certificates, and the end of maintenance mode.
func (b *Boot) SetActive(cfg config.Provider) error {
	b.Mu.Lock()
	wasComplete, nowComplete := b.booting, Complete(cfg)
	b.active, b.booting = cfg, nowComplete
	b.Mu.Unlock()
	b.Changed.Ring()
	b.followTime()

	if err := b.publishConfig(); err != nil {
		return err
	}

	if wasComplete {
		return b.Renew()
	}

	if nowComplete {
		close(b.Configured)
	}

	return nil
}

// SetPersistent writes cfg to STATE, where the next boot finds it. A metal machine that
// is not installed has no STATE yet: it keeps the bytes until the installation.
func (b *Boot) SetPersistent(cfg config.Provider) error {
	data, err := cfg.Bytes()
	if err != nil {
		return fmt.Errorf("encode configuration: %w", err)
	}

	b.Mu.Lock()
	b.persistent = cfg
	b.Mu.Unlock()

	b.World.Lock()
	if b.Disk.Installed && Complete(cfg) {
		b.Disk.Config = data
	}
	b.World.Unlock()

	return b.publishConfig()
}
