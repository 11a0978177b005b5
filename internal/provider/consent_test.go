package provider

import (
	"maps"
	"math/rand/v2"
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

// lostCluster is a cluster of three control planes whose state is lost.
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
		if d.Severity == tfprotov6.DiagnosticSeverityError && strings.HasSuffix(d.Summary, needsConsent) {
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

// A create that the CLIs plan with secrets that are not known yet, because the apply makes them, needs no consent: the
// plan of the apply, which knows them, does not ask either. The next create with the same secrets does.
func TestControlPlane_newSecretsNeedNoConsent(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0)
	life := &lifeSite{site: s, folder: t.TempDir()}
	c := lifeConfig{Layout: pairLayout, Label: "this", Planes: []int{0}}
	blocks := life.blocks(c)[:2] // secrets and control plane

	applied := applyOnce(t, lifeState{}, blocks)
	if applied.failed() {
		t.Fatal(show(applied.Diagnostics))
	}

	s.controlPlane[0].Wipe()
	s.controlPlane[0].PowerOn()
	awaitWithoutEtcd(t, s, s.controlPlane[0])
	delete(applied.state, lifeKey{Address: blocks[1].Address})
	s.ForgetCalls()

	plan := planLife(t, applied.state, blocks, lifeOptions{Random: sorted()})
	refusedForConsent(t, s, outcome{diagnostics: plan.Diagnostics})
}

// sorted is an order that is always the same.
func sorted() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) } //nolint:gosec // not for secrets

// applyOnce plans and applies blocks.
func applyOnce(t *testing.T, state lifeState, blocks []lifeBlock, replace ...string) *lifeApply {
	t.Helper()

	plan := planLife(t, state, blocks, lifeOptions{Random: sorted(), Replace: replace})
	if plan.Refused || len(plan.Bugs) > 0 {
		t.Fatal(show(plan.Diagnostics), plan.Bugs)
	}

	return applyLife(t, plan, blocks, nil, func() loss { return lossNone })
}

// A replacement of the whole cluster that the plan shows needs no consent, and neither does one that is tainted: the
// state has the cluster, and the apply resets it before it makes another one.
func TestControlPlane_replacementNeedsNoConsent(t *testing.T) {
	t.Parallel()

	for name, tainted := range map[string]bool{"-replace": false, "taint": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			life := &lifeSite{site: newSite(t, 1, 0), folder: t.TempDir()}
			blocks := life.blocks(lifeConfig{Layout: pairLayout, Label: "this", Planes: []int{0}})[:2]
			state := applyOnce(t, lifeState{}, blocks).state
			at := lifeKey{Address: blocks[1].Address}

			var replace []string

			if tainted {
				object := *state[at]
				object.Tainted = true
				state[at] = &object

				// Nothing answers for it: only the state knows the cluster.
				life.controlPlane[0].Wipe()
				life.controlPlane[0].PowerOn()
				awaitWithoutEtcd(t, life.site, life.controlPlane[0])
			} else {
				replace = []string{blocks[1].Address}
			}

			applied := applyOnce(t, state, blocks, replace...)
			if applied.failed() || life.EtcdClusters() != 1 {
				t.Fatal(show(applied.Diagnostics), applied.Bugs, life.EtcdClusters())
			}
		})
	}
}

// An etcd that answers is joined without consent, with all of its control planes in the configuration or with one.
func TestControlPlane_joinsAnEtcdThatAnswersWithoutConsent(t *testing.T) {
	t.Parallel()

	secrets := olderBundle(t)
	s := lostCluster(t, secrets)

	s.ForgetCalls()
	drive(t, thePlaneKind, nil).apply(t, s.planeOf(secrets, s.controlPlane...)).must(t)

	if calls := s.CallsTo("Bootstrap"); len(calls) > 0 || s.EtcdClusters() != 1 {
		t.Errorf("%d bootstraps, %d clusters", len(calls), s.EtcdClusters())
	}
}

// Secrets of the provider block are older than any plan, and so are those of a handle that is written by hand. A whole
// cluster and the one machine that bootstraps ask like a control plane.
func TestConsent_everyResourceThatBootstraps(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0)
	m, secrets := s.controlPlane[0], olderBundle(t)
	machines := configuration{m.Name(): configuration{"address": m.Address().String()}}
	plane := s.planeOf(secrets, m)

	whole := maps.Clone(plane)
	delete(whole, "machines")
	delete(whole, "install")
	whole["control_plane"] = configuration{"install": configuration{"disk": "/dev/sda"}, "machines": machines}

	one := configuration{
		"cluster": configuration{
			"name": "test", "endpoint": s.endpoint, "secrets": secrets, "talos_endpoints": []any{m.Address().String()},
			"kubernetes_version": "v1.36.2", "version_contract": "v1.13",
		},
		"name": m.Name(), "role": "controlplane", "address": m.Address().String(), "bootstrap": true,
		"talos_version": "v1.13.0", "install": configuration{"disk": "/dev/sda"},
	}

	given := maps.Clone(plane)
	delete(given, "secrets")

	block := configuration{"clusters": configuration{"test": configuration{"secrets": secrets}}}
	later := configuration{"clusters": configuration{"test": configuration{"secrets": unknownValue{}}}}

	sometime := func(path ...string) configuration { return with(s.planeOf(secrets, m), unknownValue{}, path...) }

	for name, test := range map[string]struct {
		kind             string
		provider, config configuration
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

			d := drive(t, test.kind, test.provider)
			refusedForConsent(t, s, d.plan(t, test.config))

			if said := d.plan(t, allowing(test.config)).diagnostics; strings.Contains(show(said), needsConsent) {
				t.Errorf("with consent: %s", show(said))
			}

			later := with(maps.Clone(test.config), unknownValue{}, "allow_bootstrap")
			if said := d.plan(t, later).diagnostics; strings.Contains(show(said), needsConsent) {
				t.Errorf("with consent that is not known yet: %s", show(said))
			}
		})
	}
}

// Consent that stays in the configuration would bootstrap after a loss of the state: each plan says so, and to take it
// away touches no machine.
func TestConsent_isForOneApply(t *testing.T) {
	t.Parallel()

	secrets := olderBundle(t)
	s := newSite(t, 1, 0)
	d := drive(t, thePlaneKind, nil)
	config := s.planeOf(secrets, s.controlPlane...)

	d.apply(t, allowing(config)).must(t)

	const reminder = "allow_bootstrap is still enabled"

	if said := show(d.plan(t, allowing(config)).must(t).diagnostics); !strings.Contains(said, reminder) {
		t.Errorf("the plan does not say that consent is still there: %s", said)
	}

	s.ForgetCalls()

	if said := show(d.apply(t, config).must(t).diagnostics); strings.Contains(said, reminder) {
		t.Errorf("without consent: %s", said)
	}

	for _, method := range changing {
		if calls := s.CallsTo(method); len(calls) > 0 {
			t.Errorf("%s was sent", method)
		}
	}

	d.expectEmpty(t, "without consent", config)
}

// A create with consent that did not finish goes on without it: the state has its machines.
func TestConsent_interruptedCreateGoesOn(t *testing.T) {
	t.Parallel()

	secrets := olderBundle(t)
	s := newSite(t, 1, 0)
	d := drive(t, thePlaneKind, nil)
	config := s.planeOf(secrets, s.controlPlane...)
	config["timeouts"] = configuration{"create": "3s", "update": "1m"}

	s.controlPlane[0].HangNextReboot()
	d.apply(t, allowing(config)).must(t)

	if phase := textOf(t, d.state, "phase"); phase == "Ready" || s.EtcdClusters() > 0 {
		t.Fatalf("the create was not interrupted: %s", phase)
	}

	s.controlPlane[0].PowerOff()
	s.controlPlane[0].PowerOn()

	d.apply(t, config).must(t)

	if phase := textOf(t, d.state, "phase"); phase != "Ready" || s.EtcdClusters() != 1 {
		t.Errorf("%s, %d clusters", phase, s.EtcdClusters())
	}
}
