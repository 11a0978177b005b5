package pki

import (
	"bytes"
	"crypto/sha256"
	stdx509 "crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/role"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
)

// UnknownRoles lists which roles Talos does not know, and all those that it does.
func UnknownRoles(roles []string) (unknown, known []string) {
	_, unknown = role.Parse(roles)

	return unknown, role.All.Strings()
}

// Authority describes the authority of that name, one of those of Authorities.
func (b *Bundle) Authority(name string) Authority {
	all := b.Authorities()
	if i := slices.IndexFunc(all, func(a Authority) bool { return a.Name == name }); i >= 0 {
		return all[i]
	}

	return Authority{}
}

// ConfigFingerprint is the SHA-256 of a kubeconfig or a talosconfig without its private keys, in lower-case hex: what
// `grep -vE '^ +(client-key-data|key):' FILE | sha256sum` prints.
func ConfigFingerprint(file []byte) string {
	sum := sha256.New()

	for line := range bytes.Lines(file) {
		inner := bytes.TrimLeft(line, " ")
		if len(inner) < len(line) && (bytes.HasPrefix(inner, []byte("client-key-data:")) ||
			bytes.HasPrefix(inner, []byte("key:"))) {
			continue
		}

		sum.Write(line)
	}

	return hex.EncodeToString(sum.Sum(nil))
}

// OnlyKubeconfigOf reports whether a file is a kubeconfig that holds nothing but client certificates which the
// authorities with these fingerprints signed.
func OnlyKubeconfigOf(file []byte, authorities ...string) bool {
	var parsed struct {
		Clusters []struct {
			Cluster map[string]any `yaml:"cluster"`
		} `yaml:"clusters"`
		Users []struct {
			User map[string]any `yaml:"user"`
		} `yaml:"users"`
	}

	if expansion.CheckYAML(file) != nil {
		return false
	}

	if err := yaml.Unmarshal(file, &parsed); err != nil || len(parsed.Clusters) == 0 || len(parsed.Users) == 0 {
		return false
	}

	var signers []*stdx509.Certificate

	for _, c := range parsed.Clusters {
		signer := encodedCertificate(c.Cluster["certificate-authority-data"])
		if !isOneOf(signer, authorities) {
			return false
		}

		signers = append(signers, signer)
	}

	for _, u := range parsed.Users {
		certificate := encodedCertificate(u.User["client-certificate-data"])

		// A token, a password or a plug-in would be a separate credential.
		if len(u.User) != 2 || u.User["client-key-data"] == nil || !signedByAny(certificate, signers) {
			return false
		}
	}

	return true
}

// OnlyTalosconfigOf reports whether a file is a talosconfig that holds nothing but client certificates which the
// authorities with these fingerprints signed.
func OnlyTalosconfigOf(file []byte, authorities ...string) bool {
	// The machinery library (1.13) panics at a context without contents.
	var parsed struct {
		Contexts map[string]struct {
			CA   string         `yaml:"ca"`
			Crt  string         `yaml:"crt"`
			Auth map[string]any `yaml:"auth"`
		} `yaml:"contexts"`
	}

	if expansion.CheckYAML(file) != nil {
		return false
	}

	if err := yaml.Unmarshal(file, &parsed); err != nil || len(parsed.Contexts) == 0 {
		return false
	}

	for _, c := range parsed.Contexts {
		signer := encodedCertificate(c.CA)
		if !isOneOf(signer, authorities) || !signedByAny(encodedCertificate(c.Crt), []*stdx509.Certificate{signer}) ||
			len(c.Auth) > 0 {
			return false
		}
	}

	return true
}

// encodedCertificate reads a certificate in base64 of PEM; nil where there is none.
func encodedCertificate(value any) *stdx509.Certificate {
	text, _ := value.(string)

	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return nil
	}

	block, _ := pem.Decode(decoded)
	if block == nil {
		return nil
	}

	certificate, err := stdx509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}

	return certificate
}

func isOneOf(certificate *stdx509.Certificate, fingerprints []string) bool {
	if certificate == nil {
		return false
	}

	digest := sha256.Sum256(certificate.Raw)

	return slices.Contains(fingerprints, hex.EncodeToString(digest[:]))
}

func signedByAny(certificate *stdx509.Certificate, signers []*stdx509.Certificate) bool {
	return certificate != nil && slices.ContainsFunc(signers, func(signer *stdx509.Certificate) bool {
		return certificate.CheckSignatureFrom(signer) == nil
	})
}
