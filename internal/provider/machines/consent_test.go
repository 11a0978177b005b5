package machines_test

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
)

// needsConsent is the code of the error that refuses a bootstrap with secrets that may have a cluster.
const needsConsent = "bootstrap_needs_consent"

// planeOfSite is a control plane of these machines, with secrets from outside the test's applies.
func planeOfSite(s *sitetest.Site, secrets string, machines ...*sim.Machine) tftest.Config {
	config := tftest.BaseControlPlane()
	config["name"], config["endpoint"], config["secrets"] = "test", s.URL, secrets
	config["deletion_protection"], config["kubernetes_version"] = false, "v1.36.2"

	listed := tftest.Config{}
	for _, m := range machines {
		listed[m.Name()] = tftest.Config{"address": m.Address().String()}
	}

	config["machines"] = listed

	return config
}

// olderBundle is secrets that no process takes for new.
func olderBundle(t *testing.T) string {
	t.Helper()

	bundle, err := secretstest.Generate()
	tftest.Must(t, err)

	content, err := bundle.YAML()
	tftest.Must(t, err)

	return string(content)
}

// allowing is a configuration with consent.
func allowing(config tftest.Config) tftest.Config {
	out := maps.Clone(config)
	out["allow_bootstrap"] = true

	return out
}

// lostCluster is a cluster of three control planes whose state is lost.
func lostCluster(t *testing.T, secrets string) *sitetest.Site {
	t.Helper()

	s := sitetest.New(t, 3, 0)
	tftest.Drive(t, thePlaneKind, nil).Apply(t, allowing(planeOfSite(s, secrets, s.ControlPlane...))).Must(t)

	return s
}

const thePlaneKind = "talosop_control_plane"

// refusedForConsent checks that a plan or an apply was refused at allow_bootstrap, and that no machine got anything.
func refusedForConsent(t *testing.T, s *sitetest.Site, o tftest.Outcome) {
	t.Helper()

	var refused *tfprotov6.Diagnostic

	for _, d := range o.Diagnostics {
		if code, _ := tftest.Code(d); code == needsConsent {
			refused = d
		}
	}

	if refused == nil {
		t.Fatalf("it was not refused: %s", tftest.Show(o.Diagnostics))
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

// The state is lost and the secrets are kept. One of three control planes is wiped and listed, the others are off.
// However it was wiped, a bootstrap would make a second etcd with the authorities of the first.
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
			one := s.ControlPlane[0]

			for _, m := range s.ControlPlane[1:] {
				m.PowerOff()
			}

			wipe(one)
			one.PowerOn()
			awaitWithoutEtcd(t, s, one)
			s.ForgetCalls()

			d := tftest.Drive(t, thePlaneKind, nil)
			refusedForConsent(t, s, d.Plan(t, planeOfSite(s, secrets, one)))
			refusedForConsent(t, s, d.Apply(t, planeOfSite(s, secrets, one)))

			if !d.State.IsNull() {
				t.Error("the refused create is in state")
			}

			for _, m := range s.ControlPlane[1:] {
				m.PowerOn()
			}

			if n := s.EtcdClusters(); n > 1 {
				t.Errorf("there are %d clusters of etcd", n)
			}
		})
	}
}

// awaitWithoutEtcd waits until a machine answers without etcd data.
func awaitWithoutEtcd(t *testing.T, s *sitetest.Site, m *sim.Machine) {
	t.Helper()

	stage := sim.StageBooting
	if !m.Configured() {
		stage = sim.StageMaintenance
	}

	tftest.Must(t, m.AwaitStage(t.Context(), stage))
}

// As `talosctl reset --system-labels-to-wipe EPHEMERAL` does: the configuration stays.
func TestControlPlane_newSecretsNeedNoConsent(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 0)
	life := &lifeSite{Site: s, folder: t.TempDir()}
	c := lifeConfig{Layout: pairLayout, Label: "this", Planes: []int{0}}
	blocks := life.blocks(c)[:2] // secrets and control plane

	applied := applyOnce(t, lifeState{}, blocks)
	if applied.failed() {
		t.Fatal(tftest.Show(applied.Diagnostics))
	}

	s.ControlPlane[0].Wipe()
	s.ControlPlane[0].PowerOn()
	awaitWithoutEtcd(t, s, s.ControlPlane[0])
	delete(applied.state, lifeKey{Address: blocks[1].Address})
	s.ForgetCalls()

	plan := planLife(t, applied.state, blocks, lifeOptions{Random: sorted()})
	refusedForConsent(t, s, tftest.Outcome{Diagnostics: plan.Diagnostics})
}

// sorted is a fixed order.
func sorted() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) } //nolint:gosec // not for secrets

// applyOnce plans and applies blocks.
func applyOnce(t *testing.T, state lifeState, blocks []lifeBlock, replace ...string) *lifeApply {
	t.Helper()

	plan := planLife(t, state, blocks, lifeOptions{Random: sorted(), Replace: replace})
	if plan.Refused || len(plan.Bugs) > 0 {
		t.Fatal(tftest.Show(plan.Diagnostics), plan.Bugs)
	}

	return applyLife(t, plan, blocks, nil, func() loss { return lossNone })
}

// A replacement of the whole cluster that the plan shows needs no consent, and neither does a tainted cluster: it is
// in state, and the apply resets it before it creates another one.
func TestControlPlane_replacementNeedsNoConsent(t *testing.T) {
	t.Parallel()

	for name, tainted := range map[string]bool{"-replace": false, "taint": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			life := &lifeSite{Site: sitetest.New(t, 1, 0), folder: t.TempDir()}
			blocks := life.blocks(lifeConfig{Layout: pairLayout, Label: "this", Planes: []int{0}})[:2]
			state := applyOnce(t, lifeState{}, blocks).state
			at := lifeKey{Address: blocks[1].Address}

			var replace []string

			if tainted {
				object := *state[at]
				object.Tainted = true
				state[at] = &object

				// No machine answers: only the state knows the cluster.
				life.ControlPlane[0].Wipe()
				life.ControlPlane[0].PowerOn()
				awaitWithoutEtcd(t, life.Site, life.ControlPlane[0])
			} else {
				replace = []string{blocks[1].Address}
			}

			applied := applyOnce(t, state, blocks, replace...)
			if applied.failed() || life.EtcdClusters() != 1 {
				t.Fatal(tftest.Show(applied.Diagnostics), applied.Bugs, life.EtcdClusters())
			}
		})
	}
}

// An etcd that answers is joined without consent, with one or all of its control planes in the configuration.
func TestControlPlane_joinsAnEtcdThatAnswersWithoutConsent(t *testing.T) {
	t.Parallel()

	secrets := olderBundle(t)
	s := lostCluster(t, secrets)

	s.ForgetCalls()
	tftest.Drive(t, thePlaneKind, nil).Apply(t, planeOfSite(s, secrets, s.ControlPlane...)).Must(t)

	if calls := s.CallsTo("Bootstrap"); len(calls) > 0 || s.EtcdClusters() != 1 {
		t.Errorf("%d bootstraps, %d clusters", len(calls), s.EtcdClusters())
	}
}

// Secrets of the provider block are older than any plan, and so are those of a handle that is written by hand. A
// whole cluster and a single machine that bootstraps need consent like a control plane.
func TestConsent_everyResourceThatBootstraps(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 0)
	m, secrets := s.ControlPlane[0], olderBundle(t)
	machines := tftest.Config{m.Name(): tftest.Config{"address": m.Address().String()}}
	plane := planeOfSite(s, secrets, m)

	whole := maps.Clone(plane)
	delete(whole, "machines")
	delete(whole, "install")
	whole["control_plane"] = tftest.Config{"install": tftest.Config{"disk": "/dev/sda"}, "machines": machines}

	one := tftest.Config{
		"cluster": tftest.Config{
			"name": "test", "endpoint": s.URL, "secrets": secrets, "talos_endpoints": []any{m.Address().String()},
			"kubernetes_version": "v1.36.2", "version_contract": "v1.13",
		},
		"name": m.Name(), "role": "controlplane", "address": m.Address().String(), "bootstrap": true,
		"talos_version": "v1.13.0", "install": tftest.Config{"disk": "/dev/sda"},
	}

	given := maps.Clone(plane)
	delete(given, "secrets")

	block := tftest.Config{"clusters": tftest.Config{"test": tftest.Config{"secrets": secrets}}}
	later := tftest.Config{"clusters": tftest.Config{"test": tftest.Config{"secrets": tftest.Unknown{}}}}

	sometime := func(path ...string) tftest.Config {
		return tftest.With(planeOfSite(s, secrets, m), tftest.Unknown{}, path...)
	}

	for name, test := range map[string]struct {
		kind             string
		provider, config tftest.Config
	}{
		"control plane":                       {thePlaneKind, nil, plane},
		"cluster":                             {theClusterKind, nil, whole},
		"machine":                             {"talosop_machine", nil, one},
		"provider block":                      {thePlaneKind, block, given},
		"provider block that is not known":    {thePlaneKind, later, given},
		"address that is not known":           {thePlaneKind, nil, sometime("machines", m.Name(), "address")},
		"configuration that is not all known": {thePlaneKind, nil, sometime("config_patches")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d := tftest.Drive(t, test.kind, test.provider)
			refusedForConsent(t, s, d.Plan(t, test.config))

			if diagnostics := d.Plan(t, allowing(test.config)).Diagnostics; strings.Contains(tftest.Show(diagnostics), needsConsent) {
				t.Errorf("with consent: %s", tftest.Show(diagnostics))
			}

			later := tftest.With(maps.Clone(test.config), tftest.Unknown{}, "allow_bootstrap")
			if diagnostics := d.Plan(t, later).Diagnostics; strings.Contains(tftest.Show(diagnostics), needsConsent) {
				t.Errorf("with consent that is not known yet: %s", tftest.Show(diagnostics))
			}
		})
	}
}

// Consent that stays in the configuration would bootstrap after a loss of the state. Each plan warns about it, and
// its removal touches no machine.
func TestConsent_isForOneApply(t *testing.T) {
	t.Parallel()

	secrets := olderBundle(t)
	s := sitetest.New(t, 1, 0)
	d := tftest.Drive(t, thePlaneKind, nil)
	config := planeOfSite(s, secrets, s.ControlPlane...)

	d.Apply(t, allowing(config)).Must(t)

	const reminder = "[allow_bootstrap_reminder]"

	if diagnostics := tftest.Show(d.Plan(t, allowing(config)).Must(t).Diagnostics); !strings.Contains(diagnostics, reminder) {
		t.Errorf("the plan does not say that consent is still there: %s", diagnostics)
	}

	s.ForgetCalls()

	if diagnostics := tftest.Show(d.Apply(t, config).Must(t).Diagnostics); strings.Contains(diagnostics, reminder) {
		t.Errorf("without consent: %s", diagnostics)
	}

	for _, method := range changing {
		if calls := s.CallsTo(method); len(calls) > 0 {
			t.Errorf("%s was sent", method)
		}
	}

	d.ExpectEmpty(t, "without consent", config)
}

// A create with consent that did not finish resumes without it: the state has its machines.
func TestConsent_interruptedCreateGoesOn(t *testing.T) {
	t.Parallel()

	secrets := olderBundle(t)
	s := sitetest.New(t, 1, 0)
	d := tftest.Drive(t, thePlaneKind, nil)
	config := planeOfSite(s, secrets, s.ControlPlane...)
	config["timeouts"] = tftest.Config{"create": "3s", "update": "1m"}

	s.ControlPlane[0].HangNextReboot()
	d.Apply(t, allowing(config)).Must(t)

	if phase := tftest.Text(t, d.State, "phase"); phase == "Ready" || s.EtcdClusters() > 0 {
		t.Fatalf("the create was not interrupted: %s", phase)
	}

	s.ControlPlane[0].PowerOff()
	s.ControlPlane[0].PowerOn()

	d.Apply(t, config).Must(t)

	if phase := tftest.Text(t, d.State, "phase"); phase != "Ready" || s.EtcdClusters() != 1 {
		t.Errorf("%s, %d clusters", phase, s.EtcdClusters())
	}
}
