package machineconfig

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	talosx509 "github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// ErrKeysElsewhere says that keys cannot be turned over because the configuration has them in documents of Talos 1.14.
var ErrKeysElsewhere = errors.New("this version of talosop does not turn over keys of Kubernetes in configurations " +
	"of the version contract v1.14 or newer")

// ErrKeyUnknown says that a machine is to carry a key that nobody has.
var ErrKeyUnknown = errors.New("a key that is needed is neither in the secrets nor on the machine")

// Where a main document has keys.
var (
	talosCA, talosAccepted           = []string{"machine", "ca"}, []string{"machine", "acceptedCAs"}
	kubernetesCA, kubernetesAccepted = []string{"cluster", "ca"}, []string{"cluster", "acceptedCAs"}
	aggregatorCA                     = []string{"cluster", "aggregatorCA"}
	serviceAccountKey                = []string{"cluster", "serviceAccount", "key"}
	clusterToken                     = []string{"cluster", "token"}
	keysAnnotation                   = []string{"machine", "nodeAnnotations", rotation.Annotation}
)

// Keys reads which keys a configuration carries. Errors do not quote it.
func Keys(cfg []byte) (rotation.Keys, error) {
	main, err := readMain(cfg)
	if err != nil {
		return rotation.Keys{}, fmt.Errorf("read keys: %w", err)
	}

	if main.root == nil {
		return rotation.Keys{}, nil
	}

	id := main.identifier()

	return rotation.Keys{
		Talos:          main.trust(talosCA, talosAccepted),
		Kubernetes:     main.trust(kubernetesCA, kubernetesAccepted),
		Aggregator:     authorityID(scalarIn(main.root, append(slices.Clone(aggregatorCA), "crt"))),
		ServiceAccount: id(scalarIn(main.root, serviceAccountKey)),
		ClusterToken:   id(scalarIn(main.root, clusterToken)),
		PodTokens:      rotation.ParseKeys(scalarIn(main.root, keysAnnotation)).PodTokens,
	}, nil
}

func (m mainOf) trust(issuing, accepted []string) rotation.Trust {
	trust := rotation.Trust{Issuing: authorityID(scalarIn(m.root, append(slices.Clone(issuing), "crt")))}

	if list := nodeIn(m.root, accepted); list != nil {
		for _, element := range list.Content {
			trust.Accepted = trust.Accepted.With(authorityID(scalarIn(element, []string{"crt"})))
		}
	}

	trust.Accepted = trust.Accepted.Without(trust.Issuing)

	return trust
}

// authorityID is the identifier of an authority whose certificate a configuration has, in base64 of PEM.
func authorityID(text string) string {
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return ""
	}

	return rotation.AuthorityID(decoded)
}

// identifier makes identifiers of what is secret itself. They are keyed with a secret of the cluster, so that a token
// which somebody chose cannot be guessed from what a node shows.
func (m mainOf) identifier() func(text string) string {
	key := scalarIn(m.root, []string{"cluster", "secret"})

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
	has, err := Keys(cfg)
	if err != nil || has == keys {
		return cfg, err
	}

	main, err := readMain(cfg)
	if err != nil {
		return nil, fmt.Errorf("put keys: %w", err)
	}

	found := newKeySource(main, ring)

	if len(active) > 0 {
		now, err := readMain(active)
		if err != nil {
			return nil, fmt.Errorf("put keys: the configuration that the machine has: %w", err)
		}

		found.addMain(now)
	}

	if err := found.put(main.root, has, keys); err != nil {
		return nil, fmt.Errorf("put keys: %w", err)
	}

	return main.encode()
}

// keySource is where keys are found by their identifiers.
type keySource struct {
	id func(string) string
	// authorities are mappings with crt and, where that is known, key; texts are everything else.
	authorities map[string]map[string]string
	texts       map[string]string
}

func newKeySource(main mainOf, ring pki.Keyring) *keySource {
	s := &keySource{id: main.identifier(), authorities: map[string]map[string]string{}, texts: map[string]string{}}
	s.addMain(main)

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

func (s *keySource) addMain(main mainOf) {
	if main.root == nil {
		return
	}

	for _, path := range [][]string{talosCA, kubernetesCA, aggregatorCA} {
		if node := nodeIn(main.root, path); node != nil {
			s.addAuthority(scalarIn(node, []string{"crt"}), scalarIn(node, []string{"key"}))
		}
	}

	for _, path := range [][]string{talosAccepted, kubernetesAccepted} {
		if list := nodeIn(main.root, path); list != nil {
			for _, element := range list.Content {
				s.addAuthority(scalarIn(element, []string{"crt"}), "")
			}
		}
	}

	for _, path := range [][]string{serviceAccountKey, clusterToken} {
		s.addText(scalarIn(main.root, path))
	}
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

// put exchanges what is another one.
func (s *keySource) put(root *yaml.Node, has, keys rotation.Keys) error {
	signs := scalarIn(root, append(slices.Clone(talosCA), "key")) != ""

	for _, part := range []struct {
		issuing, accepted []string
		has, want         rotation.Trust
	}{
		{talosCA, talosAccepted, has.Talos, keys.Talos},
		{kubernetesCA, kubernetesAccepted, has.Kubernetes, keys.Kubernetes},
		{aggregatorCA, nil, rotation.Trust{Issuing: has.Aggregator}, rotation.Trust{Issuing: keys.Aggregator}},
	} {
		if err := s.putTrust(root, part.issuing, part.accepted, part.has, part.want, signs); err != nil {
			return err
		}
	}

	for _, part := range []struct {
		path      []string
		has, want string
	}{
		{serviceAccountKey, has.ServiceAccount, keys.ServiceAccount},
		{clusterToken, has.ClusterToken, keys.ClusterToken},
	} {
		if part.has == part.want {
			continue
		}

		text, ok := s.texts[part.want]
		if !ok {
			return fmt.Errorf("%s: %w", strings.Join(part.path, "."), ErrKeyUnknown)
		}

		if err := putScalar(root, part.path, text); err != nil {
			return err
		}
	}

	return putAnnotation(root, keys)
}

// putTrust exchanges an authority and what is accepted beside it. signs is whether the machine has the key, too.
func (s *keySource) putTrust(
	root *yaml.Node, issuing, accepted []string, has, want rotation.Trust, signs bool,
) error {
	if has.Issuing != want.Issuing {
		if err := s.putIssuing(root, issuing, want.Issuing, signs); err != nil {
			return err
		}
	}

	if has.Accepted == want.Accepted {
		return nil
	}

	return s.putAccepted(root, accepted, want.Accepted)
}

func (s *keySource) putIssuing(root *yaml.Node, at []string, id string, signs bool) error {
	pair, ok := s.authorities[id]
	if !ok || signs && pair["key"] == "" {
		return fmt.Errorf("%s: %w", strings.Join(at, "."), ErrKeyUnknown)
	}

	err := putScalar(root, append(slices.Clone(at), "crt"), pair["crt"])
	if err != nil || !signs {
		return err
	}

	return putScalar(root, append(slices.Clone(at), "key"), pair["key"])
}

func (s *keySource) putAccepted(root *yaml.Node, at []string, ids rotation.Set) error {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}

	for _, id := range ids.IDs() {
		pair, ok := s.authorities[id]
		if !ok {
			return fmt.Errorf("%s: %w", strings.Join(at, "."), ErrKeyUnknown)
		}

		element := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		if err := putScalar(element, []string{"crt"}, pair["crt"]); err != nil {
			return err
		}

		list.Content = append(list.Content, element)
	}

	return putNode(root, at, list)
}

// putNode sets a value in a section that is there; an empty list takes its key away.
func putNode(root *yaml.Node, path []string, value *yaml.Node) error {
	section, key := nodeIn(root, path[:len(path)-1]), path[len(path)-1]
	if section == nil || section.Kind != yaml.MappingNode {
		return fmt.Errorf("%s: %w", strings.Join(path, "."), errNotSection)
	}

	for i := 0; i < len(section.Content); i += 2 {
		if section.Content[i].Value == key {
			section.Content = slices.Delete(section.Content, i, i+2)

			break
		}
	}

	if len(value.Content) > 0 {
		section.Content = append(section.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
	}

	return nil
}

// putAnnotation tells what a machine carries, where its configuration tells it at all.
func putAnnotation(root *yaml.Node, keys rotation.Keys) error {
	if scalarIn(root, keysAnnotation) == "" {
		return nil
	}

	return putScalar(root, keysAnnotation, keys.String())
}

// putAccepted adds the authorities beside the present ones that a bundle asks a generated configuration to accept. A
// worker is not asked to accept the former authority of Kubernetes: see rotation.Cluster.Next.
func putAccepted(main *v1alpha1.Config, b *pki.Bundle, role Role) {
	next, previous := b.Next(), b.Previous()
	if role == Worker {
		previous.Kubernetes = nil
	}

	for _, crt := range append(next.Talos, previous.Talos...) {
		main.MachineConfig.MachineAcceptedCAs = append(main.MachineConfig.MachineAcceptedCAs,
			&talosx509.PEMEncodedCertificate{Crt: crt})
	}

	for _, crt := range append(next.Kubernetes, previous.Kubernetes...) {
		main.ClusterConfig.ClusterAcceptedCAs = append(main.ClusterConfig.ClusterAcceptedCAs,
			&talosx509.PEMEncodedCertificate{Crt: crt})
	}
}

// annotated is a configuration that tells what it carries.
func annotated(cfg []byte, b *pki.Bundle) ([]byte, error) {
	if !b.Rotates() {
		return cfg, nil
	}

	keys, err := Keys(cfg)
	if err != nil {
		return nil, err
	}

	main, err := readMain(cfg)
	if err != nil || main.root == nil {
		return cfg, err
	}

	// They would change everywhere at once, as any other setting.
	if keys.Kubernetes.Issuing == "" && slices.ContainsFunc(append(b.Rotated(), b.Turning()...), func(k rotation.Kind) bool {
		return k == rotation.KubernetesCA || k == rotation.AggregatorCA || k == rotation.ServiceAccountKey
	}) {
		return nil, fmt.Errorf("turn keys over: %w", ErrKeysElsewhere)
	}

	if slices.Contains(b.Rotated(), rotation.ServiceAccountKey) {
		key := b.Secrets().Certs.K8sServiceAccount.Key
		keys.PodTokens = main.identifier()(base64.StdEncoding.EncodeToString(key))
	}

	if err := putScalar(main.root, keysAnnotation, keys.String()); err != nil {
		return nil, err
	}

	return main.encode()
}

// withoutKeys takes the keys that are turned over out of the content of a main document, and the sections around them
// that have nothing else: which keys a machine carries is compared by itself; see Keys.
func withoutKeys(content any) any {
	root, ok := content.(map[string]any)
	if !ok {
		return content
	}

	for _, path := range [][]string{talosCA, talosAccepted, kubernetesCA, kubernetesAccepted, aggregatorCA,
		serviceAccountKey, clusterToken, keysAnnotation} {
		section := root

		for _, key := range path[:len(path)-1] {
			section, _ = section[key].(map[string]any)
		}

		delete(section, path[len(path)-1])
	}

	for _, path := range [][]string{{"cluster", "serviceAccount"}, {"machine", "nodeAnnotations"}} {
		outer, _ := root[path[0]].(map[string]any)
		if section, ok := outer[path[1]].(map[string]any); ok && len(section) == 0 {
			delete(outer, path[1])
		}
	}

	return root
}
