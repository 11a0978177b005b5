package machineconfig

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/validation"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// NewChecker is a Generator with temporary secrets, which reports the errors in the settings of a cluster and its
// machines. It is for plans in which the secrets are not known yet; the errors do not depend on them. What it
// generates must not be used. Errors are FieldErrors.
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
		return nil, fmt.Errorf("create secrets for validation: %w", err)
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
func (g *Generator) check(d *documents, facts Facts, m Machine) (warnings []string, err error) {
	if err := g.conflict(d, m); err != nil {
		return nil, err
	}

	if err := g.tooNew(d, m); err != nil {
		return nil, err
	}

	if problem := cmp.Or(g.contradiction(d, m), facts.overlap()); problem != "" {
		return nil, g.blame(m, problem)
	}

	if err := g.inNetworks(facts, m); err != nil {
		return nil, err
	}

	if err := g.inLists(d, m); err != nil {
		return nil, err
	}

	if err := g.removed(d, m); err != nil {
		return nil, err
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
// peers. It also finds what the Talos of the machine alone refuses.
func (g *Generator) contradiction(d *documents, m Machine) string {
	main := d.known.RawV1Alpha1()

	switch {
	case main == nil || main.MachineConfig == nil || main.ClusterConfig == nil:
		return "no machine or no cluster section"
	case main.MachineConfig.MachineType != string(m.Role):
		return fmt.Sprintf("machine.type %s for a machine of role %s", main.MachineConfig.MachineType, m.Role)
	}

	for _, secret := range identitySecrets(d.known, g.input.Options.SecretsBundle) {
		if !bytes.Equal(secret.config, secret.bundle) {
			return secret.In(d.known.Has).String() + " differs from the secrets bundle"
		}
	}

	if problem := connects(g.cluster, d.known); problem != "" {
		return problem
	}

	return cmp.Or(unannounced(d, m), nameless(d, m), unregistered(d), unreadable(d))
}

// unreadable finds an encryption configuration with which kube-apiserver does not start.
func unreadable(d *documents) string {
	own, is := places.Document[*k8s.KubeEtcdEncryptionConfigV1Alpha1](d.known.Documents())
	if !is || pki.ReadsEncryption(own.Config.Object) {
		return ""
	}

	return "config of " + k8s.KubeEtcdEncryptionConfig + " is not an encryption configuration: resources is a list, " +
		"each with a list of resources and a list of providers"
}

// unregistered finds a machine that is to have no Kubernetes node. Talos runs it, with a kubelet for static pods alone
// (Talos 1.13, k8s/kubelet_spec.go), but no operation of this provider works without the node.
func unregistered(d *documents) string {
	if node := d.known.K8sNodeConfig(); node == nil || !node.SkipNodeRegistration() {
		return ""
	}

	return "skipNodeRegistration is true, so the machine would have no Kubernetes node, which talosop waits " +
		"for, drains and marks as its own"
}

// identitySecret is a secret that makes a machine a member of its cluster.
type identitySecret struct {
	places.Fact

	config, bundle []byte
}

func identitySecrets(p config.Provider, bundle *secrets.Bundle) []identitySecret {
	main := p.RawV1Alpha1()
	machine, section := main.MachineConfig, main.ClusterConfig

	found := []identitySecret{
		{places.MachineToken, []byte(machine.MachineToken), []byte(bundle.TrustdInfo.Token)},
		{places.TalosCA, certificate(machine.MachineCA), bundle.Certs.OS.Crt},
		{places.BootstrapToken, []byte(section.BootstrapToken), []byte(bundle.Secrets.BootstrapToken)},
	}

	found = append(found, discoverySecrets(p, bundle)...)
	found = append(found, kubernetesAuthority(p, bundle))

	if !main.Machine().Type().IsControlPlane() {
		return found
	}

	etcd := identitySecret{places.EtcdCA, nil, bundle.Certs.Etcd.Crt}
	if section.EtcdConfig != nil {
		etcd.config = certificate(section.EtcdConfig.RootCA)
	}

	return append(append(found, etcd), controlPlaneSecrets(p, bundle)...)
}

// discoverySecrets are by what members of a cluster find each other.
func discoverySecrets(p config.Provider, bundle *secrets.Bundle) []identitySecret {
	id := identitySecret{places.ClusterID, nil, []byte(bundle.Cluster.ID)}
	secret := identitySecret{places.ClusterSecret, nil, []byte(bundle.Cluster.Secret)}

	if own := p.DiscoveryIdentityConfig(); own != nil {
		id.config, secret.config = []byte(own.ClusterID()), []byte(own.ClusterSecret())
	}

	return []identitySecret{id, secret}
}

// kubernetesAuthority is the authority that a control plane signs with, and that a worker trusts: the first one that
// is accepted, where the library puts the one that issues.
func kubernetesAuthority(p config.Provider, bundle *secrets.Bundle) identitySecret {
	found := identitySecret{places.KubernetesCA, nil, bundle.Certs.K8s.Crt}

	if own := p.K8sAPIServerCAConfig(); own != nil && len(own.AcceptedCAs()) > 0 {
		found.config = own.AcceptedCAs()[0].Crt
	}

	return found
}

// controlPlaneSecrets are those of an API server.
func controlPlaneSecrets(p config.Provider, bundle *secrets.Bundle) []identitySecret {
	aggregator := identitySecret{places.AggregatorCA, nil, bundle.Certs.K8sAggregator.Crt}
	account := identitySecret{places.ServiceAccount, nil, bundle.Certs.K8sServiceAccount.Key}

	if own := p.K8sAggregatorCAConfig(); own != nil {
		aggregator.config = certificate(own.IssuingCA())
	}

	if own := p.K8sServiceAccountConfig(); own != nil && own.IssuingKey() != nil {
		account.config = own.IssuingKey().Key
	}

	return []identitySecret{aggregator, account}
}

func hasInstallDisk(provider config.Provider) bool {
	if own := provider.UnattendedInstallConfig(); own != nil {
		return true // it is not valid without one
	}

	install := provider.RawV1Alpha1().MachineConfig.MachineInstall

	return install != nil && (install.InstallDisk != "" || install.InstallDiskSelector != nil)
}

// oneLine turns the nested lists of problems of the machinery library into one line.
func oneLine(err error) string {
	var lines []string

	for line := range strings.Lines(err.Error()) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "* ")
		if line != "" && !strings.HasSuffix(line, "occurred:") {
			lines = append(lines, line)
		}
	}

	return strings.Join(lines, "; ")
}
