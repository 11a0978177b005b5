package pki

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"sync"

	talosx509 "github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
)

// ErrInvalidBundle is wrapped by every error that says a secrets bundle is incomplete or broken.
var ErrInvalidBundle = errors.New("invalid secrets bundle")

// Parse reads the file that `talosctl gen secrets` writes. Every part is checked: the authorities are
// certificates that may sign and whose keys belong to them, and nothing is missing. All problems are
// reported at once, by the names used in the file and without their values. An expired authority is
// accepted, since the cluster it belongs to must still be removable; see Authorities.
func Parse(data []byte) (*Bundle, error) {
	if err := expansion.CheckYAML(data); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidBundle, err)
	}

	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, fmt.Errorf("%w: not YAML: %w", ErrInvalidBundle, err)
	}

	if err := checkShape(&document); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidBundle, err)
	}

	parsed, rotated := &secrets.Bundle{}, &Bundle{}

	// Each part is decoded by itself because the errors of the YAML library quote the value they could not
	// decode, which would be a secret: the part is named instead.
	root := document.Content[0]
	for i := 0; i < len(root.Content); i += 2 {
		name, value := root.Content[i].Value, root.Content[i+1]

		known, err := rotated.decodeSpare(name, value)
		if !known {
			err = decodePart(parsed, name, value)
		}

		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalidBundle, err)
		}
	}

	if err := validateOnce(data, parsed, rotated); err != nil {
		return nil, err
	}

	bundle := newBundle(parsed)
	bundle.next, bundle.previous, bundle.former = rotated.next, rotated.previous, rotated.former
	bundle.rotated = rotated.rotated
	bundle.addRotated(rotated.previous.kinds()...)

	return bundle, nil
}

// checkShape recognizes the files that are most often mistaken for a secrets bundle.
func checkShape(document *yaml.Node) error {
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return errors.New("expected a YAML mapping in the format of `talosctl gen secrets`")
	}

	root := document.Content[0]
	for i := 0; i < len(root.Content); i += 2 {
		switch root.Content[i].Value {
		case "machine":
			return errors.New("found a machine configuration, expected the output of `talosctl gen secrets`")
		case "contexts":
			return errors.New("found a talosconfig, which only contains client credentials, expected the output of " +
				"`talosctl gen secrets`")
		case "Cluster", "Certs", "TrustdInfo":
			return errors.New("found the JSON form of a bundle, expected the YAML output of `talosctl gen secrets`")
		}
	}

	return nil
}

func decodePart(into *secrets.Bundle, name string, value *yaml.Node) error {
	var target any

	switch name {
	case "cluster":
		target = &into.Cluster
	case "secrets":
		target = &into.Secrets
	case "trustdinfo":
		target = &into.TrustdInfo
	case "certs":
		return decodeCerts(into, value)
	default:
		return fmt.Errorf("unknown part %q (line %d); expected cluster, secrets, trustdinfo and certs", name, value.Line)
	}

	if value.Decode(target) != nil {
		return fmt.Errorf("%s (line %d) does not have the format of `talosctl gen secrets`", name, value.Line)
	}

	return nil
}

func decodeCerts(into *secrets.Bundle, value *yaml.Node) error {
	if value.Kind != yaml.MappingNode {
		return fmt.Errorf("certs (line %d) is not a mapping", value.Line)
	}

	into.Certs = &secrets.Certs{}
	targets := map[string]any{
		"etcd":              &into.Certs.Etcd,
		"k8s":               &into.Certs.K8s,
		"k8saggregator":     &into.Certs.K8sAggregator,
		"k8sserviceaccount": &into.Certs.K8sServiceAccount,
		"os":                &into.Certs.OS,
	}

	for i := 0; i < len(value.Content); i += 2 {
		name, part := value.Content[i].Value, value.Content[i+1]

		target, known := targets[name]
		if !known {
			return fmt.Errorf("unknown part certs.%s (line %d)", name, part.Line)
		}

		if part.Decode(target) != nil {
			return fmt.Errorf("certs.%s (line %d) needs crt and key with base64-encoded PEM", name, part.Line)
		}
	}

	return nil
}

// sound are the digests of bundles in which nothing was wrong. A run parses the same one or two bundles dozens of
// times, and most of that is checking keys: reading one RSA key of 4096 bits takes longer than all else.
var sound sync.Map

// validateOnce is validate, and nothing for data that has passed it in this process.
func validateOnce(data []byte, parsed *secrets.Bundle, rotated *Bundle) error {
	digest := sha256.Sum256(data)
	if _, passed := sound.Load(digest); passed {
		return nil
	}

	if err := validate(parsed, rotated.checkSpare()...); err != nil {
		return err
	}

	sound.Store(digest, struct{}{})

	return nil
}

// validate reports every problem of s, each on its own line, after the known ones.
func validate(s *secrets.Bundle, known ...error) error {
	problems := append(missingParts(s), known...)

	if s.Certs != nil {
		for _, authority := range authorityParts(s.Certs) {
			if err := checkAuthority(authority.pair); err != nil {
				problems = append(problems, fmt.Errorf("certs.%s: %w", authority.part, err))
			}
		}

		if err := checkServiceAccountKey(s.Certs.K8sServiceAccount); err != nil {
			problems = append(problems, fmt.Errorf("certs.k8sserviceaccount: %w", err))
		}
	}

	if len(problems) == 0 {
		return nil
	}

	return fmt.Errorf("%w: %w", ErrInvalidBundle, errors.Join(problems...))
}

func missingParts(s *secrets.Bundle) []error {
	var problems []error

	require := func(name string, present bool) {
		if !present {
			problems = append(problems, fmt.Errorf("%s is missing", name))
		}
	}

	require("cluster.id", s.Cluster != nil && s.Cluster.ID != "")
	require("cluster.secret", s.Cluster != nil && s.Cluster.Secret != "")
	require("secrets.bootstraptoken", s.Secrets != nil && s.Secrets.BootstrapToken != "")
	require("trustdinfo.token", s.TrustdInfo != nil && s.TrustdInfo.Token != "")
	require("certs", s.Certs != nil)

	if s.Secrets != nil {
		secretbox, aescbc := s.Secrets.SecretboxEncryptionSecret != "", s.Secrets.AESCBCEncryptionSecret != ""
		require("secrets.secretboxencryptionsecret (or aescbcencryptionsecret)", secretbox || aescbc)

		// Talos splits the token at its dot and panics without one (machinery 1.13, cluster.token).
		id, secret, dotted := strings.Cut(s.Secrets.BootstrapToken, ".")
		if s.Secrets.BootstrapToken != "" && (!dotted || id == "" || secret == "") {
			problems = append(problems, errors.New("secrets.bootstraptoken does not have the format <id>.<secret>"))
		}
	}

	return problems
}

func checkAuthority(pair *talosx509.PEMEncodedCertificateAndKey) error {
	switch {
	case pair == nil:
		return errors.New("is missing")
	case len(pair.Crt) == 0:
		return errors.New("crt is missing")
	case len(pair.Key) == 0:
		return errors.New("key is missing")
	}

	certificate, err := pair.GetCert()
	if err != nil {
		return fmt.Errorf("crt is not a PEM certificate: %w", err)
	}

	if !certificate.IsCA {
		return errors.New("crt is not a CA certificate")
	}

	key, err := pair.GetKey()
	if err != nil {
		return fmt.Errorf("key is not a PEM private key: %w", err)
	}

	return keyBelongsTo(certificate, key)
}

func keyBelongsTo(certificate *x509.Certificate, key any) error {
	signer, ok := key.(crypto.Signer)
	if !ok {
		return fmt.Errorf("key has unsupported type %T", key)
	}

	public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(certificate.PublicKey) {
		return errors.New("key does not match crt")
	}

	return nil
}

func checkServiceAccountKey(key *talosx509.PEMEncodedKey) error {
	if key == nil || len(key.Key) == 0 {
		return errors.New("key is missing")
	}

	if _, err := key.GetKey(); err != nil {
		return fmt.Errorf("key is not a PEM private key: %w", err)
	}

	return nil
}
