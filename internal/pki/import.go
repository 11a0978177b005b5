package pki

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	talosx509 "github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"go.yaml.in/yaml/v4"
)

// ErrNotControlPlane says that a machine configuration does not hold the secrets of its cluster, because it
// is not that of a control-plane machine.
var ErrNotControlPlane = errors.New("not the configuration of a control-plane machine")

// machineSecrets is where the v1alpha1 document keeps what a bundle consists of. Only these fields are
// decoded, so that the configuration of a newer Talos, with fields this build does not know, imports too.
type machineSecrets struct {
	Machine *struct {
		Type  string                                 `yaml:"type"`
		Token string                                 `yaml:"token"`
		CA    *talosx509.PEMEncodedCertificateAndKey `yaml:"ca"`
	} `yaml:"machine"`
	Cluster *struct {
		ID             string                                 `yaml:"id"`
		Secret         string                                 `yaml:"secret"`
		Token          string                                 `yaml:"token"`
		AESCBC         string                                 `yaml:"aescbcEncryptionSecret"`
		Secretbox      string                                 `yaml:"secretboxEncryptionSecret"`
		CA             *talosx509.PEMEncodedCertificateAndKey `yaml:"ca"`
		AggregatorCA   *talosx509.PEMEncodedCertificateAndKey `yaml:"aggregatorCA"`
		ServiceAccount *talosx509.PEMEncodedKey               `yaml:"serviceAccount"`
		Etcd           struct {
			CA *talosx509.PEMEncodedCertificateAndKey `yaml:"ca"`
		} `yaml:"etcd"`
	} `yaml:"cluster"`
}

// FromMachineConfig takes the secrets out of the configuration of a control-plane machine, the only place
// beside the bundle itself that holds all of them. A worker's configuration gives ErrNotControlPlane. What
// was found is checked as in Parse; problems are reported by the names used in a bundle's file.
func FromMachineConfig(config []byte) (*Bundle, error) {
	imported, err := fromMachineConfig(config)
	if err != nil {
		return nil, fmt.Errorf("import secrets from machine configuration: %w", err)
	}

	return newBundle(imported), nil
}

func fromMachineConfig(config []byte) (*secrets.Bundle, error) {
	document, err := mainDocument(config)
	if err != nil {
		return nil, err
	}

	var found machineSecrets
	// The error is not wrapped: it quotes the value that did not decode, which may be a secret.
	if document.Decode(&found) != nil {
		return nil, errors.New("its secrets do not have the shape that Talos writes")
	}

	if found.Machine == nil || found.Cluster == nil {
		return nil, errors.New("it needs both a machine and a cluster section")
	}

	kind, err := machine.ParseType(found.Machine.Type)
	if err != nil || !kind.IsControlPlane() {
		return nil, fmt.Errorf("%w: machine.type is %q and such a machine holds no private keys; use the configuration of "+
			"a control-plane machine",
			ErrNotControlPlane, found.Machine.Type)
	}

	imported := &secrets.Bundle{
		Cluster: &secrets.Cluster{ID: found.Cluster.ID, Secret: found.Cluster.Secret},
		Secrets: &secrets.Secrets{
			BootstrapToken:            found.Cluster.Token,
			AESCBCEncryptionSecret:    found.Cluster.AESCBC,
			SecretboxEncryptionSecret: found.Cluster.Secretbox,
		},
		TrustdInfo: &secrets.TrustdInfo{Token: found.Machine.Token},
		Certs: &secrets.Certs{
			OS:                found.Machine.CA,
			K8s:               found.Cluster.CA,
			Etcd:              found.Cluster.Etcd.CA,
			K8sAggregator:     found.Cluster.AggregatorCA,
			K8sServiceAccount: found.Cluster.ServiceAccount,
		},
	}

	return imported, validate(imported)
}

// mainDocument finds the v1alpha1 document, the one without a kind, among the documents of a configuration.
func mainDocument(config []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(config))

	for {
		var document yaml.Node
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return nil, errors.New("it has no v1alpha1 document (the one with the sections machine and cluster)")
		} else if err != nil {
			return nil, fmt.Errorf("not YAML: %w", err)
		}

		if isMainDocument(&document) {
			return &document, nil
		}
	}
}

func isMainDocument(document *yaml.Node) bool {
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return false
	}

	isMain := false

	root := document.Content[0]
	for i := 0; i < len(root.Content); i += 2 {
		switch root.Content[i].Value {
		case "kind":
			return false
		case "machine", "cluster":
			isMain = true
		}
	}

	return isMain
}
