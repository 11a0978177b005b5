package pki

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	talosx509 "github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// ErrRotating says that a key is to be turned over again whose former one is still accepted.
var ErrRotating = errors.New("the key before the present one is still accepted")

// previous is the part of a bundle's file with the keys that its present ones took the place of and that machines still
// accept. `talosctl` passes it over (machinery 1.13, secrets.LoadBundle).
type previous struct {
	Certs          previousCerts `yaml:"certs,omitempty"`
	BootstrapToken string        `yaml:"bootstraptoken,omitempty"`
}

type previousCerts struct {
	K8s               *talosx509.PEMEncodedCertificateAndKey `yaml:"k8s,omitempty"`
	K8sAggregator     *talosx509.PEMEncodedCertificateAndKey `yaml:"k8saggregator,omitempty"`
	K8sServiceAccount *talosx509.PEMEncodedKey               `yaml:"k8sserviceaccount,omitempty"`
	OS                *talosx509.PEMEncodedCertificateAndKey `yaml:"os,omitempty"`
}

// file is what YAML writes: the file of `talosctl gen secrets`, and what only a bundle has whose keys were turned over.
type file struct {
	Bundle   *secrets.Bundle `yaml:",inline"`
	Previous *previous       `yaml:"previous,omitempty"`
	// Rotated are the kinds that were ever turned over.
	Rotated []string `yaml:"rotated,omitempty"`
}

func (b *Bundle) file() file {
	out := file{Bundle: b.secrets}

	if len(b.Previous()) > 0 {
		out.Previous = &b.previous
	}

	for _, kind := range b.rotated {
		out.Rotated = append(out.Rotated, kindName(kind))
	}

	return out
}

// Rotated are the kinds of keys that were ever turned over, in the order of [rotation.Kinds].
func (b *Bundle) Rotated() []rotation.Kind { return slices.Clone(b.rotated) }

// Previous are the kinds of keys of which the bundle has the one before the present one, too.
func (b *Bundle) Previous() []rotation.Kind {
	return slices.DeleteFunc(rotation.Kinds(), func(k rotation.Kind) bool { return !b.previous.has(k) })
}

func (p previous) has(kind rotation.Kind) bool {
	switch kind {
	case rotation.TalosCA:
		return p.Certs.OS != nil
	case rotation.KubernetesCA:
		return p.Certs.K8s != nil
	case rotation.AggregatorCA:
		return p.Certs.K8sAggregator != nil
	case rotation.ServiceAccountKey:
		return p.Certs.K8sServiceAccount != nil
	case rotation.ClusterToken:
		return p.BootstrapToken != ""
	default:
		return false
	}
}

// Rotate is a bundle with new keys of some kinds. It keeps those that they take the place of as the previous ones. What
// the cluster is known by stays, and so do the authority of etcd and all that backups need. A kind whose previous key
// is still there is ErrRotating: machines may carry no other one yet.
func (b *Bundle) Rotate(kinds ...rotation.Kind) (*Bundle, error) {
	out := b.copy()

	for _, kind := range kinds {
		if b.previous.has(kind) {
			return nil, fmt.Errorf("turn the %s over: %w", kind, ErrRotating)
		}

		if err := out.turn(kind); err != nil {
			return nil, fmt.Errorf("turn the %s over: %w", kind, err)
		}
	}

	out.rotated = slices.DeleteFunc(rotation.Kinds(), func(k rotation.Kind) bool {
		return !slices.Contains(b.rotated, k) && !slices.Contains(kinds, k)
	})

	return out, nil
}

// turn makes a new key of one kind, as Generate does.
func (b *Bundle) turn(kind rotation.Kind) error {
	certs, former, start := b.secrets.Certs, &b.previous, time.Now().Add(-clockSkew)

	switch kind {
	case rotation.TalosCA:
		former.Certs.OS = certs.OS

		return become(&certs.OS)(secrets.NewTalosCA(start))
	case rotation.KubernetesCA:
		former.Certs.K8s = certs.K8s

		return become(&certs.K8s)(secrets.NewKubernetesCA(start, config.TalosVersionCurrent))
	case rotation.AggregatorCA:
		former.Certs.K8sAggregator = certs.K8sAggregator

		return become(&certs.K8sAggregator)(secrets.NewAggregatorCA(start, config.TalosVersionCurrent))
	case rotation.ServiceAccountKey:
		key, err := talosx509.NewRSAKey()
		if err != nil {
			return err
		}

		former.Certs.K8sServiceAccount = certs.K8sServiceAccount
		certs.K8sServiceAccount = &talosx509.PEMEncodedKey{Key: key.KeyPEM}
	case rotation.ClusterToken:
		former.BootstrapToken, b.secrets.Secrets.BootstrapToken = b.secrets.Secrets.BootstrapToken, newToken()
	}

	return nil
}

func become(pair **talosx509.PEMEncodedCertificateAndKey) func(*talosx509.CertificateAuthority, error) error {
	return func(made *talosx509.CertificateAuthority, err error) error {
		if err == nil {
			*pair = &talosx509.PEMEncodedCertificateAndKey{Crt: made.CrtPEM, Key: made.KeyPEM}
		}

		return err
	}
}

// newToken is a token of the form that Kubernetes wants: six and sixteen letters and digits, 110 bits by chance.
func newToken() string {
	text := strings.ToLower(rand.Text())

	return text[:6] + "." + text[6:22]
}

// WithoutPrevious is the bundle without the keys that its present ones took the place of.
func (b *Bundle) WithoutPrevious() *Bundle {
	out := b.copy()
	out.previous, out.others = previous{}, nil

	return out
}

// Knowing is the bundle with the keys of another one of the same cluster: clients know authorities of both, and a
// machine can be given what it carries now. Its file stays the same.
func (b *Bundle) Knowing(other *Bundle) *Bundle {
	if other == nil || other == b || other.Mark() != b.Mark() {
		return b
	}

	out := b.copy()
	out.others = append(slices.Clone(b.others), other)

	return out
}

// copy is a bundle whose parts can be exchanged.
func (b *Bundle) copy() *Bundle {
	s := *b.secrets
	certs, kept, trustd := *s.Certs, *s.Secrets, *s.TrustdInfo
	s.Certs, s.Secrets, s.TrustdInfo = &certs, &kept, &trustd

	return &Bundle{secrets: &s, previous: b.previous, rotated: b.rotated, others: b.others}
}

// everyOf lists what a bundle has of one kind, the present one first, those that took its place in others last.
func (b *Bundle) everyOf(
	of func(*secrets.Certs) *talosx509.PEMEncodedCertificateAndKey,
	former func(previous) *talosx509.PEMEncodedCertificateAndKey,
) []*talosx509.PEMEncodedCertificateAndKey {
	var all []*talosx509.PEMEncodedCertificateAndKey

	for _, known := range append([]*Bundle{b}, b.others...) {
		for _, pair := range []*talosx509.PEMEncodedCertificateAndKey{of(known.secrets.Certs), former(known.previous)} {
			same := func(p *talosx509.PEMEncodedCertificateAndKey) bool { return string(p.Crt) == string(pair.Crt) }
			if pair != nil && !slices.ContainsFunc(all, same) {
				all = append(all, pair)
			}
		}
	}

	return all
}

func (b *Bundle) everyTalosCA() []*talosx509.PEMEncodedCertificateAndKey {
	return b.everyOf(func(c *secrets.Certs) *talosx509.PEMEncodedCertificateAndKey { return c.OS },
		func(p previous) *talosx509.PEMEncodedCertificateAndKey { return p.Certs.OS })
}

func (b *Bundle) everyKubernetesCA() []*talosx509.PEMEncodedCertificateAndKey {
	return b.everyOf(func(c *secrets.Certs) *talosx509.PEMEncodedCertificateAndKey { return c.K8s },
		func(p previous) *talosx509.PEMEncodedCertificateAndKey { return p.Certs.K8s })
}

// Accepted are the certificates, in PEM, of the authorities of the Talos API and of Kubernetes that the present ones
// took the place of and that machines still accept; none where they are the only ones.
func (b *Bundle) Accepted() (talos, kubernetes []byte) {
	if pair := b.previous.Certs.OS; pair != nil {
		talos = pair.Crt
	}

	if pair := b.previous.Certs.K8s; pair != nil {
		kubernetes = pair.Crt
	}

	return talos, kubernetes
}

// Keyring is every key that a bundle knows, for machines that are given one of them again.
type Keyring struct {
	Talos, Kubernetes, Aggregator  []*talosx509.PEMEncodedCertificateAndKey
	ServiceAccount, BootstrapToken []string
}

// Keyring is every key that the bundle knows, the present ones first.
func (b *Bundle) Keyring() Keyring {
	ring := Keyring{Talos: b.everyTalosCA(), Kubernetes: b.everyKubernetesCA(), Aggregator: b.everyOf(
		func(c *secrets.Certs) *talosx509.PEMEncodedCertificateAndKey { return c.K8sAggregator },
		func(p previous) *talosx509.PEMEncodedCertificateAndKey { return p.Certs.K8sAggregator })}

	for _, known := range append([]*Bundle{b}, b.others...) {
		ring.ServiceAccount = append(ring.ServiceAccount, string(known.secrets.Certs.K8sServiceAccount.Key))
		if key := known.previous.Certs.K8sServiceAccount; key != nil {
			ring.ServiceAccount = append(ring.ServiceAccount, string(key.Key))
		}

		ring.BootstrapToken = append(ring.BootstrapToken, known.secrets.Secrets.BootstrapToken,
			known.previous.BootstrapToken)
	}

	return ring
}

// decodePrevious reads what only a bundle has whose keys were turned over. known is whether the part is one of these.
func (b *Bundle) decodePrevious(name string, value *yaml.Node) (known bool, err error) {
	switch name {
	case "previous":
		if value.Load(&b.previous, yaml.WithKnownFields()) != nil {
			return true, fmt.Errorf("previous (line %d) does not have the shape that talosop writes", value.Line)
		}

		return true, nil
	case "rotated":
		var names []string
		if value.Decode(&names) != nil {
			return true, fmt.Errorf("rotated (line %d) is not a list of keys", value.Line)
		}

		for _, kind := range rotation.Kinds() {
			if slices.Contains(names, kindName(kind)) {
				b.rotated = append(b.rotated, kind)
			}
		}

		return true, nil
	default:
		return false, nil
	}
}

// kindName is a kind as the file has it.
func kindName(kind rotation.Kind) string {
	return strings.ReplaceAll(strings.ToLower(string(kind)), " ", "_")
}

// checkPrevious says what is wrong with the previous keys.
func (b *Bundle) checkPrevious() []error {
	var problems []error

	certs := b.previous.Certs

	for name, pair := range map[string]*talosx509.PEMEncodedCertificateAndKey{
		"os": certs.OS, "k8s": certs.K8s, "k8saggregator": certs.K8sAggregator,
	} {
		if pair == nil {
			continue
		}

		if err := checkAuthority(pair); err != nil {
			problems = append(problems, fmt.Errorf("previous.certs.%s: %w", name, err))
		}
	}

	if key := certs.K8sServiceAccount; key != nil {
		if err := checkServiceAccountKey(key); err != nil {
			problems = append(problems, fmt.Errorf("previous.certs.k8sserviceaccount: %w", err))
		}
	}

	if token := b.previous.BootstrapToken; token != "" {
		if id, secret, dotted := strings.Cut(token, "."); !dotted || id == "" || secret == "" {
			problems = append(problems, errors.New("previous.bootstraptoken is not of the form <id>.<secret>"))
		}
	}

	return problems
}
