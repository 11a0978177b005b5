package provider

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	providerpkg "github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	resourcepkg "github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/echoprovider"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/secrets"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// Acceptance tests run the provider in this process under a real CLI, against
// simulated machines.

// inOneCLI runs a test under one CLI, for what is the provider's alone, and under every one before a release.
func inOneCLI(t *testing.T, test func(t *testing.T, cli clitest.CLI)) {
	t.Helper()

	if testenv.Everything() {
		clitest.Each(t, test)

		return
	}

	cli := clitest.One(t)

	t.Run(cli.Name, func(t *testing.T) { test(t, cli) })
}

// environment is held by a test while plugin-testing reads it.
var environment sync.Mutex

// unitTest runs a test case of plugin-testing under a CLI. plugin-testing takes the CLI from the environment, which all
// tests of this process have in common, so that only one of them begins at a time; from its first step on it is on its
// own.
func unitTest(t *testing.T, cli clitest.CLI, test resource.TestCase) {
	t.Helper()

	environment.Lock()

	begun := sync.OnceFunc(environment.Unlock)
	defer begun() // for a test that ends before its first step

	for name, value := range map[string]string{
		"TF_ACC_TERRAFORM_PATH": cli.Path, "TF_CLI_CONFIG_FILE": os.DevNull,
		// Where there is a namespace, plugin-testing writes whole addresses into configurations, which mean the same to both
		// CLIs.
		"TF_ACC_PROVIDER_NAMESPACE": "hashicorp",
	} {
		if err := os.Setenv(name, value); err != nil { //nolint:usetesting // t.Setenv is for tests that do not run side by side
			t.Fatal(err)
		}
	}

	test.Steps = slices.Clone(test.Steps)
	first := test.Steps[0].PreConfig
	test.Steps[0].PreConfig = func() {
		begun()

		if first != nil {
			first()
		}
	}

	resource.UnitTest(t, test)
}

// quickProviderData gives up early and looks often. Who is asked has the time of a busy machine for an answer: nobody
// here is silent without being refused.
func quickProviderData() *providerdata.ProviderData {
	m := newProviderData()
	m.Interval = 10 * time.Millisecond
	m.Policy.DeadAfter = 5 * time.Second
	m.Policy.AppearWithin = 10 * time.Minute // a machine of a killed run may take long to boot on a busy computer
	m.Policy.OthersGrace = 10 * time.Second
	m.Talos.Timeouts = talos.Timeouts{
		Connect: 10 * time.Second, Call: 10 * time.Second, Observe: 10 * time.Second, Settle: 15 * time.Second,
		Poll: 10 * time.Millisecond,
	}

	return m
}

// newSecrets are the bundles that every process of these tests takes for new ones, so that clusters are made with them
// in one apply, and the processes.
var newSecrets struct {
	mu        sync.Mutex
	bundles   []*pki.Bundle
	processes []*providerdata.ProviderData
}

// newProviderData is the data of a process that takes the secrets of bundleOnce and newBundle for new ones.
func newProviderData() *providerdata.ProviderData {
	m := providerdata.NewProviderData()
	first, err := firstBundle()

	newSecrets.mu.Lock()
	defer newSecrets.mu.Unlock()

	for _, bundle := range append(slices.Clone(newSecrets.bundles), first) {
		if err == nil {
			m.Ledger().NoteUnused(bundle)
		}
	}

	newSecrets.processes = append(newSecrets.processes, m)

	return m
}

// takenForNew has every process take a bundle for a new one.
func takenForNew(bundle *pki.Bundle) {
	newSecrets.mu.Lock()
	defer newSecrets.mu.Unlock()

	newSecrets.bundles = append(newSecrets.bundles, bundle)
	for _, m := range newSecrets.processes {
		m.Ledger().NoteUnused(bundle)
	}
}

// quickProviders is a provider on quickProviderData.
func quickProviders() map[string]func() (tfprotov6.ProviderServer, error) {
	return providersWith(quickProviderData())
}

func providersWith(m *providerdata.ProviderData) map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"talosop": providerserver.NewProtocol6WithError(newQuickProvider(m)),
		"echo":    echoprovider.NewProviderServer(),
	}
}

// complete is all that the provider offers.
type complete interface {
	providerpkg.ProviderWithActions
	providerpkg.ProviderWithConfigValidators
	providerpkg.ProviderWithEphemeralResources
	providerpkg.ProviderWithFunctions
	providerpkg.ProviderWithListResources
}

// quickProvider is a provider that makes secrets without seconds for a key.
type quickProvider struct{ complete }

// newQuickProvider is one of given data.
func newQuickProvider(m *providerdata.ProviderData) providerpkg.Provider {
	return quickProvider{NewOf("test", m).(complete)}
}

func (p quickProvider) Resources(ctx context.Context) []func() resourcepkg.Resource {
	all := p.complete.Resources(ctx)

	for i, newResource := range all {
		var named resourcepkg.MetadataResponse
		if newResource().Metadata(ctx, resourcepkg.MetadataRequest{ProviderTypeName: "talosop"},
			&named); named.TypeName == "talosop_secrets" {
			all[i] = func() resourcepkg.Resource { return secrets.NewResourceOf(quickBundle) }
		}
	}

	return all
}

// site is simulated machines and the configuration that is written for them.
type site struct {
	*sim.Simulator

	endpoint     string
	controlPlane []*sim.Machine
	workers      []*sim.Machine
}

func newSite(t *testing.T, controlPlanes, workers int) *site {
	t.Helper()

	return newSiteWith(t, sim.Options{}, controlPlanes, workers)
}

func newSiteWith(t *testing.T, opts sim.Options, controlPlanes, workers int) *site {
	t.Helper()

	s := &site{Simulator: sim.ForTest(t, opts)}

	var err error
	if s.endpoint, err = s.Endpoint(); err != nil {
		t.Fatal(err)
	}

	if s.controlPlane, err = s.AddMachines(t.Context(), "cp", controlPlanes, sim.MachineOptions{}); err != nil {
		t.Fatal(err)
	}

	if s.workers, err = s.AddMachines(t.Context(), "w", workers, sim.MachineOptions{}); err != nil {
		t.Fatal(err)
	}

	return s
}

// machinesHCL lists machines as the argument does.
func machinesHCL(machines []*sim.Machine) string {
	var b strings.Builder
	for _, m := range machines {
		fmt.Fprintf(&b, "    %s = { address = %q }\n", m.Name(), m.Address())
	}

	return b.String()
}

// secretsHCL is secrets that may be destroyed.
const secretsHCL = `
resource "talosop_secrets" "this" {
  deletion_protection = false
}
`

// controlPlaneHCL is a control plane that may be destroyed. extra is further
// arguments.
func (s *site) controlPlaneHCL(extra string) string {
	return s.controlPlaneOf(s.controlPlane, extra)
}

func (s *site) controlPlaneOf(machines []*sim.Machine, extra string) string {
	protection := "  deletion_protection = false\n"
	if strings.Contains(extra, "deletion_protection") {
		protection = ""
	}

	return fmt.Sprintf(`
resource "talosop_control_plane" "this" {
  mode               = "metal"
  name               = "test"
  endpoint           = %q
  secrets            = talosop_secrets.this.bundle
  talos_version      = "v1.13.0"
  kubernetes_version = "v1.36.2"
  install            = { disk = "/dev/sda" }
  machines = {
%s  }
%s%s
}
`, s.endpoint, machinesHCL(machines), protection, extra)
}

// workersHCL is a pool of workers on the control plane of the configuration.
func (s *site) workersHCL(extra string) string {
	return s.workersOf(s.workers, extra)
}

func (s *site) workersOf(machines []*sim.Machine, extra string) string {
	return fmt.Sprintf(`
resource "talosop_worker" "this" {
  cluster       = talosop_control_plane.this.cluster
  talos_version = "v1.13.0"
  install       = { disk = "/dev/sda" }
  machines = {
%s  }
%s
}
`, machinesHCL(machines), extra)
}

// replaceMachines puts text into the empty map of machines of a configuration.
func replaceMachines(config, machines string) string {
	return strings.Replace(config, "machines = {\n", "machines = {\n    "+machines+"\n", 1)
}

// wholeCluster is secrets, control plane and workers.
func (s *site) wholeCluster() string {
	return secretsHCL + s.controlPlaneHCL("") + s.workersHCL("")
}
