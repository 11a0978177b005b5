package providerdata

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	helmsession "github.com/talosop/terraform-provider-talosop/internal/helm/client"
	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Addons is what the addons of a process share.
type Addons struct {
	Charts chartStore
	// Open makes a cluster of a client that all operations on it share.
	Open func(ctx context.Context, api *kubernetes.Client) ReleaseKeeper
	// PlanTimeout is how long a plan may look at the chart and the cluster of one addon, doubt how long a
	// cluster is asked that does not answer a destroy.
	PlanTimeout, UnreachableTimeout time.Duration

	Mu sync.Mutex
	// Clients of clusters, which remember what these serve.
	Clients map[string]*kubernetes.Client
	// Seen are the releases that this process has refreshed.
	Seen map[string]bool
	// claimed are the releases that resources of this process have made, with what tells these apart.
	claimed map[string]string
}

func newAddons() *Addons {
	slots := helmsession.NewSlots(0)

	return &Addons{
		Charts: chart.NewStore(chart.Options{}),
		Open: func(ctx context.Context, api *kubernetes.Client) ReleaseKeeper {
			return &release.Cluster{
				API: api, Slots: slots,
				Progress: func(message string, fields map[string]any) { tf.LogInfo(ctx, message, fields) },
				Log:      func(message string, fields map[string]any) { tf.LogDebug(ctx, message, fields) },
			}
		},
		PlanTimeout: previewLimit, UnreachableTimeout: unreachableTimeout, Clients: map[string]*kubernetes.Client{},
		claimed: map[string]string{}, Seen: map[string]bool{},
	}
}

// Claim takes a release for one resource, and returns what tells that from others; taken is whether another one
// has it.
func (a *Addons) Claim(release string) (claim string, taken bool) {
	a.Mu.Lock()
	defer a.Mu.Unlock()

	if _, taken := a.claimed[release]; taken {
		return "", true
	}

	a.claimed[release] = rand.Text()

	return a.claimed[release], false
}

// OfOther is whether a resource of this process has made a release that is not the one of a claim.
func (a *Addons) OfOther(release, claim string) bool {
	a.Mu.Lock()
	defer a.Mu.Unlock()

	holder, taken := a.claimed[release]

	return taken && holder != claim
}

// Saw takes note of a refresh of a release.
func (a *Addons) Saw(release string) {
	a.Mu.Lock()
	defer a.Mu.Unlock()

	a.Seen[release] = true
}

// SawLately is whether this process has refreshed a release.
func (a *Addons) SawLately(release string) bool {
	a.Mu.Lock()
	defer a.Mu.Unlock()

	return a.Seen[release]
}

// Release gives a claim back.
func (a *Addons) Release(release string) {
	a.Mu.Lock()
	defer a.Mu.Unlock()

	delete(a.claimed, release)
}

// ReleaseKeeper is what the resource needs of a cluster.
type ReleaseKeeper interface {
	Render(ctx context.Context, spec release.Spec, chart *chart.Package, have release.Observation) (release.Rendering,
		error)
	Observe(ctx context.Context, name release.Name) (release.Observation, error)
	Changes(ctx context.Context, spec release.Spec, rendering release.Rendering, have release.Observation) ([]diff.Change,
		error)
	Drift(ctx context.Context, revision release.Revision, o release.DriftOptions) ([]string, error)
	Apply(ctx context.Context, spec release.Spec, chart *chart.Package, intent release.Intent) (release.Outcome, error)
	Remove(ctx context.Context, name release.Name, o release.RemoveOptions) error
}

// chartStore is where charts come from.
type chartStore interface {
	Resolve(ctx context.Context, from chart.Source) (chart.Pin, error)
	Fetch(ctx context.Context, from chart.Source) (*chart.Package, error)
}

// previewLimit is how long a plan may look at the chart and the cluster of an addon.
const previewLimit = 30 * time.Second

const unreachableTimeout = 30 * time.Second
