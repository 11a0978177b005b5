package providerdata

import (
	"context"
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
	// Open makes a cluster from a client that all operations on it share.
	Open func(ctx context.Context, api *kubernetes.Client) ReleaseKeeper
	// PlanTimeout is how long a plan may read the chart and the cluster of one addon, UnreachableTimeout how long a
	// destroy asks a cluster that does not answer.
	PlanTimeout, UnreachableTimeout time.Duration

	Mu sync.Mutex
	// Clients of clusters, which cache what these serve.
	Clients map[string]*kubernetes.Client
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
	}
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

// chartStore is the source of charts.
type chartStore interface {
	Resolve(ctx context.Context, from chart.Source) (chart.Pin, error)
	Fetch(ctx context.Context, from chart.Source) (*chart.Package, error)
}

// previewLimit is how long a plan may read the chart and the cluster of an addon.
const previewLimit = 30 * time.Second

const unreachableTimeout = 30 * time.Second
