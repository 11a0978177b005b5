package addon_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/provider/addon"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

var metricsServer = release.Name{Namespace: "kube-system", Name: "metrics-server"}

// A failed create is an error with a tainted resource, or a warning, after which the next apply continues in place.
func TestAddon_failedCreate(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	s.cluster.failing = errors.New("not ready, a-secret-token")

	failed := s.Apply(t, tftest.With(fullAddon(), "error", "on_incomplete"))
	failed.Tells(t, "ImagePullBackOff", "back-off", "It stays failed.", "done: made revision 1", "revision 1 is failed",
		"tainted")

	if !failed.Failed() || s.State.IsNull() || strings.Contains(tftest.Show(failed.Diagnostics), "a-secret-token") {
		t.Errorf("it ends with %s", tftest.Show(failed.Diagnostics))
	}

	s = newAddonSite(t)
	s.cluster.failing = errors.New("not ready")
	s.Apply(t, fullAddon()).Must(t).Tells(t, "[addon_incomplete]")

	if status := tftest.Text(t, s.State, "status"); status != release.Failed {
		t.Errorf("the status is %s", status)
	}

	s.cluster.failing = nil

	for _, refreshed := range []bool{false, true} {
		if refreshed {
			s.Refresh(t).Must(t)
		}

		if planned := s.Plan(t, fullAddon()).Must(t); tftest.Text(t, planned.Value, "revision") != "unknown" {
			t.Errorf("refreshed %v: nothing is planned", refreshed)
		}
	}

	s.Apply(t, fullAddon()).Must(t)

	if status, revision := tftest.Text(t, s.State, "status"),
		tftest.Text(t, s.State, "revision"); status != release.Deployed || revision != "2" {
		t.Errorf("the status is %s of revision %s", status, revision)
	}

	s.ExpectEmpty(t, "after going on", fullAddon())
}

// A failed update keeps the former configuration, and is planned again.
func TestAddon_failedUpdate(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	s.Apply(t, fullAddon()).Must(t)

	before, wanted := s.State, tftest.With(fullAddon(), []any{"replicas: 3\n"}, "values")
	s.cluster.failing = errors.New("no room")

	if failed := s.Apply(t, wanted); !failed.Failed() || !s.State.Equal(before) {
		t.Errorf("the state changed: %s", tftest.Show(failed.Diagnostics))
	}

	s.cluster.failing = nil
	s.Refresh(t).Tells(t, "[addon_unfinished]", "the last apply failed: revision 2 is failed")
	s.Apply(t, wanted).Must(t)
	s.ExpectEmpty(t, "after the second try", wanted)
}

// After an upgrade that failed and was rolled back, the former configuration is deployed, and the new one is still
// to be applied. The same holds for an imported release.
func TestAddon_formerConfigurationAfterARollback(t *testing.T) {
	t.Parallel()

	for name, imported := range map[string]bool{"made": false, "imported": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s, file := newAddonSite(t), kubeconfigFile(t)
			config := tftest.With(tftest.With(tftest.Without(baseAddon(), "cluster"), file, "kubeconfig", "path"), true,
				"atomic")
			s.Apply(t, config).Must(t)

			if imported {
				s.imported(t, file, nil)
				s.Apply(t, config).Must(t)
			}

			wanted := tftest.With(maps.Clone(config), []any{"replicas: 3\n"}, "values")

			s.cluster.change(func() { s.cluster.failing, s.cluster.undone = errors.New("not ready"), true })

			if failed := s.Apply(t, wanted); !failed.Failed() {
				t.Fatal("the upgrade did not fail")
			}

			for range 2 {
				if read := s.Refresh(t).Must(t); len(read.Diagnostics) > 0 {
					t.Errorf("the refresh says %s", tftest.Show(read.Diagnostics))
				}
			}

			s.ExpectEmpty(t, "the former configuration", config)

			if planned := s.Plan(t, wanted).Must(t); tftest.Text(t, planned.Value, "revision") != "unknown" {
				t.Error("what failed is not planned again")
			}

			s.cluster.change(func() {
				history := s.cluster.releases[metricsServer]
				history[len(history)-1].Values = map[string]any{"replicas": float64(7)}
			})
			s.Refresh(t).Must(t).Tells(t, "replicas")
		})
	}
}

// imported makes the release one of helm, and imports it into another resource.
func (s *addonSite) imported(t *testing.T, kubeconfig string, registry tftest.Config) {
	t.Helper()

	s.cluster.change(func() { s.cluster.releases[metricsServer][0].Inputs = "" })

	s.Driven = s.Another(t)
	s.Import(t, tftest.JSON(t, map[string]any{"kubeconfig": map[string]string{"path": kubeconfig},
		"namespace": metricsServer.Namespace, "name": metricsServer.Name, "chart": "metrics-server",
		"repository": "https://charts.example.org", "version": "3.13.0", "registry": registry})).Must(t)
}

// kubeconfigFile is a kubeconfig without a server behind it.
func kubeconfigFile(t *testing.T) string {
	t.Helper()

	file := filepath.Join(t.TempDir(), "kubeconfig")
	tftest.Must(t, os.WriteFile(file, []byte(
		"apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\n"+
			"clusters: [{name: a, cluster: {server: 'https://10.0.0.10:6443'}}]\n"), 0o600))

	return file
}

// Changes by other clients are named, however often the state is refreshed, and repaired.
func TestAddon_driftIsRepaired(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		do   func(f *fakeCluster, last *release.Revision)
		says []string
	}{
		"objects": {
			do:   func(f *fakeCluster, _ *release.Revision) { f.altered = []string{"ConfigMap a/b is missing"} },
			says: []string{"ConfigMap a/b is missing"},
		},
		"values": {do: func(_ *fakeCluster, last *release.Revision) {
			last.Values = map[string]any{"replicas": int64(9), "token": "hidden-by-hand"}
			last.Number, last.Inputs = last.Number+1, ""
		}, says: []string{"revision is 2 instead of 1", "values: replicas: 2 -> 9"}},
		"chart": {
			do:   func(_ *fakeCluster, last *release.Revision) { last.ChartVersion = "3.12.0" },
			says: []string{"chart is metrics-server 3.12.0 instead of metrics-server 3.13.0"},
		},
		"status": {
			do: func(_ *fakeCluster, last *release.Revision) {
				last.Status, last.Inputs, last.Number = release.Failed, "", 2
				last.Description = `cannot patch "a" with kind ConfigMap: {"data":{"token":"hidden-by-hand"}}`
			},
			says: []string{"revision is 2 instead of 1: it is failed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := newAddonSite(t)
			config := tftest.Without(tftest.Without(fullAddon(), "values_wo"), "values_wo_version")
			s.Apply(t, config).Must(t)
			s.ExpectEmpty(t, "after the create", config)

			// An apply that touches nothing in the cluster keeps the drift, too.
			config = tftest.With(config, "9m", "wait_timeout")
			s.Apply(t, config).Must(t)
			s.cluster.change(func() { test.do(s.cluster, &s.cluster.releases[metricsServer][0]) })

			for range 2 {
				read := s.Refresh(t).Must(t)
				read.Tells(t, append(test.says, "[addon_drifted]", "kube-system/metrics-server")...)

				if diagnostics := tftest.Show(read.Diagnostics); strings.Contains(diagnostics, "hidden-by-hand") ||
					strings.Contains(diagnostics, "a-secret-token") {
					t.Errorf("it shows a secret: %s", diagnostics)
				}
			}

			applies := len(s.cluster.applies)
			s.Apply(t, config).Must(t)

			if len(s.cluster.applies) != applies+1 || s.cluster.applies[applies].Create {
				t.Errorf("the engine was called with %v", s.cluster.applies[applies:])
			}

			s.ExpectEmpty(t, "after the repair", config)
		})
	}
}

// A change of write-only values by another client is detected by their mark.
func TestAddon_driftOfWriteOnlyValues(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	s.Apply(t, fullAddon()).Must(t)
	s.ExpectEmpty(t, "after the create", fullAddon())
	s.cluster.change(func() { s.cluster.releases[metricsServer][0].Values["password"] = "by-hand" })

	read := s.Refresh(t).Must(t)
	read.Tells(t, "values are not those that were applied")

	if strings.Contains(tftest.Show(read.Diagnostics), "by-hand") {
		t.Error("it shows a secret")
	}
}

// A release that is gone is planned again; a cluster that does not answer keeps it.
func TestAddon_releaseGoneOrClusterSilent(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	s.Apply(t, baseAddon()).Must(t)

	s.cluster.change(func() { s.cluster.silent = true })
	s.Refresh(t).Must(t).Tells(t, "[addon_not_observed]", "connection refused")

	if s.State.IsNull() || !s.Plan(t, baseAddon()).Must(t).Value.Equal(s.State) {
		t.Error("an addon that is not seen is not kept")
	}

	if failed := s.Apply(t, nil); !failed.Failed() || s.State.IsNull() {
		t.Errorf("a destroy without an answer: %s", tftest.Show(failed.Diagnostics))
	} else {
		failed.Tells(t, "on_unreachable", "terraform state rm")
	}

	s.cluster.change(func() { s.cluster.silent = false })
	s.Apply(t, tftest.With(baseAddon(), "forget", "on_unreachable")).Must(t)
	s.cluster.change(func() { s.cluster.silent = true })
	s.Apply(t, nil).Must(t).Tells(t, "[addon_forgotten]", "helm uninstall metrics-server -n kube-system")

	if asked := len(s.cluster.removed); !s.State.IsNull() || asked < 3 {
		t.Errorf("it was asked %d times, and is in state: %v", asked, !s.State.IsNull())
	}

	s.cluster.change(func() { s.cluster.silent, s.cluster.releases = false, map[release.Name][]release.Revision{} })

	s = newAddonSite(t)
	s.Apply(t, baseAddon()).Must(t)
	s.cluster.change(func() { clear(s.cluster.releases) })
	s.Refresh(t).Must(t).Tells(t, "[addon_gone]")

	if !s.State.IsNull() {
		t.Error("what is gone is still in state")
	}
}

// A destroy uses the arguments of the resource.
func TestAddon_destroyUsesItsArguments(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	s.Apply(t, fullAddon()).Must(t)
	s.Apply(t, nil).Must(t)

	o := s.cluster.removed[0]
	if !o.KeepHistory || o.DisableHooks || !o.Wait || o.Timeout.String() != "5m0s" ||
		!slices.Contains(o.Secrets, "a-secret-token") {
		t.Errorf("it was removed with %+v", o)
	}
}

// Two resources cannot own one release, and a foreign release is only taken over on request.
func TestAddon_foreignRelease(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	s.Apply(t, baseAddon()).Must(t)

	other := s.Another(t)
	failed := other.Apply(t, baseAddon())
	failed.Tells(t, "[addon_owned_twice]")

	if !failed.Failed() || !other.State.IsNull() {
		t.Errorf("two resources have one release: %s", tftest.Show(failed.Diagnostics))
	}

	s.Apply(t, nil).Must(t)
	other.Apply(t, baseAddon()).Must(t)

	s = newAddonSite(t)
	s.cluster.releases[metricsServer] = []release.Revision{
		{Number: 4, Status: release.Deployed, ChartName: "metrics-server", ChartVersion: "3.0.0"}}
	s.Plan(t, baseAddon()).Must(t).Tells(t, "[addon_exists]", "terraform import")

	if failed := s.Apply(t, baseAddon()); !failed.Failed() || !s.State.IsNull() ||
		len(s.cluster.releases[metricsServer]) != 1 {
		t.Errorf("a foreign release was taken: %s", tftest.Show(failed.Diagnostics))
	} else {
		failed.Tells(t, "`adopt = true`", "terraform import")
	}

	s.Apply(t, tftest.With(baseAddon(), true, "adopt")).Must(t)

	if revision := tftest.Text(t, s.State, "revision"); revision != "5" {
		t.Errorf("the revision is %s", revision)
	}
}

// Another cluster replaces the resource; another route to the same one does not.
func TestAddon_anotherClusterReplacesIt(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		To, From addon.Route
		Another  bool
	}{
		"the same": {addon.Route{Authority: "a", Server: "1"}, addon.Route{Authority: "a", Server: "1"}, false},
		"moved":    {addon.Route{Authority: "a", Server: "2"}, addon.Route{Authority: "a", Server: "1"}, false},
		"rotated":  {addon.Route{Authority: "b", Server: "1"}, addon.Route{Authority: "a", Server: "1"}, false},
		"other":    {addon.Route{Authority: "b", Server: "2"}, addon.Route{Authority: "a", Server: "1"}, true},
		"handle": {addon.Route{Mark: "m", Authority: "a", Server: "2"}, addon.Route{Authority: "a", Server: "1"},
			false},
		"other handle": {addon.Route{Mark: "m", Authority: "b", Server: "2"}, addon.Route{Authority: "a", Server: "1"},
			true},
		"rotated and moved": {addon.Route{Mark: "m", Authority: "b", Server: "2"},
			addon.Route{Mark: "m", Authority: "a", Server: "1"}, false},
		"other mark": {addon.Route{Mark: "m", Authority: "a", Server: "1"},
			addon.Route{Mark: "n", Authority: "a", Server: "1"}, true},
		"without authority":   {addon.Route{Server: "2"}, addon.Route{Server: "1"}, true},
		"with one authority":  {addon.Route{Server: "2"}, addon.Route{Authority: "a", Server: "1"}, false},
		"an unread file":      {addon.Route{}, addon.Route{Server: "1"}, false},
		"a file without both": {addon.Route{Authority: "a"}, addon.Route{Authority: "b", Server: "1"}, false},
	} {
		if got := test.To.Another(test.From); got != test.Another {
			t.Errorf("%s: another is %v", name, got)
		}
	}

	folder := t.TempDir()
	kubeconfig := func(name, server string) tftest.Config {
		at := filepath.Join(folder, name)
		tftest.Must(t, os.WriteFile(at, []byte(
			"apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"+
				"users: [{name: a, user: {token: hunter22}}]\nclusters: [{name: a, cluster: {server: '"+server+"'}}]\n"), 0o600))

		return tftest.With(tftest.Without(baseAddon(), "cluster"), at, "kubeconfig", "path")
	}

	s := newAddonSite(t)
	s.Apply(t, kubeconfig("one", "https://10.0.0.10:6443")).Must(t)

	for name, replaces := range map[string]bool{"https://10.0.0.10:6443": false, "https://10.0.0.20:6443": true} {
		typ := tftest.TypeOf(t, resourceType)
		wanted := tftest.ValueOf(t, typ, kubeconfig("two", name))

		resp, err := s.Server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
			TypeName: s.Name, PriorState: tftest.Dynamic(t, s.State), ProposedNewState: tftest.Dynamic(t, s.Proposed(t, wanted)),
			Config:       tftest.Dynamic(t, wanted),
			PriorPrivate: s.Private,
		})
		tftest.Must(t, err)

		if got := len(resp.RequiresReplace) > 0; got != replaces {
			t.Errorf("%s replaces the resource: %v; %s", name, got, tftest.Show(resp.Diagnostics))
		}
	}
}

// A cluster that is recreated in the same run has nothing of its addons: they are installed again.
func TestAddon_clusterIsReplaced(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	config := tftest.With(baseAddon(), "Ready", "cluster", "phase")
	s.Apply(t, config).Must(t)

	if planned := s.Plan(t, tftest.With(tftest.With(baseAddon(), "Ready", "cluster", "phase"), tftest.Unknown{},
		"cluster", "phase")).Must(
		t); tftest.Text(t, planned.Value, "revision") != "unknown" {
		t.Errorf("the plan promises revision %s", tftest.Text(t, planned.Value, "revision"))
	}

	// The run of the apply is another process, without a refresh.
	s.Server = s.newProcess(t).Server
	s.cluster.change(func() { clear(s.cluster.releases) })
	s.Apply(t, config).Must(t)

	if len(s.cluster.releases[metricsServer]) != 1 {
		t.Error("it is not installed again")
	}

	applies := len(s.cluster.applies)
	s.Apply(t, tftest.With(config, "v1.13.1", "cluster", "talos_version")).Must(t)

	if len(s.cluster.applies) != applies {
		t.Error("an addon that is there was applied")
	}
}

// An unknown kubeconfig may be that of a cluster without the release: the plan promises nothing.
func TestAddon_clusterIsNotKnownYet(t *testing.T) {
	t.Parallel()

	content, err := os.ReadFile(kubeconfigFile(t))
	tftest.Must(t, err)

	s := newAddonSite(t)
	given := func(content any) tftest.Config {
		return tftest.With(tftest.Without(baseAddon(), "cluster"), content, "kubeconfig", "content")
	}
	config := given(string(content))
	s.Apply(t, config).Must(t)

	planned := s.Plan(t, given(tftest.Unknown{})).Must(t)
	if revision := tftest.Text(t, planned.Value, "revision"); revision != "unknown" {
		t.Errorf("the plan promises revision %s", revision)
	}

	s.Server = s.newProcess(t).Server
	s.cluster.change(func() { clear(s.cluster.releases) })
	s.Apply(t, config).Must(t)

	if len(s.cluster.releases[metricsServer]) != 1 {
		t.Error("it is not installed again")
	}
}
