package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"k8s.io/client-go/tools/clientcmd"
)

// verify checks that a server which trusts the CA accepts the client, and gives the client's certificate.
func verify(t *testing.T, c Credentials) *x509.Certificate {
	t.Helper()

	if _, err := tls.X509KeyPair(c.Certificate, c.Key); err != nil {
		t.Fatalf("certificate and key: %v", err)
	}

	block, _ := pem.Decode(c.Certificate)

	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.CA)

	if _, err := certificate.Verify(
		x509.VerifyOptions{Roots: roots, CurrentTime: c.NotAfter.Add(-time.Second),
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Fatalf("the authority's server refuses the client: %v", err)
	}

	// Talos refuses a client certificate that may also be used by a server.
	if diff := cmp.Diff([]x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, certificate.ExtKeyUsage); diff != "" {
		t.Error(diff)
	}

	if !certificate.NotBefore.Equal(c.NotBefore) || !certificate.NotAfter.Equal(c.NotAfter) {
		t.Errorf("the certificate is valid from %s to %s, the credentials say %s to %s",
			certificate.NotBefore, certificate.NotAfter, c.NotBefore, c.NotAfter)
	}

	return certificate
}

func TestTalosClient_hasItsRoles(t *testing.T) {
	bundle, err := Generate()
	if err != nil {
		t.Fatal(err)
	}

	credentials, err := bundle.TalosClient([]string{"os:reader", "os:etcd:backup"}, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}

	certificate := verify(t, credentials)

	roles := slices.Sorted(slices.Values(certificate.Subject.Organization))
	if diff := cmp.Diff([]string{"os:etcd:backup", "os:reader"}, roles); diff != "" {
		t.Error(diff)
	}

	if left := time.Until(credentials.NotAfter); left < 9*time.Minute || left > 10*time.Minute {
		t.Errorf("valid for %s, want 10 minutes", left)
	}

	if early := time.Since(credentials.NotBefore); early < 30*time.Minute {
		t.Errorf("valid since %s only; a machine whose clock is late refuses it", early)
	}
}

func TestKubernetesClient_hasItsGroups(t *testing.T) {
	credentials, err := testBundle(t).KubernetesClient("jane", []string{"system:masters"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	certificate := verify(t, credentials)
	if certificate.Subject.CommonName != "jane" ||
		!slices.Equal(certificate.Subject.Organization, []string{"system:masters"}) {
		t.Errorf("subject %s", certificate.Subject)
	}
}

func TestMint_staysWithinTheAuthority(t *testing.T) {
	bundle := testBundle(t)

	credentials, err := bundle.TalosClient([]string{"os:admin"}, 100*365*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	verify(t, credentials)

	authority := bundle.Authorities()[0]
	if !credentials.NotAfter.Equal(authority.NotAfter) {
		t.Errorf("valid until %s, the authority until %s", credentials.NotAfter, authority.NotAfter)
	}

	certificate, err := bundle.Secrets().Certs.OS.GetCert()
	if err != nil {
		t.Fatal(err)
	}

	if credentials.NotBefore.Before(certificate.NotBefore) {
		t.Errorf("valid from %s, before the authority at %s", credentials.NotBefore, certificate.NotBefore)
	}
}

func TestMint_refuses(t *testing.T) {
	bundle := testBundle(t)

	for _, test := range []struct {
		name string
		mint func() (Credentials, error)
		want string
	}{
		{"no role", func() (Credentials, error) { return bundle.TalosClient(nil, time.Hour) }, "at least one role"},
		{"an empty role", func() (Credentials, error) { return bundle.TalosClient([]string{" "}, time.Hour) },
			"at least one role"},
		{"an unknown role", func() (Credentials, error) { return bundle.TalosClient([]string{"admin"}, time.Hour) },
			"unknown roles admin; Talos knows os:admin"},
		{"no lifetime", func() (Credentials, error) { return bundle.TalosClient([]string{"os:admin"}, 0) },
			"lifetime 0s is not positive"},
		{"no user", func() (Credentials, error) { return bundle.KubernetesClient("", nil, time.Hour) },
			"a user name is required"},
		{"an expired authority", func() (Credentials, error) {
			return at(t, testTime.AddDate(10, 0, 0)).TalosClient([]string{"os:admin"}, time.Hour)
		}, "the CA certificate expired at 2036-11-18"},
		{"an authority of the future", func() (Credentials, error) {
			return at(t, testTime.AddDate(-10, 0, 0)).TalosClient([]string{"os:admin"}, time.Hour)
		}, "check the clock of this computer"},
		{"a negative lifetime", func() (Credentials, error) { return bundle.KubernetesClient("x", nil, -time.Hour) },
			"not positive"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := test.mint(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// at is the test bundle on a computer with that time.
func at(t *testing.T, now time.Time) *Bundle {
	t.Helper()

	bundle := testBundle(t)
	bundle.secrets.Clock = secrets.NewFixedClock(now)

	return bundle
}

func TestTalosconfig_isOneTalosctlUses(t *testing.T) {
	file, err := testBundle(t).Talosconfig(TalosconfigInput{
		Context: "prod", Endpoints: []string{"10.0.0.11", "10.0.0.12"}, Nodes: []string{"10.0.0.11"},
		Roles: []string{"os:reader"}, TTL: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}

	parsed, err := clientconfig.FromBytes(file)
	if err != nil {
		t.Fatal(err)
	}

	context := parsed.Contexts[parsed.Context]
	if parsed.Context != "prod" || context == nil {
		t.Fatalf("context %q of %d", parsed.Context, len(parsed.Contexts))
	}

	if diff := cmp.Diff([]string{"10.0.0.11", "10.0.0.12"}, context.Endpoints); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff([]string{"10.0.0.11"}, context.Nodes); diff != "" {
		t.Error(diff)
	}

	if context.CA == "" || context.Crt == "" || context.Key == "" {
		t.Error("no credentials")
	}

	if _, err := testBundle(t).Talosconfig(TalosconfigInput{Roles: []string{"os:reader"}, TTL: time.Hour}); err == nil {
		t.Error("a talosconfig without a context name")
	}
}

func TestKubeconfig_isOneKubectlUses(t *testing.T) {
	file, err := testBundle(t).Kubeconfig(KubeconfigInput{
		Cluster: "prod", Server: "https://10.0.0.10:6443", User: "admin", Groups: []string{"system:masters"}, TTL: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}

	parsed, err := clientcmd.Load(file)
	if err != nil {
		t.Fatal(err)
	}

	if err := clientcmd.ConfirmUsable(*parsed, "admin@prod"); err != nil {
		t.Fatal(err)
	}

	if parsed.CurrentContext != "admin@prod" {
		t.Errorf("current context %q", parsed.CurrentContext)
	}

	rest, err := clientcmd.RESTConfigFromKubeConfig(file)
	if err != nil {
		t.Fatal(err)
	}

	if rest.Host != "https://10.0.0.10:6443" {
		t.Errorf("server %q", rest.Host)
	}

	verify(t, Credentials{
		CA: rest.CAData, Certificate: rest.CertData, Key: rest.KeyData,
		NotBefore: certificateOf(t, rest.CertData).NotBefore, NotAfter: certificateOf(t, rest.CertData).NotAfter,
	})

	for _, in := range []KubeconfigInput{{Server: "https://x", User: "x", TTL: time.Hour},
		{Cluster: "x", User: "x", TTL: time.Hour}, {Cluster: "x", Server: "https://x", TTL: time.Hour}} {
		if _, err := testBundle(t).Kubeconfig(in); err == nil {
			t.Errorf("a kubeconfig from %+v", in)
		}
	}
}

func certificateOf(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()

	block, _ := pem.Decode(data)

	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}

	return certificate
}
