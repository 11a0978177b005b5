package lifecycle_test

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// The configuration of a worker has the join tokens and the secret of the discovery service. It has no private key,
// and nothing that authenticates owner marks. The configuration of a control plane has everything.
func TestConfiguration_secretsOfRoles(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1, sim.Options{})
	b := s.bundle.Secrets()
	encoded := func(key []byte) string { return base64.StdEncoding.EncodeToString(key) }

	shared := map[string]string{
		"machine token":     b.TrustdInfo.Token,
		"cluster token":     b.Secrets.BootstrapToken,
		"discovery secret":  b.Cluster.Secret,
		"Talos CA":          encoded(b.Certs.OS.Crt),
		"Kubernetes CA":     encoded(b.Certs.K8s.Crt),
		"identity (public)": b.Cluster.ID,
	}
	ofControlPlanes := map[string]string{
		"encryption of Secrets, source of the owner keys": b.Secrets.SecretboxEncryptionSecret,
		"key of the Talos CA":                             encoded(b.Certs.OS.Key),
		"key of the Kubernetes CA":                        encoded(b.Certs.K8s.Key),
		"key of the etcd CA":                              encoded(b.Certs.Etcd.Key),
		"key of the aggregator CA":                        encoded(b.Certs.K8sAggregator.Key),
		"service account key":                             encoded(b.Certs.K8sServiceAccount.Key),
	}

	for role, has := range map[step.Role]map[string]string{step.Worker: shared,
		step.ControlPlane: union(shared, ofControlPlanes)} {
		config := string(s.render(role).Bytes)

		for _, name := range slices.Sorted(maps.Keys(union(shared, ofControlPlanes))) {
			secret := union(shared, ofControlPlanes)[name]
			if _, want := has[name]; secret == "" || strings.Contains(config, secret) != want {
				t.Errorf("the configuration of a %s has the %s: %v, want %v", role, name, !want, want)
			}
		}
	}
}

func union(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)

	return out
}
