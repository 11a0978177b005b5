package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// site is where a scenario runs: machines in maintenance mode and the facts about them.
type site struct {
	controlPlanes, workers   []string
	endpoint                 string
	platform                 string // metal or containers
	talosVersion, kubernetes string
	kubernetesBefore         string // the version before an upgrade
	talosAfter               string // the version after an upgrade
	talosFailing             string // a version whose boot fails; empty when there is no such build
	disk                     string
	userDisk                 string // a second disk of the first worker; empty when there is none
	image                    string // of pods that wait forever; empty when the machines run no pods
	patches                  []string
	cannot                   []string
	boot                     time.Duration // the most a machine may take from a reset to maintenance mode
	settling                 time.Duration // how long the readiness of a working machine may change
	timeout                  string        // of an apply; empty for the provider's default
	contract                 string        // version contract; empty for that of the Talos version
	controlPlanePatches      []string
}

// siteFromEnvironment reads the machines of a developer; it skips the test when there are none.
func siteFromEnvironment(t *testing.T) site {
	t.Helper()

	s := site{
		controlPlanes:    addresses("TALOSOP_E2E_CONTROL_PLANES"),
		workers:          addresses("TALOSOP_E2E_WORKERS"),
		talosVersion:     setting("TALOSOP_E2E_TALOS_VERSION", "v1.13.0"),
		kubernetes:       setting("TALOSOP_E2E_KUBERNETES_VERSION", "v1.36.3"),
		kubernetesBefore: setting("TALOSOP_E2E_KUBERNETES_BEFORE", "v1.35.4"),
		talosAfter:       setting("TALOSOP_E2E_TALOS_AFTER", "v1.13.2"),
		talosFailing:     setting("TALOSOP_E2E_TALOS_FAILING", ""),
		disk:             setting("TALOSOP_E2E_DISK", "/dev/sda"),
		userDisk:         setting("TALOSOP_E2E_USER_DISK", ""),
		image:            setting("TALOSOP_E2E_IMAGE", "registry.k8s.io/pause:3.10.1"),
		cannot:           addresses("TALOSOP_E2E_CANNOT"),
		boot:             10 * time.Minute,
		settling:         3 * time.Minute,
		timeout:          setting("TALOSOP_E2E_TIMEOUT", ""),
		contract:         setting("TALOSOP_E2E_VERSION_CONTRACT", ""),
	}

	if s.timeout != "" {
		timeout, err := time.ParseDuration(s.timeout)
		if err != nil {
			t.Fatalf("read TALOSOP_E2E_TIMEOUT: %v", err)
		}

		s.boot, s.settling = max(s.boot, timeout), max(s.settling, timeout/4)
	}

	if len(s.controlPlanes) == 0 {
		t.Skip("no machines: set TALOSOP_E2E_CONTROL_PLANES to the addresses of machines in maintenance mode (see " +
			"CONTRIBUTING.md)")
	}

	if len(s.controlPlanes)%2 == 0 {
		t.Fatalf("TALOSOP_E2E_CONTROL_PLANES has %d addresses; the scenarios want an odd number", len(s.controlPlanes))
	}

	if len(s.workers) == 0 {
		t.Fatal("TALOSOP_E2E_WORKERS is not set; examples/quickstart wants at least one worker")
	}

	s.endpoint = setting("TALOSOP_E2E_ENDPOINT", "https://"+net.JoinHostPort(s.controlPlanes[0], "6443"))

	switch platform := setting("TALOSOP_E2E_PLATFORM", "metal"); platform {
	case "metal":
		s.platform = "metal"
	case "container":
		s.platform = "containers"
		// Talos in a container has no disk of its own (Talos 1.13, internal/app/machined/pkg/runtime/mode.go).
		s.cannot = append(s.cannot, "install", "upgrade")
	default:
		t.Fatalf("TALOSOP_E2E_PLATFORM is %q; it has to be metal or container", platform)
	}

	s.patches = patches(t, "TALOSOP_E2E_PATCH")
	s.controlPlanePatches = patches(t, "TALOSOP_E2E_CONTROL_PLANE_PATCH")

	return s
}

// patches reads the patch in the file that a variable names.
func patches(t *testing.T, variable string) []string {
	t.Helper()

	path := os.Getenv(variable)
	if path == "" {
		return nil
	}

	patch, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read %s: %v", variable, err)
	}

	return []string{string(patch)}
}

// machines are the addresses of all machines, control planes first.
func (s site) machines() []string { return slices.Concat(s.controlPlanes, s.workers) }

// can reports whether the machines have an ability.
func (s site) can(ability string) bool { return !slices.Contains(s.cannot, ability) }

// needs skips a scenario that needs an ability that the machines lack.
func (s site) needs(t *testing.T, ability string) {
	t.Helper()

	if !s.can(ability) {
		t.Skipf("left out: these machines cannot %s (TALOSOP_E2E_CANNOT, TALOSOP_E2E_PLATFORM)", ability)
	}
}

// variables are the values of the variables of examples/quickstart, as a .tfvars.json file.
func (s site) variables(t *testing.T, protect bool) string {
	t.Helper()

	encoded, err := json.MarshalIndent(map[string]any{
		"cluster_name":        "e2e",
		"endpoint":            s.endpoint,
		"control_planes":      named("cp", s.controlPlanes),
		"workers":             named("worker", s.workers),
		"talos_version":       s.talosVersion,
		"kubernetes_version":  s.kubernetes,
		"install_disk":        s.disk,
		"config_patches":      append([]string{}, s.patches...),
		"deletion_protection": protect,
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}

	return string(encoded)
}

// named maps the names cp-1, cp-2, … to addresses.
func named(role string, addresses []string) map[string]string {
	out := map[string]string{}
	for i, address := range addresses {
		out[fmt.Sprintf("%s-%d", role, i+1)] = address
	}

	return out
}

// addresses reads a comma-separated list.
func addresses(variable string) []string {
	return strings.FieldsFunc(os.Getenv(variable), func(r rune) bool { return r == ',' || r == ' ' })
}

func setting(variable, otherwise string) string {
	if value := os.Getenv(variable); value != "" {
		return value
	}

	return otherwise
}
