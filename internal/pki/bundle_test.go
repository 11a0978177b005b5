package pki

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"

	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// testFile was written by talosctl 1.13.0 for these tests. No cluster uses it.
func testFile(tb testing.TB) []byte {
	tb.Helper()

	data, err := os.ReadFile("testdata/test-only-secrets.yaml")
	if err != nil {
		tb.Fatal(err)
	}

	return data
}

// testTime is within the validity of the authorities in the file, whatever the clock of this computer says.
var testTime = time.Date(2030, time.June, 1, 12, 0, 0, 0, time.UTC)

func testBundle(tb testing.TB) *Bundle {
	tb.Helper()

	bundle, err := Parse(testFile(tb))
	if err != nil {
		tb.Fatal(err)
	}

	bundle.secrets.Clock = secrets.NewFixedClock(testTime)

	return bundle
}

func TestParse_fileOfTalosctlRoundTrips(t *testing.T) {
	file := testFile(t)

	for range 3 {
		bundle, err := Parse(file)
		if err != nil {
			t.Fatal(err)
		}

		again, err := bundle.YAML()
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(string(file), string(again)); diff != "" {
			t.Fatalf("not the same bytes (-file +again):\n%s", diff)
		}
	}
}

func TestParse_normalizesCommentsAndOrder(t *testing.T) {
	parts := strings.SplitAfter(string(testFile(t)), "\ntrustdinfo:")
	head, tail, _ := strings.Cut(parts[0], "\ntrustdinfo:")
	reordered := "# kept in the vault\ntrustdinfo:" + parts[1] + head + tail + "\n"

	bundle, err := Parse([]byte(reordered))
	if err != nil {
		t.Fatal(err)
	}

	encoded, err := bundle.YAML()
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(string(testFile(t)), string(encoded)); diff != "" {
		t.Errorf("not canonical (-want +got):\n%s", diff)
	}
}

func TestGenerate_isWhole(t *testing.T) {
	before := time.Now()

	bundle, err := Generate()
	if err != nil {
		t.Fatal(err)
	}

	encoded, err := bundle.YAML()
	if err != nil {
		t.Fatal(err)
	}

	if _, err := Parse(encoded); err != nil {
		t.Errorf("a generated bundle does not parse: %v", err)
	}

	s := bundle.Secrets()
	if s.Secrets.SecretboxEncryptionSecret == "" || s.Secrets.AESCBCEncryptionSecret != "" {
		t.Error("want secretbox encryption only, the form from Talos 1.3")
	}

	if _, err := s.Certs.K8sServiceAccount.GetRSAKey(); err != nil {
		t.Errorf("want an RSA service account key, the form from Talos 1.7: %v", err)
	}

	certificate, err := s.Certs.OS.GetCert()
	if err != nil {
		t.Fatal(err)
	}

	if early := before.Sub(certificate.NotBefore); early < 30*time.Minute {
		t.Errorf("the Talos authority is valid from %s before its making; machines with a late clock would refuse it", early)
	}

	if _, fixed := s.Clock.(*secrets.SystemClock); !fixed || time.Since(s.Clock.Now()) > time.Minute {
		t.Error("the clock of the bundle does not tell the time")
	}
}

func TestParse_refusesWhatIsNoBundle(t *testing.T) {
	file := string(testFile(t))

	// line replaces what follows a key, wherever it is first.
	line := func(key, value string) string {
		head, tail, found := strings.Cut(file, key)
		if !found {
			t.Fatalf("no %q in the file", key)
		}

		_, rest, _ := strings.Cut(tail, "\n")

		return head + value + "\n" + rest
	}

	etcd := strings.SplitN(file, "etcd:\n", 2)[1]
	etcdKey := strings.TrimPrefix(strings.TrimSpace(strings.SplitN(etcd, "\n", 3)[1]), "key: ")

	for _, test := range []struct{ name, file, want string }{
		{"nothing", "", "expected a YAML mapping"},
		{"text", "hello", "expected a YAML mapping"},
		{"broken YAML", "a: [", "not YAML"},
		{"a machine configuration", "version: v1alpha1\nmachine: {}\n", "found a machine configuration"},
		{"a talosconfig", "context: x\ncontexts: {}\n", "found a talosconfig"},
		{"JSON", `{"Cluster":{"Id":"x"}}`, "found the JSON form"},
		{"an unknown part", file + "extra: 1\n", `unknown part "extra"`},
		{"a part of another shape", strings.Replace(file, "trustdinfo:\n", "trustdinfo: x\nother:\n", 1), "trustdinfo (line"},
		{"no cluster id", line("    id: ", "    id: \"\""), "cluster.id is missing"},
		{"no cluster secret", line("    secret: ", "    secret: \"\""), "cluster.secret is missing"},
		{"no bootstrap token", line("    bootstraptoken: ", "    bootstraptoken: \"\""), "secrets.bootstraptoken is missing"},
		{"a bootstrap token without a dot", line("    bootstraptoken: ", "    bootstraptoken: abcdef"),
			"secrets.bootstraptoken does not have the format <id>.<secret>"},
		{"a bootstrap token without an id", line("    bootstraptoken: ", "    bootstraptoken: .abcdef"),
			"secrets.bootstraptoken does not have the format <id>.<secret>"},
		{"a bootstrap token without a secret", line("    bootstraptoken: ", "    bootstraptoken: abcdef."),
			"secrets.bootstraptoken does not have the format <id>.<secret>"},
		{"no encryption secret", line("    secretboxencryptionsecret: ", "    x: y"),
			"secretboxencryptionsecret (or aescbcencryptionsecret) is missing"},
		{"no trustd token", line("    token: ", "    token: \"\""), "trustdinfo.token is missing"},
		{"an authority without key", line("        key: ", "        key: \"\""), "certs.etcd: key is missing"},
		{"a certificate that is not base64", line("        crt: ", "        crt: '%'"), "certs.etcd (line"},
		{"a certificate that is not PEM", line("        crt: ", "        crt: aGVsbG8="),
			"certs.etcd: crt is not a PEM certificate"},
		{"the key of another authority", strings.Replace(file, keyOf(t, file, "k8s:\n"), etcdKey, 1),
			"certs.k8s: key does not match crt"},
		{"an unknown certificate", strings.Replace(file, "k8saggregator:", "front:", 1), "unknown part certs.front"},
		{"a missing certificate", strings.Replace(file, "    k8saggregator:\n",
			"    k8saggregator: null\n    k8sserviceaccount:\n        key: x\n    os:\n", 1), "certs"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse([]byte(test.file))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got error %v, want one with %q", err, test.want)
			}

			assertNoSecrets(t, err.Error())
		})
	}
}

func TestParse_reportsAllProblemsAtOnce(t *testing.T) {
	_, err := Parse([]byte("cluster: {id: x}\nsecrets: {bootstraptoken: a.b}\ncerts: {}\n"))
	for _, want := range []string{
		"cluster.secret is missing", "trustdinfo.token is missing",
		"secretboxencryptionsecret (or aescbcencryptionsecret) is missing",
		"certs.os: is missing", "certs.k8s: is missing", "certs.etcd: is missing", "certs.k8saggregator: is missing",
		"certs.k8sserviceaccount: key is missing",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

func keyOf(t *testing.T, file, part string) string {
	t.Helper()

	_, after, found := strings.Cut(file, part)
	if !found {
		t.Fatalf("no %q in the file", part)
	}

	_, key, _ := strings.Cut(after, "key: ")
	key, _, _ = strings.Cut(key, "\n")

	return key
}

// assertNoSecrets fails when a text contains any value of the test bundle that is secret.
func assertNoSecrets(t *testing.T, text string) {
	t.Helper()

	for line := range strings.Lines(string(testFile(t))) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if key != "id" && len(value) > 8 && strings.Contains(text, value[:len(value)-2]) {
			t.Errorf("the value of %s is in %.200q", key, text)
		}
	}

	if strings.Contains(text, "PRIVATE KEY") {
		t.Errorf("a private key is in %.200q", text)
	}
}

func TestBundle_neverPrints(t *testing.T) {
	bundle := testBundle(t)

	talos, err := bundle.TalosClient([]string{"os:admin"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	type holder struct {
		Bundle      *Bundle
		Copy        Bundle
		Credentials Credentials
		Pointer     *Credentials
	}

	value := holder{bundle, *bundle, talos, &talos}

	var texts []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T"} {
		texts = append(texts, fmt.Sprintf(verb, value), fmt.Sprintf(verb, bundle), fmt.Sprintf(verb, *bundle),
			fmt.Sprintf(verb, talos), fmt.Sprintf(verb, &talos))
	}

	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}

	var logged bytes.Buffer

	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "bundle", bundle, "credentials", talos)
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "bundle", bundle, "credentials", talos)

	for _, text := range append(texts, string(encoded), logged.String()) {
		assertNoSecrets(t, text)

		for _, part := range [][]byte{talos.Key, talos.Certificate} {
			if strings.Contains(text, string(part[40:80])) || strings.Contains(text, fmt.Sprintf("%x", part[40:80])) {
				t.Errorf("credentials are in %.200q", text)
			}
		}
	}
}

func TestAuthorities_areThoseOfTheBundle(t *testing.T) {
	authorities := testBundle(t).Authorities()

	var names []string
	for _, authority := range authorities {
		names = append(names, authority.Name)

		if len(authority.Fingerprint) != 64 || strings.ToLower(authority.Fingerprint) != authority.Fingerprint {
			t.Errorf("%s: fingerprint %q", authority.Name, authority.Fingerprint)
		}

		if years := authority.NotAfter.Year() - 2025; years < 9 || authority.NotAfter.Location() != time.UTC {
			t.Errorf("%s: valid until %s", authority.Name, authority.NotAfter)
		}
	}

	if diff := cmp.Diff([]string{"talos", "kubernetes", "etcd", "aggregator"}, names); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff(authorities, testBundle(t).Authorities()); diff != "" {
		t.Errorf("not the same twice:\n%s", diff)
	}
}

// What records are authenticated with stays as it is while everything is rotated that can be.
func TestRecordKeys_outliveRotations(t *testing.T) {
	bundle := testBundle(t)
	keys := bundle.RecordKeys()

	if len(keys) != 1 || len(keys[0]) != 32 {
		t.Fatalf("there are %d keys", len(keys))
	}

	turned := testBundle(t)

	fresh, err := Generate()
	if err != nil {
		t.Fatal(err)
	}

	turned.secrets.Certs, turned.secrets.TrustdInfo = fresh.secrets.Certs, fresh.secrets.TrustdInfo
	turned.secrets.Cluster.Secret, turned.secrets.Secrets.BootstrapToken = "another", "another"

	if diff := cmp.Diff(keys, turned.RecordKeys()); diff != "" {
		t.Errorf("after a rotation (-want +got):\n%s", diff)
	}

	if cmp.Equal(keys, fresh.RecordKeys()) {
		t.Error("another cluster has the same")
	}

	turned.secrets.Secrets.AESCBCEncryptionSecret = "former"
	if both := turned.RecordKeys(); len(both) != 2 || !cmp.Equal(both[0], keys[0]) || cmp.Equal(both[0], both[1]) {
		t.Errorf("with a former secret there are %d keys", len(both))
	}
}

// Owner marks stay good while every key is rotated that can be. A client that knows another bundle of the cluster
// verifies the marks of both, and signs with its own.
func TestOwnerKeys_outliveRotations(t *testing.T) {
	bundle := testBundle(t)
	keys := bundle.OwnerKeys()

	if len(keys) != 1 || len(keys[0]) != 32 || cmp.Equal(keys, bundle.RecordKeys()) {
		t.Fatalf("there are %d keys, or they are those of records", len(keys))
	}

	if diff := cmp.Diff(keys, turned(t, bundle, rotation.Kinds()...).OwnerKeys()); diff != "" {
		t.Errorf("after a rotation (-want +got):\n%s", diff)
	}

	other := testBundle(t)
	other.secrets.Secrets = new(*other.secrets.Secrets)
	other.secrets.Secrets.SecretboxEncryptionSecret = "another"

	if both := bundle.Knowing(other).OwnerKeys(); len(both) != 2 || !cmp.Equal(both[0], keys[0]) ||
		!cmp.Equal(both[1], other.OwnerKeys()[0]) {
		t.Errorf("with another bundle of the cluster there are %d keys", len(both))
	}

	fresh, err := Generate()
	if err != nil {
		t.Fatal(err)
	}

	if cmp.Equal(keys, fresh.OwnerKeys()) {
		t.Error("another cluster has the same")
	}
}

func TestSameCluster_isKnownByItsID(t *testing.T) {
	t.Parallel()

	file := string(testFile(t))
	rotated := strings.Replace(file, testBundle(t).Secrets().TrustdInfo.Token, "another", 1)
	other := strings.Replace(file, testBundle(t).ClusterID(), "anothercluster", 1)

	for name, test := range map[string]struct {
		a, b string
		same bool
	}{
		"the same bytes":      {file, file, true},
		"after a rotation":    {file, rotated, true},
		"another cluster":     {file, other, false},
		"nothing":             {"", "", false},
		"nothing to compare":  {file, "", false},
		"the same text":       {"hunter2", "hunter2", true},
		"one is no bundle":    {file, "hunter2", false},
		"neither is a bundle": {"hunter3", "hunter2", false},
	} {
		if SameCluster(test.a, test.b) != test.same || SameCluster(test.b, test.a) != test.same {
			t.Errorf("%s: want %t", name, test.same)
		}
	}
}
