package machineconfig

import (
	"encoding/base64"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/config/types/cluster"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"

	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// Where the main document has keys. Those of Kubernetes may be in documents of their own (since Talos 1.14).
var (
	clusterToken   = inMain("cluster", "token")
	keysAnnotation = inMain("machine", "nodeAnnotations", rotation.Annotation)
	clusterSecret  = inMain("cluster", "secret")

	keysOfMain = keySpots{
		talos:          authoritySpot{issuing: inMain("machine", "ca"), accepted: inMain("machine", "acceptedCAs")},
		kubernetes:     authoritySpot{issuing: inMain("cluster", "ca"), accepted: inMain("cluster", "acceptedCAs")},
		aggregator:     authoritySpot{issuing: inMain("cluster", "aggregatorCA")},
		serviceAccount: textSpot{spot: inMain("cluster", "serviceAccount", "key")},
		clusterToken:   textSpot{spot: clusterToken}, annotation: keysAnnotation, secret: clusterSecret,
	}
	keysOfDocuments = keySpots{
		kubernetes: authoritySpot{
			issuing: spot{k8s.KubeAPIServerCAConfig, []string{"issuingCA"}}, pem: true,
			accepted: spot{k8s.KubeAPIServerCAConfig, []string{"acceptedCAs"}},
		},
		aggregator: authoritySpot{issuing: spot{k8s.KubeAggregatorCAConfig, []string{"issuingCA"}}, pem: true},
		serviceAccount: textSpot{
			spot: spot{k8s.KubeServiceAccountConfig, []string{"issuer", "privateKey"}}, pem: true,
		},
		annotation: spot{k8s.KubeNodeConfig, []string{"annotations", rotation.Annotation}},
		secret:     spot{cluster.DiscoveryIdentityKind, []string{"clusterSecret"}},
	}
)

// keySpots are where one configuration has its keys.
type keySpots struct {
	talos, kubernetes, aggregator authoritySpot
	serviceAccount, clusterToken  textSpot
	annotation, secret            spot
}

// textSpot is where a key is a text: PEM itself, or base64 of it as in the main document.
type textSpot struct {
	spot

	pem bool
}

// authoritySpot is where an authority is that signs, and where those are that are accepted beside it, if anywhere. In
// documents certificates are PEM, and the authority of a machine that does not sign is the first that it accepts
// (machinery 1.14, config/generate, kubernetes.go).
type authoritySpot struct {
	issuing, accepted spot
	pem               bool
}

func (a authoritySpot) certificate() spot {
	if a.pem {
		return a.issuing.at("cert")
	}

	return a.issuing.at("crt")
}

// keySpots are those of the documents that are there, and of the main one for all others.
func (e edited) keySpots() keySpots {
	s, documents := keysOfMain, keysOfDocuments

	if e.has(documents.kubernetes.issuing.kind) {
		s.kubernetes = documents.kubernetes
	}

	if e.has(documents.aggregator.issuing.kind) {
		s.aggregator = documents.aggregator
	}

	if e.has(documents.serviceAccount.kind) {
		s.serviceAccount = documents.serviceAccount
	}

	if e.has(documents.annotation.kind) {
		s.annotation = documents.annotation
	}

	if e.has(documents.secret.kind) {
		s.secret = documents.secret
	}

	return s
}

// encoded is a key as the main document has it, of one that may be PEM.
func encoded(text string, pem bool) string {
	if pem && text != "" {
		return base64.StdEncoding.EncodeToString([]byte(text))
	}

	return text
}

// written is the reverse of encoded.
func written(text string, pem bool) (string, error) {
	if !pem {
		return text, nil
	}

	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", errNotData // the error would quote it
	}

	return string(decoded), nil
}

func (e edited) keyText(at textSpot) string { return encoded(e.scalar(at.spot), at.pem) }

func (e edited) putKeyText(at spot, pem bool, text string) error {
	value, err := written(text, pem)
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}

	return e.putScalar(at, value)
}

// withoutKeys takes the keys that are turned over out of the content of a document, and the sections around them that
// have nothing else: which keys a machine carries is compared by itself; see Keys.
func withoutKeys(id identity, content any) any {
	root, ok := content.(map[string]any)
	if !ok {
		return content
	}

	for _, spots := range []keySpots{keysOfMain, keysOfDocuments} {
		for _, at := range []spot{spots.talos.issuing, spots.talos.accepted, spots.kubernetes.issuing,
			spots.kubernetes.accepted, spots.aggregator.issuing, spots.serviceAccount.spot, spots.clusterToken.spot,
			spots.annotation} {
			if at.kind == id.kind && len(at.path) > 0 {
				deleteAt(root, at.path)
			}
		}
	}

	for _, at := range []spot{inMain("cluster", "serviceAccount"), inMain("machine", "nodeAnnotations"),
		{k8s.KubeNodeConfig, []string{"annotations"}}} {
		if section, ok := valueIn(root, at.path).(map[string]any); ok && at.kind == id.kind && len(section) == 0 {
			deleteAt(root, at.path)
		}
	}

	return root
}

// valueIn is the value at a path of maps, nil when there is none.
func valueIn(root map[string]any, path []string) any {
	var value any = root

	for _, key := range path {
		section, _ := value.(map[string]any)
		value = section[key]
	}

	return value
}

func deleteAt(root map[string]any, path []string) {
	last := len(path) - 1
	section, _ := valueIn(root, path[:last]).(map[string]any)
	delete(section, path[last])
}
