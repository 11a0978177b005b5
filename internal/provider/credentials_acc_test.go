package provider

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"net"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
)

func decode(t *testing.T, raw json.RawMessage, into any) {
	t.Helper()

	if len(raw) == 0 {
		return
	}

	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

// use is a check that works with a text of the state.
func use(t *testing.T, f func(text string)) knownvalue.Check {
	t.Helper()

	return knownvalue.StringFunc(func(text string) error {
		f(text)

		return nil
	})
}

// The kubeconfig works once the create has ended, the talosconfig as well, and both
// have what was asked for.
func TestAccCredentials_workAfterTheCreate(t *testing.T) {
	t.Parallel()

	inOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := newSite(t, 1, 1)
		config := s.wholeCluster() + `
ephemeral "talosop_kubeconfig" "this" {
  cluster = talosop_control_plane.this.cluster
  user    = "ci"
  ttl     = "20m"
}

ephemeral "talosop_talosconfig" "this" {
  cluster = talosop_control_plane.this.cluster
  roles   = ["os:reader"]
  nodes   = [talosop_control_plane.this.cluster.talos_endpoints[0]]
}

provider "echo" {
  data = { kubeconfig = ephemeral.talosop_kubeconfig.this, talosconfig = ephemeral.talosop_talosconfig.this }
}

resource "echo" "this" {}
`
		data := tfjsonpath.New("data")

		unitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: quickProviders(),
			Steps: []resource.TestStep{
				{Config: s.wholeCluster()},
				{
					Config: config,
					ConfigStateChecks: []statecheck.StateCheck{
						statecheck.ExpectKnownValue("echo.this", data.AtMapKey("kubeconfig").AtMapKey("kubeconfig"),
							use(t, func(file string) { kubeconfigWorks(t, file, 2) })),
						statecheck.ExpectKnownValue("echo.this", data.AtMapKey("kubeconfig").AtMapKey("endpoint"),
							knownvalue.StringExact(s.endpoint)),
						statecheck.ExpectKnownValue("echo.this", data.AtMapKey("kubeconfig").AtMapKey("not_after"), knownvalue.NotNull()),
						statecheck.ExpectKnownValue("echo.this", data.AtMapKey("talosconfig").AtMapKey("talosconfig"),
							use(t, func(file string) { talosconfigWorks(t, file) })),
					},
				},
			},
		})
	})
}

func kubeconfigWorks(t *testing.T, file string, want int) {
	t.Helper()

	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(file))
	if err != nil {
		t.Fatal(err)
	}

	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}

	nodes, err := api.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if len(nodes.Items) != want {
		t.Errorf("the kubeconfig shows %d nodes", len(nodes.Items))
	}
}

func talosconfigWorks(t *testing.T, file string) {
	t.Helper()

	config, err := clientconfig.FromString(file)
	if err != nil {
		t.Fatal(err)
	}

	api, err := client.New(t.Context(), client.WithConfig(config))
	if err != nil {
		t.Fatal(err)
	}

	defer api.Close()

	if _, err := api.Version(t.Context()); err != nil {
		t.Errorf("ask for the version: %v", err)
	}

	if _, err := api.Kubeconfig(t.Context()); err == nil {
		t.Error("a reader was given the kubeconfig")
	}
}

// The data source tells the same machine in maintenance mode and as a member.
func TestAccMachineInfo_inMaintenanceAndAsMember(t *testing.T) {
	t.Parallel()

	inOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := newSite(t, 1, 0)
		m := s.controlPlane[0]
		info := func(name string) tfjsonpath.Path { return tfjsonpath.New(name) }

		waiting := `
data "talosop_machine_info" "this" {
  address = "` + m.Address().String() + `"
}
`
		joined := secretsHCL + s.controlPlaneHCL("") + `
data "talosop_machine_info" "this" {
  address = "` + m.Address().String() + `"
  cluster = talosop_control_plane.this.cluster
}
`

		unitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: quickProviders(),
			Steps: []resource.TestStep{
				{
					Config: waiting,
					ConfigStateChecks: []statecheck.StateCheck{
						statecheck.ExpectKnownValue("data.talosop_machine_info.this", info("maintenance"), knownvalue.Bool(true)),
						statecheck.ExpectKnownValue("data.talosop_machine_info.this", info("uuid"), knownvalue.StringExact(m.UUID())),
						statecheck.ExpectKnownValue("data.talosop_machine_info.this", info("talos_version"),
							knownvalue.StringExact("v1.13.0")),
						statecheck.ExpectKnownValue("data.talosop_machine_info.this", info("certificate_fingerprint"),
							knownvalue.NotNull()),
						statecheck.ExpectKnownValue("data.talosop_machine_info.this", info("disks").AtSliceIndex(0).AtMapKey("path"),
							knownvalue.StringExact("/dev/sda")),
						statecheck.ExpectKnownValue("data.talosop_machine_info.this", info("addresses"),
							knownvalue.ListPartial(map[int]knownvalue.Check{0: knownvalue.StringExact(m.Address().String())})),
					},
				},
				{Config: waiting + `
data "talosop_machine_info" "pinned" {
  address     = "` + m.Address().String() + `"
  fingerprint = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
}`, ExpectError: message("Unable to read machine")},
				{
					Config: joined,
					ConfigStateChecks: []statecheck.StateCheck{
						statecheck.ExpectKnownValue("data.talosop_machine_info.this", info("maintenance"), knownvalue.Bool(false)),
						statecheck.ExpectKnownValue("data.talosop_machine_info.this", info("stage"), knownvalue.StringExact("running")),
						statecheck.ExpectKnownValue("data.talosop_machine_info.this", info("uuid"), knownvalue.StringExact(m.UUID())),
					},
				},
				{Config: secretsHCL + s.controlPlaneHCL("") + waiting, ExpectError: message("Unable to read machine")},
			},
		})
	})
}

// A configuration goes only to the machine that showed this certificate. Once it was reset
// it shows another one, and counts as done all the same.
func TestAccFingerprint_mustMatch(t *testing.T) {
	t.Parallel()

	inOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := newSite(t, 1, 0)
		address := s.controlPlane[0].Address().String()

		asked := `
data "talosop_machine_info" "this" { address = "` + address + `" }
`
		pinned := func(fingerprint string) string {
			return secretsHCL + replaceMachines(s.controlPlaneOf(nil, ""),
				`cp-1 = { address = "`+address+`", fingerprint = `+fingerprint+` }`)
		}

		unitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: quickProviders(),
			Steps: []resource.TestStep{
				{Config: asked + pinned(`"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="`),
					ExpectError: message("Unable to create control plane")},
				{PreConfig: func() { s.nothingWasSent(t) }, Config: asked},
				{Config: pinned(`"` + s.fingerprint(t, address) + `"`)},
			},
		})

		s.expectReset(t)
	})
}

// fingerprint is that of the certificate which a machine shows now, as its console does.
func (s *site) fingerprint(t *testing.T, address string) string {
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
