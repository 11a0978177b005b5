package rotation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"hash"
	"slices"
	"strings"
)

// Annotation is on the nodes of a cluster whose keys were rotated, and names their keys. Talos sets it from the
// configuration that has the keys.
const Annotation = "talosop.dev/keys"

// Kind is a key of a cluster that can be rotated.
type Kind string

// The kinds, as users read them. The machine token (machine.token, for trustd) is not among them: Talos changes it
// only with a reboot (Talos 1.13, machined/pkg/runtime/v1alpha1, CanApplyImmediate).
const (
	TalosCA           Kind = "Talos CA"
	KubernetesCA      Kind = "Kubernetes CA"
	AggregatorCA      Kind = "aggregator CA"
	ServiceAccountKey Kind = "service account key"
	ClusterToken      Kind = "cluster token"
)

// Kinds are all kinds, in display order.
func Kinds() []Kind {
	return []Kind{TalosCA, KubernetesCA, AggregatorCA, ServiceAccountKey, ClusterToken}
}

// Keys are the identifiers of a machine's keys. They are comparable and not secret.
type Keys struct {
	Talos, Kubernetes Trust
	// Aggregator and ServiceAccount are empty on workers.
	Aggregator, ServiceAccount string
	ClusterToken               string
	// PodTokens is the service account key that signed the tokens of the machine's pods; empty if that key was never
	// rotated.
	PodTokens string
}

// SamePods reports whether a control plane keeps its pods when its keys change. Talos recreates them for other
// Kubernetes secrets (Talos 1.13, k8s/render_secrets_static_pod.go).
func (k Keys) SamePods(other Keys) bool {
	return k.Kubernetes == other.Kubernetes && k.Aggregator == other.Aggregator &&
		k.ServiceAccount == other.ServiceAccount
}

// Trust is one certificate authority on a machine. On a worker, which signs nothing, Issuing is the authority that
// signed its own certificates.
type Trust struct {
	Issuing  string
	Accepted Set
}

// Trusts reports whether certificates of an authority are accepted.
func (t Trust) Trusts(id string) bool { return id != "" && (t.Issuing == id || t.Accepted.Has(id)) }

// all are the authorities whose certificates are accepted.
func (t Trust) all() Set { return t.Accepted.With(t.Issuing) }

// idLength is the number of bytes of an identifier: enough to distinguish the few keys of a cluster.
const idLength = 8

// AuthorityID is the identifier of an authority, from its PEM certificate; empty for none.
func AuthorityID(crt []byte) string {
	if len(crt) == 0 {
		return ""
	}

	if block, _ := pem.Decode(crt); block != nil {
		crt = block.Bytes
	}

	return Identifier(sha256.New(), crt)
}

// Identifier is the identifier of a key by its hash.
func Identifier(sum hash.Hash, key []byte) string {
	sum.Write(key)

	return hex.EncodeToString(sum.Sum(nil)[:idLength])
}

// Set is a set of identifiers, sorted and separated by plus signs.
type Set string

// SetOf is the set of some identifiers without empty ones.
func SetOf(ids ...string) Set {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "" })
	slices.Sort(ids)

	return Set(strings.Join(slices.Compact(ids), "+"))
}

// IDs are the identifiers, sorted.
func (s Set) IDs() []string {
	if s == "" {
		return nil
	}

	return strings.Split(string(s), "+")
}

// Has reports whether the set has an identifier.
func (s Set) Has(id string) bool { return slices.Contains(s.IDs(), id) }

// With is the set with more identifiers.
func (s Set) With(ids ...string) Set { return SetOf(append(s.IDs(), ids...)...) }

// Without is the set without some identifiers.
func (s Set) Without(ids ...string) Set {
	return SetOf(slices.DeleteFunc(s.IDs(), func(id string) bool { return slices.Contains(ids, id) })...)
}

// within is the intersection of two sets.
func (s Set) within(other Set) Set {
	return SetOf(slices.DeleteFunc(s.IDs(), func(id string) bool { return !other.Has(id) })...)
}

// String is the form in the annotation of a node; see [ParseKeys].
func (k Keys) String() string {
	var parts []string

	for _, f := range k.fields() {
		value := *f.issuing
		if f.accepted != nil && *f.accepted != "" {
			value += "+" + string(*f.accepted)
		}

		if value != "" {
			parts = append(parts, f.name+"="+value)
		}
	}

	return strings.Join(parts, " ")
}

// ParseKeys reads what [Keys.String] writes. It ignores unknown words, which a newer release wrote. A text without
// known words gives the zero Keys.
func ParseKeys(text string) Keys {
	var keys Keys

	for word := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(word, "=")

		for _, f := range keys.fields() {
			if f.name != name {
				continue
			}

			issuing, accepted, _ := strings.Cut(value, "+")

			*f.issuing = issuing
			if f.accepted != nil {
				*f.accepted = SetOf(strings.Split(accepted, "+")...)
			}
		}
	}

	return keys
}

// MarshalText encodes keys for state.
func (k Keys) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText decodes what MarshalText wrote.
func (k *Keys) UnmarshalText(text []byte) error {
	*k = ParseKeys(string(text))

	return nil
}

type field struct {
	name     string
	kind     Kind
	issuing  *string
	accepted *Set
}

func (k *Keys) fields() []field {
	return []field{
		{"talos", TalosCA, &k.Talos.Issuing, &k.Talos.Accepted},
		{"kubernetes", KubernetesCA, &k.Kubernetes.Issuing, &k.Kubernetes.Accepted},
		{"aggregator", AggregatorCA, &k.Aggregator, nil},
		{"service-account", ServiceAccountKey, &k.ServiceAccount, nil},
		{"cluster-token", ClusterToken, &k.ClusterToken, nil},
		{"pod-tokens", "", &k.PodTokens, nil},
	}
}

// Changes describes the change from one set of keys to another, one phrase for each kind.
func Changes(from, to Keys) []string {
	var changes []string

	before, after := from.fields(), to.fields()

	for i, b := range before {
		a := after[i]

		switch {
		case *a.issuing != *b.issuing && a.kind == "":
			changes = append(changes, "restart the kubelet for tokens of the new "+string(ServiceAccountKey))
		case *a.issuing != *b.issuing && *b.issuing != "":
			changes = append(changes, "use new "+string(a.kind))
		case a.accepted == nil || *a.accepted == *b.accepted:
		case len(a.accepted.Without(b.accepted.IDs()...)) > 0:
			changes = append(changes, "accept new "+string(a.kind))
		default:
			changes = append(changes, "drop former "+string(a.kind))
		}
	}

	return changes
}
