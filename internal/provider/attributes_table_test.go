package provider_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"golang.org/x/crypto/ssh"
	"sigs.k8s.io/yaml"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// attributeTable is testdata/attributes.yml: what a schema does not say about its attributes. A key is the end of a
// path, such as install.disk or talosop_machine.name, and the longest one that fits counts.
type attributeTable struct {
	// Samples are valid values. A bool without one is true, and a number is 1.
	Samples map[string]any `json:"samples"`
	// Keys are keys of maps of objects, "x" for others.
	Keys map[string]string `json:"keys"`
	// Choices are attributes that exclude each other.
	Choices []choice `json:"choices"`
	// NeverSet are attributes that no configuration sets here, with the reason.
	NeverSet map[string]string `json:"neverSet"`
	// Refused are the codes of errors at an attribute that needs another one, which is null or empty.
	Refused []string `json:"refused"`
	// Created are the creates on simulated machines, by resource.
	Created map[string]creation `json:"created"`
	// Warned are the codes of warnings about samples.
	Warned []string `json:"warned"`
}

// choice is alternatives: the ends of paths that each has, with a value that replaces the sample or null.
type choice struct {
	// Each is how many variants in a row have the same alternative (default 1).
	Each int              `json:"each"`
	Of   []map[string]any `json:"of"`
}

// mostVariants is how many variants of a configuration cover all choices.
const mostVariants = 24

// placeholders are values that tests generate.
var placeholders = sync.OnceValues(func() (map[string]any, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}

	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now, NotAfter: now.Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true}

	certificate, certificateErr := x509.CreateCertificate(rand.Reader, template, template, public, private)
	key, keyErr := x509.MarshalPKCS8PrivateKey(private)
	publicKey, publicErr := x509.MarshalPKIXPublicKey(public)
	sshKey, sshErr := ssh.MarshalPrivateKey(private, "")

	secrets, secretsErr := pki.Parse([]byte(tftest.Bundle()))
	if err := errors.Join(certificateErr, keyErr, publicErr, sshErr, secretsErr); err != nil {
		return nil, err
	}

	worker, err := machineconfig.Generate(
		machineconfig.Cluster{Name: "prod", Endpoint: "https://10.0.0.10:6443", KubernetesVersion: "v1.36.2",
			Contract: "v1.14"},
		machineconfig.Machine{Role: machineconfig.Worker, Mode: machineconfig.Metal,
			Install: machineconfig.Install{Disk: "/dev/sda", Image: "ghcr.io/siderolabs/installer:v1.14.1"}}, secrets)

	inPEM := func(kind string, content []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}))
	}

	return map[string]any{"$secrets": tftest.Bundle(), "$kubeconfig": kubeconfigSample,
		"$machineConfig": string(worker.Bytes), "$certificate": inPEM("CERTIFICATE", certificate),
		"$key": inPEM("PRIVATE KEY", key), "$publicKey": inPEM("PUBLIC KEY", publicKey),
		"$sshKey": string(pem.EncodeToMemory(sshKey))}, err
})

const kubeconfigSample = `apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: very-secret}}]`

func readAttributeTable(t *testing.T) *attributeTable {
	t.Helper()

	content, err := os.ReadFile("testdata/attributes.yml")
	tftest.Must(t, err)

	table := &attributeTable{}
	tftest.Must(t, yaml.UnmarshalStrict(content, table))

	generated, err := placeholders()
	tftest.Must(t, err)

	table.Samples = resolved(table.Samples, generated)

	return table
}

// fitting is the value of the longest end that fits a path.
func fitting[T any](of map[string]T, path string) (T, bool) {
	for rest := path; ; {
		if v, ok := of[rest]; ok {
			return v, true
		}

		at := strings.IndexAny(rest, ". ")
		if at < 0 {
			var none T

			return none, false
		}

		rest = rest[at+1:]
	}
}

// never reports whether no configuration sets an attribute, or one that contains it.
func (a *attributeTable) never(path string) bool {
	for ; path != ""; path, _, _ = cutLast(path) {
		if _, never := fitting(a.NeverSet, path); never {
			return true
		}
	}

	return false
}

// cutLast cuts the last name off a path.
func cutLast(path string) (before, last string, found bool) {
	at := strings.LastIndexByte(path, '.')
	if at < 0 {
		return "", path, false
	}

	return path[:at], path[at+1:], true
}

// variant generates one configuration of each schema.
type variant struct {
	*attributeTable
	number int
	// own are values by the end of a path that precede all others, and without are attributes that are left out.
	own     map[string]any
	without map[string]string
	// missing are the paths without a sample.
	missing []string
}

// chosen is whether the variant has an attribute, and the value that its alternative gives it.
func (v *variant) chosen(path string) (any, bool) {
	var value any

	for _, c := range v.Choices {
		mine, others := false, false

		for i, alternative := range c.Of {
			given, fits := fitting(alternative, path)

			switch {
			case !fits:
			case i == v.number/max(c.Each, 1)%len(c.Of):
				mine = true

				if given != nil {
					value = given
				}
			default:
				others = true
			}
		}

		if others && !mine {
			return nil, false
		}
	}

	return value, true
}

// object is a value for every settable attribute.
func (v *variant) object(where string, attributes []*tfprotov6.SchemaAttribute) tftest.Config {
	out := tftest.Config{}

	for _, a := range attributes {
		path := where + "." + a.Name
		if !a.Optional && !a.Required {
			continue
		}

		if value := v.value(path, a); value != nil {
			out[a.Name] = value
		}
	}

	return out
}

// value is that of one attribute; nil leaves it out.
func (v *variant) value(path string, a *tfprotov6.SchemaAttribute) any {
	if own, ok := fitting(v.own, path); ok {
		return own
	}

	if _, ok := fitting(v.without, path); ok {
		return nil
	}

	if _, ok := fitting(v.NeverSet, path); ok {
		return nil
	}

	value, has := v.chosen(path)

	switch sample, ok := fitting(v.Samples, path); {
	case !has && !a.Required:
		return nil
	case value != nil:
		return value
	case a.NestedType != nil:
		return v.nested(path, a.NestedType)
	case ok:
		return sample
	}

	switch a.Type.String() {
	case "tftypes.Bool":
		return true
	case "tftypes.Number":
		return 1
	default:
		v.missing = append(v.missing, path)

		return nil
	}
}

func (v *variant) nested(path string, of *tfprotov6.SchemaObject) any {
	object := v.object(path, of.Attributes)

	switch of.Nesting {
	case tfprotov6.SchemaObjectNestingModeList:
		return []any{object}
	case tfprotov6.SchemaObjectNestingModeMap:
		key, ok := fitting(v.Keys, path)
		if !ok {
			key = "x"
		}

		return tftest.Config{key: object}
	default:
		return object
	}
}

// settable are the paths of a schema that configurations set.
func settable(where string, attributes []*tfprotov6.SchemaAttribute) (paths []string) {
	tftest.WalkAttributes(where, attributes, func(path string, a *tfprotov6.SchemaAttribute) {
		if a.Optional || a.Required {
			paths = append(paths, path)
		}
	})

	return paths
}

// given are the paths of attributes in a configuration.
func given(where string, attributes []*tfprotov6.SchemaAttribute, config any) (paths []string) {
	object, ok := config.(tftest.Config)
	if !ok {
		return nil
	}

	for _, a := range attributes {
		value, ok := object[a.Name]
		if !ok {
			continue
		}

		path := where + "." + a.Name
		paths = append(paths, path)

		if a.NestedType == nil {
			continue
		}

		switch elements := value.(type) {
		case []any:
			for _, e := range elements {
				paths = append(paths, given(path, a.NestedType.Attributes, e)...)
			}
		case tftest.Config:
			if a.NestedType.Nesting != tfprotov6.SchemaObjectNestingModeMap {
				paths = append(paths, given(path, a.NestedType.Attributes, elements)...)

				continue
			}

			for _, e := range elements {
				paths = append(paths, given(path, a.NestedType.Attributes, e)...)
			}
		}
	}

	return paths
}

// fullVariant is a configuration, with the paths that no former variant has.
type fullVariant struct {
	name   string
	config tftest.Config
	fresh  map[string]bool
}

// variantsOf are configurations that together set every settable path of a schema.
func variantsOf(t *testing.T, table *attributeTable, where string, schema *tfprotov6.Schema) []fullVariant {
	t.Helper()

	var (
		out     []fullVariant
		covered []string
		missing []string
	)

	for number := range mostVariants {
		v := variant{attributeTable: table, number: number}
		config := v.object(where, schema.Block.Attributes)
		one := fullVariant{name: fmt.Sprintf("%s %d", where, number), config: config, fresh: map[string]bool{}}

		for _, path := range given(where, schema.Block.Attributes, config) {
			if !slices.Contains(covered, path) {
				covered = append(covered, path)
				one.fresh[path] = true
			}
		}

		if missing = append(missing, v.missing...); len(one.fresh) > 0 {
			out = append(out, one)
		}
	}

	slices.Sort(missing)

	for _, path := range slices.Compact(missing) {
		t.Errorf("%s has no sample in testdata/attributes.yml, nor a reason in neverSet", path)
		covered = append(covered, path)
	}

	for _, path := range settable(where, schema.Block.Attributes) {
		if !table.never(path) && !slices.Contains(covered, path) {
			t.Errorf("%s is in no variant of a configuration", path)
		}
	}

	return out
}
