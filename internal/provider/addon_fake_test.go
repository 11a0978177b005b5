package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/addon"
	"github.com/talosop/terraform-provider-talosop/internal/addon/charts"
	"github.com/talosop/terraform-provider-talosop/internal/addon/manifest"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
)

// fakeCluster keeps releases in memory: each is one ConfigMap with its values. It is told what
// goes wrong. The engine itself is tested where it is, and with the resource in acceptance tests.
type fakeCluster struct {
	mu       sync.Mutex
	releases map[addon.Name][]addon.Revision
	// silent is that nobody answers, failing why applies fail, refusing why charts do not render.
	silent            bool
	failing, refusing error
	// late is why an apply fails that has reached what was wanted, undone that a failed one is taken away.
	late   error
	undone bool
	// steps and notices are what applies tell of beside what they made.
	steps, notices []string
	// altered is what somebody did to the objects.
	altered []string
	applies []addon.Intent
	specs   []addon.Spec
	removed []addon.RemoveOptions
}

func (f *fakeCluster) answer() error {
	if f.silent {
		return fmt.Errorf("%w: nobody is at home", kubernetes.ErrNoAnswer)
	}

	return nil
}

func (f *fakeCluster) objects(spec addon.Spec, chart *addon.Package) []manifest.Object {
	encoded, err := json.Marshal(spec.Values)
	if err != nil {
		panic(err)
	}

	return []manifest.Object{{APIVersion: "v1", Kind: "ConfigMap", Namespace: spec.Namespace, Name: spec.Name.Name, Content: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": spec.Name.Name, "namespace": spec.Namespace},
		"data": map[string]any{"values": string(encoded), "chart": chart.Version},
	}}}
}

func (f *fakeCluster) Render(_ context.Context, spec addon.Spec, chart *addon.Package, _ addon.Observation) (addon.Rendering, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	if err := f.answer(); err != nil {
		return addon.Rendering{}, err
	}

	return addon.Rendering{Objects: f.objects(spec, chart)}, f.refusing
}

func (f *fakeCluster) Changes(_ context.Context, spec addon.Spec, rendering addon.Rendering, have addon.Observation) ([]manifest.Change, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	before, _ := have.Deployed()

	return manifest.Compare(before.Objects, rendering.Objects, spec.Secrets.Redact), f.answer()
}

func (f *fakeCluster) Observe(_ context.Context, name addon.Name) (addon.Observation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	return addon.Observation{History: slices.Clone(f.releases[name])}, f.answer()
}

func (f *fakeCluster) Drift(context.Context, addon.Revision, addon.DriftOptions) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.altered, f.answer()
}

func (f *fakeCluster) Apply(_ context.Context, spec addon.Spec, chart *addon.Package, intent addon.Intent) (addon.Outcome, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	if err := f.answer(); err != nil {
		return addon.Outcome{}, err
	}

	f.applies, f.specs = append(f.applies, intent), append(f.specs, spec)
	have := addon.Observation{History: f.releases[spec.Name]}
	d := addon.Decide(addon.Wanted{Name: spec.Name, Inputs: addon.Inputs(spec, chart.Digest), Intent: intent, Held: true}, have, time.Now())

	switch d.Step {
	case addon.Nothing:
		return addon.Outcome{Now: have}, nil
	case addon.Refuse:
		return addon.Outcome{Now: have}, d.Error()
	}

	last, _ := have.Last()
	f.altered = nil
	made := addon.Revision{
		Number: last.Number + 1, Status: addon.Deployed, Inputs: addon.Inputs(spec, chart.Digest), ChartName: chart.Name, ChartVersion: chart.Version,
		AppVersion: chart.AppVersion, Values: maps.Clone(spec.Values), Objects: f.objects(spec, chart), FirstDeployed: time.Unix(1, 0),
		LastDeployed: time.Unix(int64(last.Number)+2, 0), Description: "made by the test",
	}

	if f.failing != nil {
		made.Status = addon.Failed
	}

	if f.failing != nil && f.undone {
		return addon.Outcome{}, &addon.FailedError{Name: spec.Name, Verb: "install", Cause: f.failing, Next: "It was uninstalled."}
	}

	f.releases[spec.Name] = append(f.releases[spec.Name], made)
	outcome := addon.Outcome{
		Done: append(slices.Clone(f.steps), fmt.Sprintf("made revision %d", made.Number)), Notices: f.notices,
		Now: addon.Observation{History: f.releases[spec.Name]},
	}

	if f.failing != nil {
		return outcome, &addon.FailedError{Name: spec.Name, Verb: "install", Cause: f.failing, Troubles: []string{"Pod a/b: ImagePullBackOff\nback-off"}, Next: "It stays failed."}
	}

	return outcome, f.late
}

func (f *fakeCluster) Remove(_ context.Context, name addon.Name, o addon.RemoveOptions) error {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.removed = append(f.removed, o)

	if err := f.answer(); err != nil {
		return err
	}

	delete(f.releases, name)

	return nil
}

// change does something while nothing else happens.
func (f *fakeCluster) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()

	do()
}

// fakeCharts has one chart.
type fakeCharts struct {
	mu      sync.Mutex
	pin     charts.Pin
	trouble error
	fetched int
}

func (f *fakeCharts) Resolve(context.Context, charts.Source) (charts.Pin, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.pin, f.trouble
}

func (f *fakeCharts) Fetch(context.Context, charts.Source) (*charts.Package, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.fetched++

	if f.trouble != nil {
		return nil, f.trouble
	}

	return &charts.Package{Pin: f.pin, AppVersion: "v9", KubeVersion: ">=1.30"}, nil
}

func (f *fakeCharts) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()

	do()
}

// addonSite is a provider whose addons meet a cluster and a chart of the test.
type addonSite struct {
	*driven

	cluster *fakeCluster
	charts  *fakeCharts
	machine *machinery
}

func newAddonSite(t *testing.T) *addonSite {
	t.Helper()

	s := &addonSite{
		cluster: &fakeCluster{releases: map[addon.Name][]addon.Revision{}},
		charts:  &fakeCharts{pin: charts.Pin{Name: "metrics-server", Version: "3.13.0", Digest: "sha256:0001"}}, machine: impatientMachinery(),
	}
	s.machine.addons.charts, s.machine.addons.doubt = s.charts, 100*time.Millisecond
	s.machine.addons.open = func(context.Context, *kubernetes.Client) releaseKeeper { return s.cluster }
	s.driven = s.another(t)

	return s
}

// another resource of the same provider process.
func (s *addonSite) another(t *testing.T) *driven {
	t.Helper()

	d := drive(t, addonResourceType, nil)
	d.server = serve(t, s.machine, nil)

	return d
}
