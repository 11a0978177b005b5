package machineconfig

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/config/validation"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// NewChecker is a Generator with secrets of its own that are thrown away, which reports what is wrong with the settings
// of a cluster and its machines. It is for plans in which the secrets are not known yet; what is wrong does not depend
// on them. What it generates must not be used. Errors are FieldErrors.
func NewChecker(c Cluster) (*Generator, error) {
	throwaway, err := throwawayBundle()
	if err != nil {
		return nil, err
	}

	return NewGenerator(c, throwaway)
}

// throwawayBundle is made once in a process. The service account key is the only expensive part of a
// bundle, and contracts before v1.7 have a cheap one.
var throwawayBundle = sync.OnceValues(func() (*pki.Bundle, error) {
	generated, err := secrets.NewBundle(secrets.NewClock(), config.TalosVersion1_6)
	if err != nil {
		return nil, fmt.Errorf("make secrets for validation: %w", err)
	}

	return pki.Wrap(generated)
})

// runtimeMode is what the validation of the machinery library asks about a machine.
type runtimeMode Mode

func (m runtimeMode) String() string        { return string(m) }
func (m runtimeMode) RequiresInstall() bool { return Mode(m) != Container }
func (m runtimeMode) InContainer() bool     { return Mode(m) == Container }

var _ validation.RuntimeMode = runtimeMode(Metal)

// check validates the finished configuration as the machine would before it is installed, the strictest
// case, and names the setting at fault. Whether Talos supports the version of Kubernetes is the question of
// CheckKubernetesSupported: the library would ask for the Talos that it is of itself (machinery 1.14, without
// WithLocal).
func (g *Generator) check(d *documents, m Machine) (warnings []string, err error) {
	if problem := g.contradiction(d, m); problem != "" {
		return nil, g.blame(m, problem)
	}

	if m.Mode != Container && !hasInstallDisk(d.known) {
		return nil, &FieldError{
			Field: "machine.install.disk", Found: "no disk to install on",
			Allowed: "a device such as /dev/sda, or a disk selector",
			Fix:     "set install.disk or install.disk_selector", Err: ErrInvalidConfig,
		}
	}

	warnings, err = d.known.ValidateAsClient(runtimeMode(m.Mode), validation.WithLocal())

	hidden, hiddenErr := newScrubber(d.known, len(warnings) > 0 || err != nil)
	if hiddenErr != nil {
		return nil, hiddenErr
	}

	for i := range warnings {
		warnings[i] = hidden.scrub(warnings[i])
	}

	if err != nil {
		return nil, g.blame(m, hidden.scrub(oneLine(err)))
	}

	return warnings, nil
}

// contradiction finds patches that make the configuration that of another machine or another cluster. Talos would
// accept it, and then the machine could no longer be reached with the secrets of its cluster, nor its etcd by its
// peers.
func (g *Generator) contradiction(d *documents, m Machine) string {
	main := d.known.RawV1Alpha1()

	switch {
	case main == nil || main.MachineConfig == nil || main.ClusterConfig == nil:
		return "no machine or no cluster section"
	case main.MachineConfig.MachineType != string(m.Role):
		return fmt.Sprintf("machine.type %s for a machine of role %s", main.MachineConfig.MachineType, m.Role)
	}

	for _, secret := range identitySecrets(main, g.input.Options.SecretsBundle) {
		if !bytes.Equal(secret.config, secret.bundle) {
			return secret.path + " is not that of the secrets bundle"
		}
	}

	return unannounced(d, m)
}

// identitySecret is a secret that makes a machine a member of its cluster.
type identitySecret struct {
	path           string
	config, bundle []byte
}

func identitySecrets(main *v1alpha1.Config, bundle *secrets.Bundle) []identitySecret {
	machine, cluster := main.MachineConfig, main.ClusterConfig

	found := []identitySecret{
		{"machine.token", []byte(machine.MachineToken), []byte(bundle.TrustdInfo.Token)},
		{"machine.ca", certificate(machine.MachineCA), bundle.Certs.OS.Crt},
		{"cluster.id", []byte(cluster.ClusterID), []byte(bundle.Cluster.ID)},
		{"cluster.secret", []byte(cluster.ClusterSecret), []byte(bundle.Cluster.Secret)},
		{"cluster.token", []byte(cluster.BootstrapToken), []byte(bundle.Secrets.BootstrapToken)},
		{"cluster.ca", certificate(cluster.ClusterCA), bundle.Certs.K8s.Crt},
	}

	if !main.Machine().Type().IsControlPlane() {
		return found
	}

	var etcd, serviceAccount []byte
	if cluster.EtcdConfig != nil {
		etcd = certificate(cluster.EtcdConfig.RootCA)
	}

	if cluster.ClusterServiceAccount != nil {
		serviceAccount = cluster.ClusterServiceAccount.Key
	}

	return append(found,
		identitySecret{"cluster.etcd.ca", etcd, bundle.Certs.Etcd.Crt},
		identitySecret{"cluster.aggregatorCA", certificate(cluster.ClusterAggregatorCA), bundle.Certs.K8sAggregator.Crt},
		identitySecret{"cluster.serviceAccount", serviceAccount, bundle.Certs.K8sServiceAccount.Key},
	)
}

func certificate(pair *x509.PEMEncodedCertificateAndKey) []byte {
	if pair == nil {
		return nil
	}

	return pair.Crt
}

func hasInstallDisk(provider config.Provider) bool {
	install := provider.RawV1Alpha1().MachineConfig.MachineInstall

	return install != nil && (install.InstallDisk != "" || install.InstallDiskSelector != nil)
}
