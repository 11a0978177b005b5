package pki

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
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

// ErrRotating means that a key to be rotated is being rotated already.
var ErrRotating = errors.New("a rotation is already in progress")

// spareKeys are keys beside the present ones of a bundle: those that are to take their place, or those whose place they
// took. `talosctl` passes these parts of the file over (machinery 1.13, secrets.LoadBundle).
type spareKeys struct {
	Certs          spareCerts `yaml:"certs,omitempty"`
	BootstrapToken string     `yaml:"bootstraptoken,omitempty"`
}

type spareCerts struct {
	K8s               *talosx509.PEMEncodedCertificateAndKey `yaml:"k8s,omitempty"`
	K8sAggregator     *talosx509.PEMEncodedCertificateAndKey `yaml:"k8saggregator,omitempty"`
	K8sServiceAccount *talosx509.PEMEncodedKey               `yaml:"k8sserviceaccount,omitempty"`
	OS                *talosx509.PEMEncodedCertificateAndKey `yaml:"os,omitempty"`
}

// file is the output of YAML: the file of `talosctl gen secrets`, and the additional parts of a bundle with
// rotated keys.
type file struct {
	Bundle   *secrets.Bundle `yaml:",inline"`
	Next     *spareKeys      `yaml:"next,omitempty"`
	Previous *spareKeys      `yaml:"previous,omitempty"`
	Former   *spareKeys      `yaml:"former,omitempty"`
	// Rotated are the kinds whose present key took the place of another one.
	Rotated []string `yaml:"rotated,omitempty"`
}

func (b *Bundle) file() file {
	out := file{Bundle: b.secrets}

	if len(b.next.kinds()) > 0 {
		out.Next = &b.next
	}

	if len(b.previous.kinds()) > 0 {
		out.Previous = &b.previous
	}

	if len(b.former.kinds()) > 0 {
		out.Former = &b.former
	}

	for _, kind := range b.rotated {
		out.Rotated = append(out.Rotated, kindName(kind))
	}

	return out
}

// Rotated are the kinds of keys whose present one took the place of another one, in the order of [rotation.Kinds].
func (b *Bundle) Rotated() []rotation.Kind { return slices.Clone(b.rotated) }

// Rotates reports whether keys are or were rotated: machines may carry others than the present ones.
func (b *Bundle) Rotates() bool { return len(b.rotated) > 0 || len(b.Turning()) > 0 }

// Turning are the kinds that are being rotated: there is a next key, or the former one is still accepted.
func (b *Bundle) Turning() []rotation.Kind {
	return slices.DeleteFunc(rotation.Kinds(), func(k rotation.Kind) bool { return !b.next.has(k) && !b.previous.has(k) })
}

// kinds are the kinds with a key.
func (p spareKeys) kinds() []rotation.Kind {
	return slices.DeleteFunc(rotation.Kinds(), func(k rotation.Kind) bool { return !p.has(k) })
}

func (p spareKeys) has(kind rotation.Kind) bool {
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

// Rotate returns the bundle one step further (see Advance), with next keys of some kinds, which no machine uses
// yet. It keeps the identity of the cluster, the authority of etcd and all that backups need. A kind that is
// already being rotated is ErrRotating: a machine may carry a key that the bundle would lose.
func (b *Bundle) Rotate(kinds ...rotation.Kind) (*Bundle, error) {
	out := b.Advance()

	for _, kind := range kinds {
		if slices.Contains(b.Turning(), kind) {
			return nil, fmt.Errorf("rotate %s: %w", kind, ErrRotating)
		}

		if err := out.next.make(kind); err != nil {
			return nil, fmt.Errorf("rotate %s: %w", kind, err)
		}
	}

	return out, nil
}

// Advance is the bundle one step further: next keys become the present ones, which become the previous ones, and what
// was that is dropped. Dropped keys are kept as the former ones until others take their place: applies that ended early
// may have left machines that work with them, which [Bundle.KnowingFormer] is for.
func (b *Bundle) Advance() *Bundle {
	out := b.copy()
	out.former = b.previous.over(b.former)
	out.previous, out.others = spareKeys{}, nil

	for _, kind := range b.next.kinds() {
		out.exchange(kind)
	}

	return out
}

// exchange puts the next key of a kind in the place of the present one, and that in the place of the previous one.
func (b *Bundle) exchange(kind rotation.Kind) {
	certs, next, was := b.secrets.Certs, &b.next, &b.previous

	switch kind {
	case rotation.TalosCA:
		was.Certs.OS, certs.OS, next.Certs.OS = certs.OS, next.Certs.OS, nil
	case rotation.KubernetesCA:
		was.Certs.K8s, certs.K8s, next.Certs.K8s = certs.K8s, next.Certs.K8s, nil
	case rotation.AggregatorCA:
		was.Certs.K8sAggregator, certs.K8sAggregator, next.Certs.K8sAggregator =
			certs.K8sAggregator, next.Certs.K8sAggregator, nil
	case rotation.ServiceAccountKey:
		was.Certs.K8sServiceAccount, certs.K8sServiceAccount, next.Certs.K8sServiceAccount =
			certs.K8sServiceAccount, next.Certs.K8sServiceAccount, nil
	case rotation.ClusterToken:
		was.BootstrapToken, b.secrets.Secrets.BootstrapToken, next.BootstrapToken =
			b.secrets.Secrets.BootstrapToken, next.BootstrapToken, ""
	}

	b.addRotated(kind)
}

// addRotated notes a kind.
func (b *Bundle) addRotated(kinds ...rotation.Kind) {
	b.rotated = slices.DeleteFunc(rotation.Kinds(), func(k rotation.Kind) bool {
		return !slices.Contains(b.rotated, k) && !slices.Contains(kinds, k)
	})
}

// over are these keys, and the others for missing kinds.
func (p spareKeys) over(others spareKeys) spareKeys {
	return spareKeys{
		Certs: spareCerts{
			K8s: cmp.Or(p.Certs.K8s, others.Certs.K8s), K8sAggregator: cmp.Or(p.Certs.K8sAggregator, others.Certs.K8sAggregator),
			K8sServiceAccount: cmp.Or(p.Certs.K8sServiceAccount, others.Certs.K8sServiceAccount),
			OS:                cmp.Or(p.Certs.OS, others.Certs.OS),
		},
		BootstrapToken: cmp.Or(p.BootstrapToken, others.BootstrapToken),
	}
}

// make makes a new key of one kind, as Generate does.
func (p *spareKeys) make(kind rotation.Kind) error {
	start := time.Now().Add(-clockSkew)

	switch kind {
	case rotation.TalosCA:
		return become(&p.Certs.OS)(secrets.NewTalosCA(start))
	case rotation.KubernetesCA:
		return become(&p.Certs.K8s)(secrets.NewKubernetesCA(start, config.TalosVersionCurrent))
	case rotation.AggregatorCA:
		return become(&p.Certs.K8sAggregator)(secrets.NewAggregatorCA(start, config.TalosVersionCurrent))
	case rotation.ServiceAccountKey:
		key, err := talosx509.NewRSAKey()
		if err != nil {
			return err
		}

		p.Certs.K8sServiceAccount = &talosx509.PEMEncodedKey{Key: key.KeyPEM}
	case rotation.ClusterToken:
		p.BootstrapToken = newToken()
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

// Following is the bundle for machines whose state has another bundle of the cluster. An authority that this state
// does not know is only accepted, not used. Until the bundle is stored in the state, a client with the state alone
// could not recognize a machine that works with that authority.
func (b *Bundle) Following(state *Bundle) *Bundle {
	if state == nil || state.Mark() != b.Mark() {
		return b
	}

	out := b.copy()

	if had, is := state.secrets.Certs.OS, b.secrets.Certs.OS; !among(state.everyTalosCA(), is) {
		out.secrets.Certs.OS, out.next.Certs.OS, out.previous.Certs.OS = had, is, nil
	}

	if had, is := state.secrets.Certs.K8s, b.secrets.Certs.K8s; !among(state.everyKubernetesCA(), is) {
		out.secrets.Certs.K8s, out.next.Certs.K8s, out.previous.Certs.K8s = had, is, nil
	}

	return out
}

func among(all []*talosx509.PEMEncodedCertificateAndKey, pair *talosx509.PEMEncodedCertificateAndKey) bool {
	return slices.ContainsFunc(all, func(p *talosx509.PEMEncodedCertificateAndKey) bool {
		return bytes.Equal(p.Crt, pair.Crt)
	})
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

// KnowingFormer is the bundle with the keys that were dropped last, where some of these machines work with one that it
// does not have otherwise; else the bundle itself.
func (b *Bundle) KnowingFormer(carried ...rotation.Keys) *Bundle {
	lost := func(k rotation.Keys) bool { return len(b.Unknown(k)) > 0 }
	if len(b.former.kinds()) == 0 || !slices.ContainsFunc(carried, lost) {
		return b
	}

	return b.Knowing(&Bundle{secrets: b.secrets, previous: b.former})
}

// copy is a bundle whose parts can be exchanged.
func (b *Bundle) copy() *Bundle {
	s := *b.secrets
	certs, kept, trustd := *s.Certs, *s.Secrets, *s.TrustdInfo
	s.Certs, s.Secrets, s.TrustdInfo = &certs, &kept, &trustd

	return &Bundle{secrets: &s, next: b.next, previous: b.previous, former: b.former,
		rotated: b.rotated, others: b.others}
}

// everyOf lists a bundle's keys of one kind, the present one first, and those that replaced it elsewhere last.
func (b *Bundle) everyOf(
	of func(*secrets.Certs) *talosx509.PEMEncodedCertificateAndKey,
	spare func(spareKeys) *talosx509.PEMEncodedCertificateAndKey,
) []*talosx509.PEMEncodedCertificateAndKey {
	var all []*talosx509.PEMEncodedCertificateAndKey

	for _, known := range append([]*Bundle{b}, b.others...) {
		for _, pair := range []*talosx509.PEMEncodedCertificateAndKey{
			of(known.secrets.Certs), spare(known.next), spare(known.previous),
		} {
			if pair != nil && !among(all, pair) {
				all = append(all, pair)
			}
		}
	}

	return all
}

func (b *Bundle) everyTalosCA() []*talosx509.PEMEncodedCertificateAndKey {
	return b.everyOf(func(c *secrets.Certs) *talosx509.PEMEncodedCertificateAndKey { return c.OS },
		func(p spareKeys) *talosx509.PEMEncodedCertificateAndKey { return p.Certs.OS })
}

func (b *Bundle) everyKubernetesCA() []*talosx509.PEMEncodedCertificateAndKey {
	return b.everyOf(func(c *secrets.Certs) *talosx509.PEMEncodedCertificateAndKey { return c.K8s },
		func(p spareKeys) *talosx509.PEMEncodedCertificateAndKey { return p.Certs.K8s })
}

// Identity identifies the cluster even among those with its name and id, while its keys are rotated. It is a
// digest in lower-case hexadecimal of what never changes. It leaves out the former key for Secrets, which may be
// removed.
func (b *Bundle) Identity() string {
	var lines []byte

	for _, part := range append(b.RecordKeys()[:1], []byte(b.Authority("etcd").Fingerprint), []byte(b.Mark())) {
		lines = fmt.Appendf(lines, "%x\n", part)
	}

	sum := sha256.Sum256(lines)

	return hex.EncodeToString(sum[:])
}

// Unknown are the authorities that a machine works with and the bundle does not have. A client with the bundle
// alone could not verify what they sign.
func (b *Bundle) Unknown(carried rotation.Keys) []rotation.Kind {
	var kinds []rotation.Kind

	if id := carried.Talos.Issuing; id != "" && !identified(b.everyTalosCA(), id) {
		kinds = append(kinds, rotation.TalosCA)
	}

	if id := carried.Kubernetes.Issuing; id != "" && !identified(b.everyKubernetesCA(), id) {
		kinds = append(kinds, rotation.KubernetesCA)
	}

	return kinds
}

func identified(all []*talosx509.PEMEncodedCertificateAndKey, id string) bool {
	return slices.ContainsFunc(all, func(p *talosx509.PEMEncodedCertificateAndKey) bool {
		return rotation.AuthorityID(p.Crt) == id
	})
}

// Accepted is the certificates of authorities, in PEM.
type Accepted struct{ Talos, Kubernetes [][]byte }

// Next are the authorities that are to take the place of the present ones.
func (b *Bundle) Next() Accepted { return b.next.authorities() }

// Previous are the authorities whose place the present ones took and that machines still accept.
func (b *Bundle) Previous() Accepted { return b.previous.authorities() }

// Beside are the identifiers of the authorities that clients trust beside the present one of that name, which is
// one of those of Authorities.
func (b *Bundle) Beside(name string) []string {
	next, previous := b.Next(), b.Previous()
	all := map[string][][]byte{
		"talos": append(next.Talos, previous.Talos...), "kubernetes": append(next.Kubernetes, previous.Kubernetes...),
	}

	var ids []string
	for _, crt := range all[name] {
		ids = append(ids, rotation.AuthorityID(crt))
	}

	return ids
}

func (p spareKeys) authorities() (out Accepted) {
	if pair := p.Certs.OS; pair != nil {
		out.Talos = append(out.Talos, pair.Crt)
	}

	if pair := p.Certs.K8s; pair != nil {
		out.Kubernetes = append(out.Kubernetes, pair.Crt)
	}

	return out
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
		func(p spareKeys) *talosx509.PEMEncodedCertificateAndKey { return p.Certs.K8sAggregator })}

	for _, known := range append([]*Bundle{b}, b.others...) {
		for _, key := range []*talosx509.PEMEncodedKey{
			known.secrets.Certs.K8sServiceAccount, known.next.Certs.K8sServiceAccount, known.previous.Certs.K8sServiceAccount,
		} {
			if key != nil {
				ring.ServiceAccount = append(ring.ServiceAccount, string(key.Key))
			}
		}

		ring.BootstrapToken = append(ring.BootstrapToken, known.secrets.Secrets.BootstrapToken,
			known.next.BootstrapToken, known.previous.BootstrapToken)
	}

	return ring
}

// decodeSpare reads the additional parts of a bundle with rotated keys. known is whether the part is one of these.
func (b *Bundle) decodeSpare(name string, value *yaml.Node) (known bool, err error) {
	switch name {
	case "next", "previous", "former":
		into := map[string]*spareKeys{"next": &b.next, "previous": &b.previous, "former": &b.former}[name]
		if value.Load(into, yaml.WithKnownFields()) != nil {
			return true, fmt.Errorf("%s (line %d) does not have the format of additional keys", name, value.Line)
		}

		return true, nil
	case "rotated":
		var names []string
		if value.Decode(&names) != nil {
			return true, fmt.Errorf("rotated (line %d) is not a list of keys", value.Line)
		}

		for _, kind := range rotation.Kinds() {
			if slices.Contains(names, kindName(kind)) {
				b.addRotated(kind)
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

// checkSpare returns the problems of the keys beside the present ones.
func (b *Bundle) checkSpare() []error {
	return slices.Concat(b.next.check("next"), b.previous.check("previous"), b.former.check("former"))
}

func (p spareKeys) check(part string) []error {
	var problems []error

	for name, pair := range map[string]*talosx509.PEMEncodedCertificateAndKey{
		"os": p.Certs.OS, "k8s": p.Certs.K8s, "k8saggregator": p.Certs.K8sAggregator,
	} {
		if pair == nil {
			continue
		}

		if err := checkAuthority(pair); err != nil {
			problems = append(problems, fmt.Errorf("%s.certs.%s: %w", part, name, err))
		}
	}

	if key := p.Certs.K8sServiceAccount; key != nil {
		if err := checkServiceAccountKey(key); err != nil {
			problems = append(problems, fmt.Errorf("%s.certs.k8sserviceaccount: %w", part, err))
		}
	}

	if p.BootstrapToken != "" {
		if id, secret, dotted := strings.Cut(p.BootstrapToken, "."); !dotted || id == "" || secret == "" {
			problems = append(problems, fmt.Errorf("%s.bootstraptoken does not have the format <id>.<secret>", part))
		}
	}

	return problems
}
