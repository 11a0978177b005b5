package machineconfig

import (
	"encoding/base64"
	"fmt"

	"github.com/siderolabs/crypto/x509"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// authority is where an authority is that signs, and where those are that are accepted beside it, if anywhere. In
// documents certificates are PEM, and the authority of a machine that does not sign is the first that it accepts
// (machinery 1.14, config/generate, kubernetes.go).
type authority struct{ issuing, accepted places.Spot }

func (e edited) authority(issuing, accepted places.Fact) authority {
	return authority{issuing.In(e.has), accepted.In(e.has)}
}

func (e edited) ofTalos() authority { return e.authority(places.TalosCA, places.TalosAcceptedCAs) }

func (e edited) ofKubernetes() authority {
	return e.authority(places.KubernetesCA, places.KubernetesAcceptedCAs)
}

func (e edited) ofAggregator() authority { return e.authority(places.AggregatorCA, places.Fact{}) }

func (a authority) pem() bool { return isPEM(a.issuing) }

func (a authority) certificate() places.Spot {
	if a.pem() {
		return a.issuing.Under("cert")
	}

	return a.issuing.Under("crt")
}

func (a authority) key() places.Spot { return a.issuing.Under("key") }

// isPEM reports whether keys are texts of PEM at a spot, as they are in separate documents. The main document has
// base64 of it.
func isPEM(at places.Spot) bool { return at.Kind != "" }

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

func (e edited) keyText(at places.Spot) string { return encoded(e.scalar(at), isPEM(at)) }

func (e edited) putKeyText(at places.Spot, text string) error {
	value, err := written(text, isPEM(at))
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}

	return e.putScalar(at, value)
}

// withoutKeys takes the keys that are rotated out of the content of a document, and the sections around them that
// have nothing else: which keys a machine carries is compared by itself; see Keys.
func withoutKeys(id identity, content any) any {
	root, ok := content.(map[string]any)
	if !ok {
		return content
	}

	for _, f := range places.Rotated() {
		if at, ok := f.Of(id.kind); ok {
			deleteAt(root, at.Path)
		}
	}

	for _, f := range []places.Fact{places.ServiceAccount, places.NodeAnnotations} {
		at, ok := f.Of(id.kind)
		if section, is := valueIn(root, at.Path).(map[string]any); ok && len(at.Path) > 0 && is && len(section) == 0 {
			deleteAt(root, at.Path)
		}
	}

	return root
}

func certificate(pair *x509.PEMEncodedCertificateAndKey) []byte {
	if pair == nil {
		return nil
	}

	return pair.Crt
}
