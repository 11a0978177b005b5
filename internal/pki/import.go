package pki

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	talosx509 "github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/cluster"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
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
	main, documents, err := secretDocuments(config)
	if err != nil {
		return nil, err
	}

	var found machineSecrets
	// The error is not wrapped: it quotes the value that did not decode, which may be a secret.
	if main.Decode(&found) != nil {
		return nil, errShape
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

	for _, kind := range slices.Sorted(maps.Keys(documents)) {
		if err := documentSecrets[kind](documents[kind], imported); errors.Is(err, errNoPlace) {
			return nil, fmt.Errorf("%s: %w", kind, err)
		} else if err != nil {
			return nil, errShape
		}
	}

	return imported, validate(imported)
}

// errShape does not say which value it is about, which may be a secret.
var errShape = errors.New("its secrets do not have the shape that Talos writes")

// documentSecrets read the secrets of documents that take the place of fields of the main one (since Talos 1.14). As
// there, only what is needed is decoded.
var documentSecrets = map[string]func(document *yaml.Node, into *secrets.Bundle) error{
	cluster.DiscoveryIdentityKind: func(document *yaml.Node, into *secrets.Bundle) error {
		var found struct {
			ID     string `yaml:"clusterID"`
			Secret string `yaml:"clusterSecret"`
		}

		err := document.Decode(&found)
		into.Cluster = &secrets.Cluster{ID: found.ID, Secret: found.Secret}

		return err
	},
	k8s.KubeAPIServerCAConfig: func(document *yaml.Node, into *secrets.Bundle) (err error) {
		into.Certs.K8s, err = issuingCA(document)

		return err
	},
	k8s.KubeAggregatorCAConfig: func(document *yaml.Node, into *secrets.Bundle) (err error) {
		into.Certs.K8sAggregator, err = issuingCA(document)

		return err
	},
	k8s.KubeServiceAccountConfig: func(document *yaml.Node, into *secrets.Bundle) error {
		var found struct {
			Issuer struct {
				PrivateKey string `yaml:"privateKey"`
			} `yaml:"issuer"`
		}

		err := document.Decode(&found)
		into.Certs.K8sServiceAccount = &talosx509.PEMEncodedKey{Key: []byte(found.Issuer.PrivateKey)}

		return err
	},
	k8s.KubeEtcdEncryptionConfig: importEncryption,
}

func issuingCA(document *yaml.Node) (*talosx509.PEMEncodedCertificateAndKey, error) {
	var found struct {
		Issuing struct {
			Cert string `yaml:"cert"`
			Key  string `yaml:"key"`
		} `yaml:"issuingCA"`
	}

	err := document.Decode(&found)

	return &talosx509.PEMEncodedCertificateAndKey{Crt: []byte(found.Issuing.Cert), Key: []byte(found.Issuing.Key)}, err
}

// secretDocuments finds the v1alpha1 document, the one without a kind, among the documents of a configuration, and
// those of documentSecrets.
func secretDocuments(config []byte) (main *yaml.Node, documents map[string]*yaml.Node, err error) {
	if err := expansion.CheckYAML(config); err != nil {
		return nil, nil, err
	}

	decoder := yaml.NewDecoder(bytes.NewReader(config))
	documents = map[string]*yaml.Node{}

	for {
		var document yaml.Node

		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF) && main == nil:
			return nil, nil, errors.New("it has no v1alpha1 document (the one with the sections machine and cluster)")
		case errors.Is(err, io.EOF):
			return main, documents, nil
		case err != nil:
			return nil, nil, fmt.Errorf("not YAML: %w", err)
		}

		var id struct {
			Kind string `yaml:"kind"`
		}

		switch {
		case isMainDocument(&document):
			main = &document
		case document.Decode(&id) == nil && documentSecrets[id.Kind] != nil:
			documents[id.Kind] = &document
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
