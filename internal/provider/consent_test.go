package provider

import (
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// needsConsent is the summary of what refuses a bootstrap with secrets that may have a cluster.
const needsConsent = "Bootstrap with existing secrets needs consent"

// planeOf is a control plane of these machines, with secrets that no apply of the test makes.
func (s *site) planeOf(secrets string, machines ...*sim.Machine) configuration {
	config := baseControlPlane()
	config["name"], config["endpoint"], config["secrets"] = "test", s.endpoint, secrets
	config["deletion_protection"], config["kubernetes_version"] = false, "v1.36.2"

	listed := configuration{}
	for _, m := range machines {
		listed[m.Name()] = configuration{"address": m.Address().String()}
	}

	config["machines"] = listed

	return config
}

// olderBundle is secrets that no process takes for new ones.
func olderBundle(t *testing.T) string {
	t.Helper()

	bundle, err := quickBundle()
	must(t, err)

	content, err := bundle.YAML()
	must(t, err)

	return string(content)
}

// allowing is a configuration with consent.
func allowing(config configuration) configuration {
	out := maps.Clone(config)
	out["allow_bootstrap"] = true

	return out
}

// lost is a cluster of three control planes whose state is lost.
func lostCluster(t *testing.T, secrets string) *site {
	t.Helper()

	s := newSite(t, 3, 0)
	drive(t, thePlaneKind, nil).apply(t, allowing(s.planeOf(secrets, s.controlPlane...))).must(t)

	return s
}

const thePlaneKind = "talosop_control_plane"

// refusedForConsent checks that a plan or an apply was refused at allow_bootstrap, and that no machine got anything.
func refusedForConsent(t *testing.T, s *site, o outcome) {
	t.Helper()

	var refused *tfprotov6.Diagnostic

	for _, d := range o.diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError && d.Summary == needsConsent {
			refused = d
		}
	}

	if refused == nil {
		t.Fatalf("it was not refused: %s", show(o.diagnostics))
	}

	if at := refused.Attribute.String(); at != `AttributeName("allow_bootstrap")` {
		t.Errorf("it is refused at %s", at)
	}

	for _, word := range []string{"allow_bootstrap = true", "import", "restore_from"} {
		if !strings.Contains(refused.Detail, word) {
			t.Errorf("it does not name %s: %s", word, refused.Detail)
		}
	}

	for _, method := range changing {
		if calls := s.CallsTo(method); len(calls) > 0 {
			t.Errorf("%s was sent to %s", method, calls[0].Machine)
		}
	}
}

// The state is lost, the secrets are kept, one of three control planes is wiped and listed, the others are off. However
// it was wiped, a bootstrap would make a second etcd with the authorities of the first one.
func TestControlPlane_asksForConsentAfterALossOfTheState(t *testing.T) {
	t.Parallel()

	for name, wipe := range map[string]func(m *sim.Machine){
		"the whole disk": (*sim.Machine).Wipe,
		// As `talosctl reset --system-labels-to-wipe EPHEMERAL` does: the configuration stays.
		"the data of etcd": func(m *sim.Machine) { m.WipeVolumes(sim.VolumeEphemeral) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			secrets := olderBundle(t)
			s := lostCluster(t, secrets)
			one := s.controlPlane[0]

			for _, m := range s.controlPlane[1:] {
				m.PowerOff()
			}

			wipe(one)
			one.PowerOn()
			awaitWithoutEtcd(t, s, one)
			s.ForgetCalls()

			d := drive(t, thePlaneKind, nil)
			refusedForConsent(t, s, d.plan(t, s.planeOf(secrets, one)))
			refusedForConsent(t, s, d.apply(t, s.planeOf(secrets, one)))

			if !d.state.IsNull() {
				t.Error("the refused create is in state")
			}

			for _, m := range s.controlPlane[1:] {
				m.PowerOn()
			}

			if n := s.EtcdClusters(); n > 1 {
				t.Errorf("there are %d clusters of etcd", n)
			}
		})
	}
}

// awaitWithoutEtcd waits until a machine answers without data of etcd.
func awaitWithoutEtcd(t *testing.T, s *site, m *sim.Machine) {
	t.Helper()

	stage := sim.StageBooting
	if !m.Configured() {
		stage = sim.StageMaintenance
	}

	must(t, m.AwaitStage(t.Context(), stage))
}
