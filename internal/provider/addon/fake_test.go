package addon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// fakeCluster keeps releases in memory: each is one ConfigMap with its values. The tests set its failures. The
// engine has its own tests, and acceptance tests with the resource.
type fakeCluster struct {
	Mu       sync.Mutex
	releases map[release.Name][]release.Revision
	// silent means that the cluster does not answer, failing why applies fail, refusing why charts do not render.
	silent            bool
	failing, refusing error
	// late is why an apply fails after the release is as wanted, undone that a failed one is removed or rolled back.
	late   error
	undone bool
	// outcome is that of an apply that was removed.
	outcome release.Outcome
	// steps and notices are what applies report besides their result.
	steps, notices []string
	// altered are changes of the objects by other clients.
	altered []string
	applies []release.Intent
	specs   []release.Spec
	removed []release.RemoveOptions
}

func (f *fakeCluster) answer() error {
	if f.silent {
		return fmt.Errorf("%w: connection refused", api.ErrNoAnswer)
	}

	return nil
}

func (f *fakeCluster) objects(spec release.Spec, chart *chart.Package) []diff.Object {
	encoded, err := json.Marshal(spec.Values)
	if err != nil {
		panic(err)
	}

	return []diff.Object{{APIVersion: "v1", Kind: "ConfigMap", Namespace: spec.Namespace, Name: spec.Name.Name,
		Content: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": spec.Name.Name, "namespace": spec.Namespace},
			"data":     map[string]any{"values": string(encoded), "chart": chart.Version},
		}}}
}

func (f *fakeCluster) Render(
	_ context.Context, spec release.Spec, chart *chart.Package, _ release.Observation,
) (release.Rendering, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()

	if err := f.answer(); err != nil {
		return release.Rendering{}, err
	}

	return release.Rendering{Objects: f.objects(spec, chart)}, f.refusing
}

func (f *fakeCluster) Changes(
	_ context.Context, spec release.Spec, rendering release.Rendering, have release.Observation,
) ([]diff.Change, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()

	before, _ := have.Deployed()

	return diff.Compare(before.Objects, rendering.Objects, spec.Secrets.Redact), f.answer()
}

func (f *fakeCluster) Observe(_ context.Context, name release.Name) (release.Observation, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()

	return release.Observation{History: slices.Clone(f.releases[name])}, f.answer()
}

func (f *fakeCluster) Drift(context.Context, release.Revision, release.DriftOptions) ([]string, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()

	return f.altered, f.answer()
}

func (f *fakeCluster) Apply(
	_ context.Context, spec release.Spec, chart *chart.Package, intent release.Intent,
) (release.Outcome, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()

	if err := f.answer(); err != nil {
		return release.Outcome{}, err
	}

	f.applies, f.specs = append(f.applies, intent), append(f.specs, spec)
	have := release.Observation{History: f.releases[spec.Name]}
	d := release.Decide(release.Wanted{Name: spec.Name, Inputs: release.Inputs(spec, chart.Digest), Intent: intent,
		Held: true}, have, time.Now())

	switch d.Step {
	case release.Nothing:
		return release.Outcome{Now: have}, nil
	case release.Refuse:
		return release.Outcome{Now: have}, d.Error()
	}

	last, _ := have.Last()
	f.altered = nil
	made := release.Revision{
		Number: last.Number + 1, Status: release.Deployed, Inputs: release.Inputs(spec, chart.Digest), ChartName: chart.Name,
		ChartVersion: chart.Version,
		AppVersion:   chart.AppVersion, Values: maps.Clone(spec.Values), Objects: f.objects(spec, chart),
		FirstDeployed: time.Unix(1, 0),
		LastDeployed:  time.Unix(int64(last.Number)+2, 0), Description: "made by the test",
	}

	if f.failing != nil {
		made.Status = release.Failed
	}

	if former, was := have.Deployed(); f.failing != nil && f.undone && was {
		return f.takeBack(spec.Name, former, made)
	}

	if f.failing != nil && f.undone {
		return f.outcome, &release.FailedError{Name: spec.Name, Verb: "install", Cause: f.failing,
			Next: "It was uninstalled."}
	}

	f.releases[spec.Name] = append(f.releases[spec.Name], made)
	outcome := release.Outcome{
		Done: append(slices.Clone(f.steps), fmt.Sprintf("made revision %d", made.Number)), Notices: f.notices,
		Now: release.Observation{History: f.releases[spec.Name]},
	}

	if f.failing != nil {
		return outcome, &release.FailedError{Name: spec.Name, Verb: "install", Cause: f.failing,
			Diagnosis: []string{"Pod a/b: ImagePullBackOff\nback-off"}, Next: "It stays failed."}
	}

	return outcome, f.late
}

// takeBack does what atomic does: it adds a revision with the content of the former one.
func (f *fakeCluster) takeBack(name release.Name, former, made release.Revision) (release.Outcome, error) {
	back := former
	back.Number, back.LastDeployed = made.Number+1, made.LastDeployed.Add(time.Second)

	if former.Inputs == "" {
		back.Inputs = release.InputsOfAnother
	}

	history := f.releases[name]
	history[len(history)-1].Status = release.Superseded
	f.releases[name] = append(history, made, back)

	return release.Outcome{Now: release.Observation{History: f.releases[name]}}, &release.FailedError{Name: name,
		Verb: "upgrade", Cause: f.failing, Next: "It was rolled back."}
}

func (f *fakeCluster) Remove(_ context.Context, name release.Name, o release.RemoveOptions) error {
	f.Mu.Lock()
	defer f.Mu.Unlock()

	f.removed = append(f.removed, o)

	if err := f.answer(); err != nil {
		return err
	}

	delete(f.releases, name)

	return nil
}

// change runs do while nothing else happens.
func (f *fakeCluster) change(do func()) {
	f.Mu.Lock()
	defer f.Mu.Unlock()

	do()
}

// fakeCharts has one chart.
type fakeCharts struct {
	Mu      sync.Mutex
	pin     chart.Pin
	Trouble error
	fetched int
	asked   []chart.Source
}

func (f *fakeCharts) Resolve(context.Context, chart.Source) (chart.Pin, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()

	return f.pin, f.Trouble
}

func (f *fakeCharts) Fetch(_ context.Context, from chart.Source) (*chart.Package, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()

	f.fetched++
	f.asked = append(f.asked, from)

	if f.Trouble != nil {
		return nil, f.Trouble
	}

	return &chart.Package{Pin: f.pin, AppVersion: "v9", KubeVersion: ">=1.30"}, nil
}

func (f *fakeCharts) change(do func()) {
	f.Mu.Lock()
	defer f.Mu.Unlock()

	do()
}

// addonSite is a provider whose addons use a cluster and a chart of the test.
type addonSite struct {
	*tftest.Driven

	cluster *fakeCluster
	Charts  *fakeCharts
	machine *providerdata.ProviderData
}

func newAddonSite(t *testing.T) *addonSite {
	t.Helper()

	s := &addonSite{
		cluster: &fakeCluster{releases: map[release.Name][]release.Revision{}},
		Charts:  &fakeCharts{pin: chart.Pin{Name: "metrics-server", Version: "3.13.0", Digest: "sha256:0001"}},
		machine: tftest.QuickProviderData(),
	}
	s.machine.Addons.Charts, s.machine.Addons.UnreachableTimeout = s.Charts, 100*time.Millisecond
	s.machine.Addons.Open = func(context.Context, *kubernetes.Client) providerdata.ReleaseKeeper { return s.cluster }
	s.Driven = s.Another(t)

	return s
}

// Another is another resource of the same provider process.
func (s *addonSite) Another(t *testing.T) *tftest.Driven {
	t.Helper()

	d := tftest.Drive(t, resourceType, nil)
	d.Server = tftest.ServeWith(t, s.machine, nil)

	return d
}
