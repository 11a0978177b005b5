// Package officialstate reads the state of the official provider, siderolabs/talos, for `moved` blocks that lead
// from its types to those of talosop. Pure.
package officialstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// Is reports whether the address of a provider, host/namespace/type, is that of the official one, from any registry.
func Is(provider string) bool {
	return provider == "siderolabs/talos" || strings.HasSuffix(provider, "/siderolabs/talos")
}

// SecretsType is the type that has the secrets of a cluster.
const SecretsType = "talos_machine_secrets"

// pair is a certificate and its key, in base64 of PEM.
type pair struct {
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// machineSecrets is the attribute of that name (siderolabs/talos 0.3 to 0.12, talos_machine_secrets_resource.go,
// version 1 of the schema).
type machineSecrets struct {
	Cluster struct {
		ID     string `json:"id"`
		Secret string `json:"secret"`
	} `json:"cluster"`
	Secrets struct {
		BootstrapToken            string `json:"bootstrap_token"`
		SecretboxEncryptionSecret string `json:"secretbox_encryption_secret"`
		AESCBCEncryptionSecret    string `json:"aescbc_encryption_secret"`
	} `json:"secrets"`
	TrustdInfo struct {
		Token string `json:"token"`
	} `json:"trustdinfo"`
	Certs struct {
		Etcd              pair `json:"etcd"`
		Kubernetes        pair `json:"k8s"`
		Aggregator        pair `json:"k8s_aggregator"`
		ServiceAccountKey pair `json:"k8s_serviceaccount"`
		Talos             pair `json:"os"`
	} `json:"certs"`
}

var errState = errors.New("it is not what siderolabs/talos writes since version 0.3; apply with a newer one first")

// Secrets are the secrets in the state of a talos_machine_secrets. Errors do not quote it.
func Secrets(state []byte) (*pki.Bundle, error) {
	var has struct {
		MachineSecrets *machineSecrets `json:"machine_secrets"`
	}

	if json.Unmarshal(state, &has) != nil || has.MachineSecrets == nil {
		return nil, errState
	}

	file, err := yaml.Marshal(has.MachineSecrets.file())
	if err != nil {
		return nil, errState
	}

	bundle, err := pki.Parse(file)
	if err != nil {
		return nil, fmt.Errorf("the secrets in it: %w", err)
	}

	return bundle, nil
}

// file is the secrets as `talosctl gen secrets` writes them.
func (s machineSecrets) file() map[string]any {
	both := func(p pair) map[string]string { return map[string]string{"crt": p.Cert, "key": p.Key} }

	secrets := map[string]string{"bootstraptoken": s.Secrets.BootstrapToken}
	for name, value := range map[string]string{
		"secretboxencryptionsecret": s.Secrets.SecretboxEncryptionSecret,
		"aescbcencryptionsecret":    s.Secrets.AESCBCEncryptionSecret,
	} {
		if value != "" {
			secrets[name] = value
		}
	}

	return map[string]any{
		"cluster": map[string]string{"id": s.Cluster.ID, "secret": s.Cluster.Secret}, "secrets": secrets,
		"trustdinfo": map[string]string{"token": s.TrustdInfo.Token},
		"certs": map[string]any{
			"etcd": both(s.Certs.Etcd), "k8s": both(s.Certs.Kubernetes), "k8saggregator": both(s.Certs.Aggregator),
			"k8sserviceaccount": map[string]string{"key": s.Certs.ServiceAccountKey.Key}, "os": both(s.Certs.Talos),
		},
	}
}
