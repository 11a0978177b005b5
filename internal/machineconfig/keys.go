package machineconfig

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	talosx509 "github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// ErrKeyUnknown means that a machine needs a key that is not available.
var ErrKeyUnknown = errors.New("a required key is neither in the secrets nor on the machine")

// Keys reads which keys a configuration carries. Errors do not quote it.
func Keys(cfg []byte) (rotation.Keys, error) {
	e, err := edit(cfg)
	if err != nil {
		return rotation.Keys{}, fmt.Errorf("read keys: %w", err)
	}

	return e.keys(), nil
}

func (e edited) keys() rotation.Keys {
	if !e.has("") {
		return rotation.Keys{}
	}

	id := e.identifier()

	return rotation.Keys{
		Talos:          e.trust(e.ofTalos()),
		Kubernetes:     e.trust(e.ofKubernetes()),
		Aggregator:     authorityID(e.keyText(e.ofAggregator().certificate())),
		ServiceAccount: id(e.keyText(places.ServiceAccountKey.In(e.has))),
		ClusterToken:   id(e.keyText(places.BootstrapToken.In(e.has))),
		PodTokens:      rotation.ParseKeys(e.scalar(places.CarriedKeys.In(e.has))).PodTokens,
	}
}

func (e edited) trust(at authority) rotation.Trust {
	certificate, accepted := e.authorities(at)
	trust := rotation.Trust{Issuing: authorityID(certificate)}

	for _, crt := range accepted {
		trust.Accepted = trust.Accepted.With(authorityID(crt))
	}

	trust.Accepted = trust.Accepted.Without(trust.Issuing)

	return trust
}

// authorities are the certificates of a machine's authority, and of the other accepted ones.
func (e edited) authorities(at authority) (own string, accepted []string) {
	own = e.keyText(at.certificate())

	if list := e.node(at.accepted); len(at.accepted.Path) > 0 && list != nil {
		for _, element := range list.Content {
			if at.pem() {
				accepted = append(accepted, encoded(element.Value, true))
			} else {
				accepted = append(accepted, scalarIn(element, []string{"crt"}))
			}
		}
	}

	if at.pem() && own == "" && len(accepted) > 0 {
		return accepted[0], accepted[1:]
	}

	return own, accepted
}

// authorityID is the identifier of an authority whose certificate a configuration has, in base64 of PEM.
func authorityID(text string) string {
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return ""
	}

	return rotation.AuthorityID(decoded)
}

// identifier returns identifiers for secrets. A secret of the cluster is their key, so a token chosen by a user
// cannot be guessed from what a node shows.
func (e edited) identifier() func(text string) string {
	key := e.scalar(places.ClusterSecret.In(e.has))

	return func(text string) string {
		if text == "" {
			return ""
		}

		return rotation.Identifier(hmac.New(sha256.New, []byte(key)), []byte(text))
	}
}

// WithKeys is a configuration with other keys. It finds them, by their identifiers, in the configuration itself, in the
// one that the machine has now, and on a keyring; ErrKeyUnknown says that one is nowhere. Nothing else is different in
// the result, so that it has the Digest of cfg; when nothing is to be changed the result is cfg itself. Errors do not
// quote the configurations.
func WithKeys(cfg, active []byte, keys rotation.Keys, ring pki.Keyring) ([]byte, error) {
	e, err := edit(cfg)
	if err != nil {
		return nil, fmt.Errorf("put keys: %w", err)
	}

	if e.keys() == keys {
		return cfg, nil
	}

	found := newKeySource(e, ring)

	if len(active) > 0 {
		now, err := edit(active)
		if err != nil {
			return nil, fmt.Errorf("set keys: current machine configuration: %w", err)
		}

		found.addAll(now)
	}

	if err := found.put(e, keys); err != nil {
		return nil, fmt.Errorf("put keys: %w", err)
	}

	return e.encode()
}

// keySource is where keys are found by their identifiers.
type keySource struct {
	id func(string) string
	// authorities are mappings with crt and, where known, key; texts are everything else.
	authorities map[string]map[string]string
	texts       map[string]string
}

func newKeySource(e edited, ring pki.Keyring) *keySource {
	s := &keySource{id: e.identifier(), authorities: map[string]map[string]string{}, texts: map[string]string{}}
	s.addAll(e)

	for _, pair := range slices.Concat(ring.Talos, ring.Kubernetes, ring.Aggregator) {
		s.addAuthority(base64.StdEncoding.EncodeToString(pair.Crt), base64.StdEncoding.EncodeToString(pair.Key))
	}

	for _, key := range ring.ServiceAccount {
		s.addText(base64.StdEncoding.EncodeToString([]byte(key)))
	}

	for _, token := range ring.BootstrapToken {
		s.addText(token)
	}

	return s
}

func (s *keySource) addAll(e edited) {
	if !e.has("") {
		return
	}

	for _, at := range []authority{e.ofTalos(), e.ofKubernetes(), e.ofAggregator()} {
		own, accepted := e.authorities(at)
		s.addAuthority(own, e.keyText(at.key()))

		for _, crt := range accepted {
			s.addAuthority(crt, "")
		}
	}

	s.addText(e.keyText(places.ServiceAccountKey.In(e.has)))
	s.addText(e.keyText(places.BootstrapToken.In(e.has)))
}

func (s *keySource) addAuthority(crt, key string) {
	id := authorityID(crt)
	if known := s.authorities[id]; id == "" || known["key"] != "" {
		return
	}

	s.authorities[id] = map[string]string{"crt": crt, "key": key}
}

func (s *keySource) addText(text string) {
	if text != "" {
		s.texts[s.id(text)] = text
	}
}

// put replaces keys that differ.
func (s *keySource) put(e edited, keys rotation.Keys) error {
	has := e.keys()
	signs := e.scalar(e.ofTalos().key()) != ""

	for _, part := range []struct {
		at        authority
		has, want rotation.Trust
	}{
		{e.ofTalos(), has.Talos, keys.Talos},
		{e.ofKubernetes(), has.Kubernetes, keys.Kubernetes},
		{e.ofAggregator(), rotation.Trust{Issuing: has.Aggregator}, rotation.Trust{Issuing: keys.Aggregator}},
	} {
		if part.has == part.want {
			continue
		}

		if err := s.putTrust(e, part.at, part.has, part.want, signs); err != nil {
			return err
		}
	}

	for _, part := range []struct {
		fact      places.Fact
		has, want string
	}{
		{places.ServiceAccountKey, has.ServiceAccount, keys.ServiceAccount},
		{places.BootstrapToken, has.ClusterToken, keys.ClusterToken},
	} {
		if part.has == part.want {
			continue
		}

		at := part.fact.In(e.has)

		text, ok := s.texts[part.want]
		if !ok {
			return fmt.Errorf("%s: %w", at, ErrKeyUnknown)
		}

		if err := e.putKeyText(at, text); err != nil {
			return err
		}
	}

	return e.putAnnotation(keys)
}

// putTrust replaces an authority and the accepted ones. signs is whether the machine has the key, too.
func (s *keySource) putTrust(e edited, at authority, has, want rotation.Trust, signs bool) error {
	accepted := want.Accepted.IDs()

	if at.pem() && !signs {
		return s.putAccepted(e, at, slices.Insert(accepted, 0, want.Issuing))
	}

	if has.Issuing != want.Issuing {
		if err := s.putIssuing(e, at, want.Issuing, signs); err != nil {
			return err
		}
	}

	if has.Accepted == want.Accepted {
		return nil
	}

	return s.putAccepted(e, at, accepted)
}

func (s *keySource) putIssuing(e edited, at authority, id string, signs bool) error {
	pair, ok := s.authorities[id]
	if !ok || signs && pair["key"] == "" {
		return fmt.Errorf("%s: %w", at.issuing, ErrKeyUnknown)
	}

	err := e.putKeyText(at.certificate(), pair["crt"])
	if err != nil || !signs {
		return err
	}

	return e.putKeyText(at.key(), pair["key"])
}

func (s *keySource) putAccepted(e edited, at authority, ids []string) error {
	var elements []*yaml.Node

	for _, id := range ids {
		pair, ok := s.authorities[id]
		if !ok {
			return fmt.Errorf("%s: %w", at.accepted, ErrKeyUnknown)
		}

		crt, err := written(pair["crt"], at.pem())
		if err != nil {
			return fmt.Errorf("%s: %w", at.accepted, err)
		}

		element := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: crt}

		if !at.pem() {
			element = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
			if err := putScalar(element, []string{"crt"}, crt); err != nil {
				return err
			}
		}

		elements = append(elements, element)
	}

	return e.putList(at.accepted, elements)
}

// putAnnotation records which keys a machine carries, where its configuration records them.
func (e edited) putAnnotation(keys rotation.Keys) error {
	at := places.CarriedKeys.In(e.has)
	if e.scalar(at) == "" {
		return nil
	}

	return e.putScalar(at, keys.String())
}

// putAccepted adds the authorities beside the present ones that a bundle asks a generated configuration to accept. A
// worker is not asked to accept the former authority of Kubernetes: see rotation.Cluster.Next.
func putAccepted(known []config.Document, main *v1alpha1.Config, b *pki.Bundle, role Role) {
	next, previous := b.Next(), b.Previous()
	if role == Worker {
		previous.Kubernetes = nil
	}

	for _, crt := range append(next.Talos, previous.Talos...) {
		main.MachineConfig.MachineAcceptedCAs = append(main.MachineConfig.MachineAcceptedCAs,
			&talosx509.PEMEncodedCertificate{Crt: crt})
	}

	own, inDocuments := places.Document[*k8s.KubeAPIServerCAConfigV1Alpha1](known)

	for _, crt := range append(next.Kubernetes, previous.Kubernetes...) {
		if inDocuments {
			own.APIAcceptedCAs = append(own.APIAcceptedCAs, string(crt))

			continue
		}

		main.ClusterConfig.ClusterAcceptedCAs = append(main.ClusterConfig.ClusterAcceptedCAs,
			&talosx509.PEMEncodedCertificate{Crt: crt})
	}
}

// annotated is a configuration that records its keys.
func annotated(cfg []byte, b *pki.Bundle) ([]byte, error) {
	if !b.Rotates() {
		return cfg, nil
	}

	e, err := edit(cfg)
	if err != nil || !e.has("") {
		return cfg, err
	}

	keys := e.keys()

	if slices.Contains(b.Rotated(), rotation.ServiceAccountKey) {
		key := b.Secrets().Certs.K8sServiceAccount.Key
		keys.PodTokens = e.identifier()(base64.StdEncoding.EncodeToString(key))
	}

	if err := e.putScalar(places.CarriedKeys.In(e.has), keys.String()); err != nil {
		return nil, err
	}

	return e.encode()
}
