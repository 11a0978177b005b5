package machineconfig

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/setting"
)

// testSettings are those that are tested, with a random value that is valid for a contract.
var testSettings = map[*setting.Setting]func(*rand.Rand, string) any{
	setting.Labels:           randomTexts("example.com/label", "a.b_C-1", ""),
	setting.Annotations:      randomTexts("example.com/note", "any text: {of} \"all\" kinds\n", "true"),
	setting.Taints:           randomTexts("example.com/taint", "NoSchedule", "gpu:NoExecute", ":PreferNoSchedule"),
	setting.Sysctls:          randomTexts("net.test.param", "1", "4096 87380", "any text"),
	setting.KubeletExtraArgs: randomTexts("argument", "true", "a=b,c=d", "0"),
	setting.OIDC:             randomOIDC,
	setting.VIP: func(r *rand.Rand, _ string) any {
		return &setting.VIPConfig{Address: []string{"10.0.0.10", "fd00::10"}[r.IntN(2)], Link: "eth0"}
	},
}

func randomOIDC(r *rand.Rand, contract string) any {
	some := func(texts ...string) string { return texts[r.IntN(len(texts))] }

	oidc := &setting.OIDCConfig{IssuerURL: "https://id.test/realm", ClientID: "kube",
		UsernameClaim: some("", "name"), UsernamePrefix: some("", "-", "oidc:"), GroupsClaim: some("", "groups")}
	if oidc.GroupsClaim != "" {
		oidc.GroupsPrefix = some("", "oidc:")
	}

	for range r.IntN(2) {
		oidc.RequiredClaims = map[string]string{"hd": some("example.com", "a=b")}
	}

	if contract == DocumentsContract && r.IntN(2) > 0 {
		oidc.CA, oidc.RequiredClaims = "PEM\n", map[string]string{"a": "b", "c": "d"}
	}

	// Both are the same in the configuration of authentication, where no prefix is read.
	if r.IntN(3) == 0 {
		oidc.UsernameClaim, oidc.UsernamePrefix = "email", some("", "oidc:")
	}

	return oidc
}

// randomTexts is a map of up to three entries with one of the values each.
func randomTexts(key string, values ...string) func(*rand.Rand, string) any {
	return func(r *rand.Rand, _ string) any {
		texts := map[string]string{}
		for range r.IntN(4) {
			texts[fmt.Sprintf("%s%d", key, r.IntN(5))] = values[r.IntN(len(values))]
		}

		return texts
	}
}

func allSettings() []*setting.Setting {
	var all []*setting.Setting
	for s := range testSettings {
		all = append(all, s)
	}

	slices.SortFunc(all, func(a, b *setting.Setting) int { return strings.Compare(a.Name, b.Name) })

	return all
}

func randomSettings(r *rand.Rand, contract string, role Role) setting.Values {
	var values setting.Values

	for _, s := range allSettings() {
		if value := testSettings[s](r, contract); r.IntN(3) > 0 && (!s.ControlPlanes || role == ControlPlane) {
			values.Set(s, value)
		}
	}

	return values
}

// Settings of all levels are read back as what the machine has, and make the very configuration again.
func TestSettingsOf_readsSettingsOfLevelsBack(t *testing.T) {
	t.Parallel()

	r := rand.New(rand.NewPCG(1, 2))

	for range 60 {
		for _, contract := range contracts {
			role := []Role{ControlPlane, Worker}[r.IntN(2)]
			c, m := testCluster(contract), testMachine(role)
			c.AllowSchedulingOnControlPlanes = r.IntN(2) == 0 && role == ControlPlane
			c.Settings, m.PoolSettings, m.Settings = randomSettings(r, contract, role), randomSettings(r, contract, role),
				randomSettings(r, contract, role)

			made := generated(t, c, m)

			gotCluster, got, err := SettingsOf(made.Bytes, testBundle(t), allSettings()...)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(setting.Merge(c.Settings, m.PoolSettings, m.Settings), got.Settings); diff != "" {
				t.Fatalf("%s %s (-want +got):\n%s", contract, role, diff)
			}

			if again := generated(t, gotCluster, got); again.Digest != made.Digest {
				t.Fatalf("%s %s: what is read makes another configuration", contract, role)
			}
		}
	}
}

// What often is a secret by its name is no setting of an import.
func TestSettingsOf_leavesOutSecrets(t *testing.T) {
	t.Parallel()

	for _, contract := range []string{"v1.13", "v1.14"} {
		m := testMachine(Worker)
		m.Settings.Set(setting.Annotations, map[string]string{"example.com/join-token": "x", "example.com/rack": "b2"})
		m.Settings.Set(setting.Labels, map[string]string{"password": "x"})

		_, got, err := SettingsOf(generated(t, testCluster(contract), m).Bytes, testBundle(t), allSettings()...)
		if err != nil {
			t.Fatal(err)
		}

		var want setting.Values
		want.Set(setting.Annotations, map[string]string{"example.com/rack": "b2"})

		if diff := cmp.Diff(want, got.Settings); diff != "" {
			t.Errorf("%s (-want +got):\n%s", contract, diff)
		}
	}
}

// A more specific level goes before a more general one, and a patch before all of them.
func TestGenerate_settingsOfLevels(t *testing.T) {
	t.Parallel()

	for _, contract := range contracts {
		c, m := testCluster(contract), testMachine(Worker)
		c.Settings.Set(setting.Labels, map[string]string{"all": "cluster", "pool": "cluster", "one": "cluster", "patch": "a"})
		m.PoolSettings.Set(setting.Labels, map[string]string{"pool": "pool", "one": "pool"})
		m.Settings.Set(setting.Labels, map[string]string{"one": "machine"})

		c.Patches = []string{"machine: {nodeLabels: {patch: b}}"}
		if contract == DocumentsContract {
			c.Patches = []string{"apiVersion: v1alpha1\nkind: KubeNodeConfig\nlabels: {patch: b}"}
		}

		want := map[string]string{"all": "cluster", "pool": "pool", "one": "machine", "patch": "b"}
		if diff := cmp.Diff(want, generated(t, c, m).Facts.Labels); diff != "" {
			t.Errorf("%s (-want +got):\n%s", contract, diff)
		}
	}
}

// An error is reported at its level.
func TestValidate_settingsOfLevels(t *testing.T) {
	t.Parallel()

	c, m := testCluster("v1.13"), testMachine(Worker)
	c.Settings.Set(setting.Labels, map[string]string{"a b": "c"})
	m.PoolSettings.Set(setting.Taints, map[string]string{"gpu": "Never"})
	m.Settings.Set(setting.Annotations, map[string]string{"talos.dev/owned-labels": "x"})

	var got []string
	for _, mistake := range append(FieldErrors(ValidateCluster(c)), FieldErrors(ValidateMachine(c, m))...) {
		got = append(got, mistake.Field)
	}

	want := []string{`labels["a b"]`, `pool.taints["gpu"]`, `machine.annotations["talos.dev/owned-labels"]`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What is changed by hand on a machine is a difference at its path, in either form.
func TestDiff_settingsByPath(t *testing.T) {
	t.Parallel()

	for contract, want := range map[string]string{
		"v1.13": `machine.nodeLabels.rack = "b2" -> "b3"`, "v1.14": `KubeNodeConfig labels.rack = "b2" -> "b3"`,
	} {
		c, m := testCluster(contract), testMachine(Worker)
		m.Settings.Set(setting.Labels, map[string]string{"rack": "b2"})
		before := generated(t, c, m)
		m.Settings.Set(setting.Labels, map[string]string{"rack": "b3"})

		changes, err := Diff(before.Bytes, generated(t, c, m).Bytes)
		if err != nil || len(changes) != 1 || changes[0].Brief() != want {
			t.Errorf("%s: %v, %v; want %s", contract, changes, err, want)
		}
	}
}

// The image of an upgrade is recognized in each form of the configuration.
func TestChange_ofInstallerImage(t *testing.T) {
	t.Parallel()

	for _, contract := range contracts {
		c, m := testCluster(contract), testMachine(Worker)
		m.Install.Image = "registry.test/installer:v1.14.0"
		before := generated(t, c, m)
		m.Install.Image = "registry.test/installer:v1.14.1"

		changes, err := Diff(before.Bytes, generated(t, c, m).Bytes)
		if err != nil || len(changes) != 1 || !changes[0].OfInstallerImage() {
			t.Errorf("%s: %v, %v", contract, changes, err)
		}
	}
}
