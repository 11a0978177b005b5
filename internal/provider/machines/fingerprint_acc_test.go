package machines_test

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"net"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
)

// A configuration goes only to the machine that showed this certificate. After a reset it shows another one, and
// still counts as done.
func TestAccFingerprint_mustMatch(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 0)
		address := s.ControlPlane[0].Address().String()

		asked := `
data "talosop_machine_info" "this" { address = "` + address + `" }
`
		pinned := func(fingerprint string) string {
			return sitetest.SecretsHCL + sitetest.ReplaceMachines(s.ControlPlaneOf(nil, ""),
				`cp-1 = { address = "`+address+`", fingerprint = `+fingerprint+` }`)
		}

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: asked + pinned(`"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="`),
					ExpectError: sitetest.Message("Unable to create control plane")},
				{PreConfig: func() { s.ExpectNothingSent(t) }, Config: asked},
				{Config: pinned(`"` + fingerprint(t, s, address) + `"`)},
			},
		})

		s.ExpectReset(t)
	})
}

// fingerprint is that of the certificate that a machine shows now, as on its console.
func fingerprint(t *testing.T, s *sitetest.Site, address string) string {
	t.Helper()

	//nolint:gosec // a machine in maintenance mode has made its certificate itself
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp",
		net.JoinHostPort(address, "50000"))
	if err != nil {
		t.Fatal(err)
	}

	defer conn.Close()

	secure, ok := conn.(*tls.Conn)
	if !ok {
		t.Fatalf("the connection is a %T", conn)
	}

	sum := sha256.Sum256(secure.ConnectionState().PeerCertificates[0].RawSubjectPublicKeyInfo)

	return base64.StdEncoding.EncodeToString(sum[:])
}
