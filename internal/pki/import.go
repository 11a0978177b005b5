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

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// ErrNotControlPlane says that a machine configuration does not hold the secrets of its cluster, because it
// is not that of a control-plane machine.
var ErrNotControlPlane = errors.New("not the configuration of a control-plane machine")

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
	documents, err := documentsByKind(config)
	if err != nil {
		return nil, err
	}

	// Only what is needed is decoded, so that the configuration of a newer Talos, with fields this build does not know,
	// imports too. Errors are not wrapped: they quote the value that did not decode, which may be a secret.
	var main struct {
		Machine *struct {
			Type string `yaml:"type"`
		} `yaml:"machine"`
		Cluster *struct{} `yaml:"cluster"`
	}

	if documents[""].Decode(&main) != nil {
		return nil, errShape
	}

	if main.Machine == nil || main.Cluster == nil {
		return nil, errors.New("machine or cluster section is missing")
	}

	kind, err := machine.ParseType(main.Machine.Type)
	if err != nil || !kind.IsControlPlane() {
		return nil, fmt.Errorf("%w: machine.type is %q, and such a machine has no private keys; use the configuration of "+
			"a control-plane machine",
			ErrNotControlPlane, main.Machine.Type)
	}

	imported := &secrets.Bundle{Cluster: &secrets.Cluster{}, Secrets: &secrets.Secrets{}, Certs: &secrets.Certs{},
		TrustdInfo: &secrets.TrustdInfo{}}
	if readSecrets(documents, imported) != nil {
		return nil, errShape
	}

	if own := documents[places.SecretboxKey.Document.Kind]; own != nil {
		if err := importEncryption(own, imported); errors.Is(err, errNoPlace) {
			return nil, fmt.Errorf("%s: %w", places.SecretboxKey.Document.Kind, err)
		} else if err != nil {
			return nil, errShape
		}
	}

	return imported, validate(imported)
}

// errShape does not say which value it is about, which may be a secret.
var errShape = errors.New("the secrets do not have the format of Talos")

// readSecrets reads secrets from the documents that have them.
func readSecrets(documents map[string]*yaml.Node, into *secrets.Bundle) error {
	var account string

	certs := into.Certs
	at := func(f places.Fact) places.Spot { return f.In(func(kind string) bool { return documents[kind] != nil }) }

	for _, secret := range []struct {
		at   places.Spot
		into any
	}{
		{at(places.ClusterID), &into.Cluster.ID}, {at(places.ClusterSecret), &into.Cluster.Secret},
		{at(places.MachineToken), &into.TrustdInfo.Token}, {at(places.BootstrapToken), &into.Secrets.BootstrapToken},
		{places.AESCBCKey.Main, &into.Secrets.AESCBCEncryptionSecret},
		{places.SecretboxKey.Main, &into.Secrets.SecretboxEncryptionSecret},
		{at(places.TalosCA), &certs.OS}, {at(places.EtcdCA), &certs.Etcd}, {at(places.KubernetesCA), &certs.K8s},
		{at(places.AggregatorCA), &certs.K8sAggregator}, {places.ServiceAccount.Main, &certs.K8sServiceAccount},
	} {
		if err := decodeAt(documents, secret.at, secret.into); err != nil {
			return err
		}
	}

	if own := at(places.ServiceAccountKey); own.Kind != "" {
		if err := decodeAt(documents, own, &account); err != nil {
			return err
		}

		certs.K8sServiceAccount = &talosx509.PEMEncodedKey{Key: []byte(account)}
	}

	return nil
}

// decodeAt decodes the value at a spot; where there is none it leaves into as it is. Documents of their own have
// certificates as texts, and the main one as base64.
func decodeAt(documents map[string]*yaml.Node, at places.Spot, into any) error {
	value := *documents[at.Kind]

	for _, key := range at.Path {
		var section map[string]yaml.Node
		if err := value.Decode(&section); err != nil {
			return err
		}

		value = section[key]
	}

	pair, isPair := into.(**talosx509.PEMEncodedCertificateAndKey)
	if at.Kind == "" || !isPair {
		return value.Decode(into)
	}

	var found struct {
		Cert string `yaml:"cert"`
		Key  string `yaml:"key"`
	}

	err := value.Decode(&found)
	*pair = &talosx509.PEMEncodedCertificateAndKey{Crt: []byte(found.Cert), Key: []byte(found.Key)}

	return err
}

// documentsByKind are the documents of a configuration by kind; the v1alpha1 document, which is there, has none.
func documentsByKind(config []byte) (map[string]*yaml.Node, error) {
	if err := expansion.CheckYAML(config); err != nil {
		return nil, err
	}

	decoder := yaml.NewDecoder(bytes.NewReader(config))
	documents := map[string]*yaml.Node{}

	for {
		var document yaml.Node

		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF) && documents[""] == nil:
			return nil, errors.New("the v1alpha1 document (with the sections machine and cluster) is missing")
		case errors.Is(err, io.EOF):
			return documents, nil
		case err != nil:
			return nil, fmt.Errorf("not YAML: %w", err)
		}

		var id struct {
			Kind string `yaml:"kind"`
		}

		if document.Decode(&id) == nil && (id.Kind != "" || isMainDocument(&document)) {
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
