package addon

import (
	"context"
	"errors"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/addon/session"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
)

// Cluster is where releases are. It is safe for concurrent use.
type Cluster struct {
	API *kubernetes.Client
	// Progress is told what is done and waited for; nil is allowed.
	Progress func(message string, fields map[string]any)
	// Slots bound how many releases are rendered and built at a time, over all that share them; nil
	// shares with none.
	Slots *session.Slots
	// Grace is how long Helm's records may still be written when the context has ended, 20 s by
	// default; Pause is between two looks at objects that are waited for.
	Grace, Pause time.Duration
	// LockDuration is how long a run that was killed keeps others from its release, 30 s by default.
	LockDuration time.Duration
}

var errLater = errors.New("not written yet")

// Render shows what a chart becomes, without changing anything.
func (c *Cluster) Render(ctx context.Context, spec Spec, chart *Package, have Observation) (Rendering, error) {
	return Rendering{}, errLater
}

// RenderOffline shows what a chart becomes on a cluster of a version that is not asked.
func RenderOffline(ctx context.Context, spec Spec, chart *Package, kubernetesVersion string) (Rendering, error) {
	return Rendering{}, errLater
}

// Drift tells in what the objects of a revision differ from what they should be.
func (c *Cluster) Drift(ctx context.Context, revision Revision, o DriftOptions) ([]string, error) {
	return nil, errLater
}

// Apply makes a release what is wanted.
func (c *Cluster) Apply(ctx context.Context, spec Spec, chart *Package, intent Intent) (Outcome, error) {
	return Outcome{}, errLater
}

// Remove uninstalls a release.
func (c *Cluster) Remove(ctx context.Context, name Name, o RemoveOptions) error {
	return errLater
}
