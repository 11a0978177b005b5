package sitetest

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/record"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubectl"
)

// OperationsAre checks the operations of a plan against patterns, in order.
func OperationsAre(address string, patterns ...string) plancheck.PlanCheck {
	checks := make([]knownvalue.Check, len(patterns))
	for i, pattern := range patterns {
		checks[i] = knownvalue.StringRegexp(regexp.MustCompile("^" + pattern + "$"))
	}

	return plancheck.ExpectKnownValue(address, tfjsonpath.New("operations"), knownvalue.ListExact(checks))
}

// ExpectWaiting checks that machines are in maintenance mode.
func ExpectWaiting(t *testing.T, machines ...*sim.Machine) {
	t.Helper()

	for _, m := range machines {
		if m.Configured() || m.Stage() != sim.StageMaintenance {
			t.Errorf("%s is %s", m.Name(), m.Stage())
		}
	}
}

// RememberedBy is the record of the machines of a resource in the state of a workspace.
func RememberedBy(t *testing.T, w *clitest.Workspace, address string) record.Machines {
	t.Helper()

	stored, _ := w.Attribute(address, "record").(string)

	machines, err := record.Decode(stored)
	tftest.Must(t, err)

	return machines
}

// Remembers checks the record of a machine in state; without a name, that of the only one.
func Remembers(address, machine string, check func(record.Machine) bool) statecheck.StateCheck {
	return rememberedCheck{address, machine, check}
}

type rememberedCheck struct {
	address, machine string
	check            func(record.Machine) bool
}

// CheckState implements statecheck.StateCheck.
func (c rememberedCheck) CheckState(
	_ context.Context, req statecheck.CheckStateRequest, resp *statecheck.CheckStateResponse,
) {
	for _, r := range req.State.Values.RootModule.Resources {
		if r.Address != c.address {
			continue
		}

		stored, _ := r.AttributeValues["record"].(string)

		machines, err := record.Decode(stored)
		if err != nil {
			resp.Error = err

			return
		}

		for name, machine := range machines {
			if name == c.machine || c.machine == "" && len(machines) == 1 {
				if !c.check(machine) {
					resp.Error = fmt.Errorf("%s remembers of %s: %+v", c.address, name, machine)
				}

				return
			}
		}
	}

	resp.Error = fmt.Errorf("%s remembers nothing of %q", c.address, c.machine)
}

// ExpectRefused checks that no machine and no API server takes credentials of secrets.
func ExpectRefused(t *testing.T, s *Site, former *pki.Bundle) {
	t.Helper()

	talos, err := former.TalosClient([]string{pki.RoleReader}, time.Hour)
	tftest.Must(t, err)

	for _, m := range s.Machines() {
		if err := handshake(t.Context(), m, talos); err == nil {
			t.Errorf("%s takes a former talosconfig", m.Name())
		}
	}

	for _, m := range s.ControlPlane {
		endpoint := "https://" + net.JoinHostPort(m.Address().String(), "6443")
		if err := kubectl.ListUnverified(t, former, endpoint); !apierrors.IsUnauthorized(err) {
			t.Errorf("the API server of %s says to a former kubeconfig: %v", m.Name(), err)
		}
	}
}

// handshake returns nil when the Talos API of a machine accepts a client certificate.
func handshake(ctx context.Context, m *sim.Machine, c pki.Credentials) error {
	certificate, err := tls.X509KeyPair(c.Certificate, c.Key)
	if err != nil {
		return err
	}

	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: &tls.Config{
		Certificates: []tls.Certificate{certificate}, InsecureSkipVerify: true, NextProtos: []string{"h2"}, //nolint:gosec // only the answer counts
	}}

	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(m.Address().String(), "50000"))
	if err != nil {
		return err
	}

	defer func() { _ = connection.Close() }()

	if err := connection.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}

	// The first message of a server shows whether it accepted the certificate (TLS 1.3).
	_, err = connection.Read(make([]byte, 1))

	return err
}

// WithoutSensitive is a plan in JSON without the values that it marks as sensitive.
func WithoutSensitive(t *testing.T, shown string) string {
	t.Helper()

	var plan any
	tftest.Must(t, json.Unmarshal([]byte(shown), &plan))

	return tftest.JSON(t, hideSensitive(plan))
}

func hideSensitive(node any) any {
	switch node := node.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, child := range node {
			out[name] = hideSensitive(child)
		}

		for name, marks := range map[string]string{
			"before": "before_sensitive", "after": "after_sensitive", "values": "sensitive_values",
		} {
			if hidden, marked := node[marks]; marked {
				out[name] = Visible(node[name], hidden)
			}
		}

		return out
	case []any:
		out := make([]any, len(node))
		for i, child := range node {
			out[i] = hideSensitive(child)
		}

		return out
	default:
		return node
	}
}

// PrivateIn is the private state of the provider.
func PrivateIn(t *testing.T, state string) string {
	t.Helper()

	var parsed struct {
		Resources []struct {
			Instances []struct {
				Private []byte `json:"private"`
			} `json:"instances"`
		} `json:"resources"`
	}

	tftest.Must(t, json.Unmarshal([]byte(state), &parsed))

	var text strings.Builder

	for _, r := range parsed.Resources {
		for _, i := range r.Instances {
			var values map[string]string
			if len(i.Private) == 0 || json.Unmarshal(i.Private, &values) != nil {
				continue
			}

			for name, value := range values {
				decoded, err := base64.StdEncoding.DecodeString(value)
				tftest.Must(t, err)
				text.WriteString(name + "=" + string(decoded) + "\n")
			}
		}
	}

	return text.String()
}

// PhaseIs checks the phase of a resource in state.
func PhaseIs(address, phase string) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(address, tfjsonpath.New("phase"), knownvalue.StringExact(phase))
}

// ExpectImportsUnchanged forgets a cluster with two pools and its secrets, imports both, the secrets from secrets.yaml,
// and finds nothing to change.
func ExpectImportsUnchanged(t *testing.T, s *Site, w *clitest.Workspace) {
	t.Helper()

	for _, address := range []string{TheCluster, "talosop_secrets.this"} {
		w.MustRun("state", "rm", address)
	}

	w.MustRun("import", "talosop_secrets.this", "secrets.yaml")
	w.MustRun("import", TheCluster, tftest.JSON(t, map[string]any{
		"secrets": "secrets.yaml", "control_plane": Addresses(s.ControlPlane),
		"workers": map[string]any{"batch": Addresses(s.Workers[:1]), "gpu": Addresses(s.Workers[1:])},
	}))

	s.ForgetCalls()
	w.MustRun("apply", "-auto-approve")
	s.ExpectNothingSent(t)

	if empty, output := w.PlanIsEmpty(); !empty {
		t.Errorf("the plan after import is not empty:\n%s", output)
	}
}
