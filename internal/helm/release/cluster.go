package release

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/helm/client"
	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/lock"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
)

const (
	// leasePrefix of the Leases that releases are changed under, one each.
	leasePrefix = "talosop-addon-"
	// atOnce is how many objects are observed side by side.
	atOnce = 8
	// defaultPause is the time between two observations in a wait.
	defaultPause = time.Second
	// defaultUnreachableTimeout is for an API that is starting.
	defaultUnreachableTimeout = time.Minute
	// defaultGrace is for what is still to be done after the context ended.
	defaultGrace = 20 * time.Second
)

// Cluster is where releases are. It is safe for concurrent use.
//
// No text that it returns or tells has one of the secrets of a spec or of options in it.
type Cluster struct {
	API *kubernetes.Client
	// Progress receives each action and each wait; nil is allowed.
	Progress func(message string, fields map[string]any)
	// Log receives what Helm logs; nil is allowed.
	Log func(message string, fields map[string]any)
	// Slots bound how many releases are rendered and built at a time, over all that share them; nil
	// shares with none.
	Slots *client.Slots
	// Grace is how long Helm's records may still be written when the context has ended, 20 s by
	// default; Pause is between two observations of objects that are waited for, 1 s by default.
	Grace, Pause time.Duration
	// UnreachableTimeout is how long a cluster is asked again that gives no answer, 1 min by default: its API may
	// be starting.
	UnreachableTimeout time.Duration
	// LockDuration is how long a run that was killed keeps others from its release, 30 s by default.
	LockDuration time.Duration
}

// errLost ends the work on a release that another run took over.
var errLost = errors.New("another run took over the Lease of the release")

// leaseOf is the name of the Lease that a release is changed under.
func leaseOf(name Name) string {
	const length = 40

	sum := sha256.Sum256([]byte(name.String()))

	return leasePrefix + hex.EncodeToString(sum[:])[:length]
}

// holding does work while no other run changes the release.
func (c *Cluster) holding(ctx context.Context, name Name, work func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	held := c.API.Lock(lock.Options{
		Lease: leaseOf(name), Name: "addon " + name.String(), Duration: c.LockDuration,
		Asked: func(err error) {
			if apierrors.IsForbidden(err) {
				// Otherwise the request would be retried until ctx ends.
				cancel(fmt.Errorf("changing a release requires a Lease in namespace %s: %w", metav1.NamespaceSystem, err))
			}
		},
	})

	lost, release, err := held.Acquire(ctx, func(holder string) {
		c.tell(name, fmt.Sprintf("waiting for Lease %s/%s held by %s; the Lease of a killed run expires after %s",
			metav1.NamespaceSystem, leaseOf(name), holder, cmp.Or(c.LockDuration, lock.DefaultDuration)))
	})
	if err != nil {
		return err
	}

	defer release()

	go func() {
		select {
		case <-lost:
			cancel(errLost)
		case <-ctx.Done():
		}
	}()

	return work(ctx)
}

// open makes a session for the work on a release.
func (c *Cluster) open(ctx context.Context, name Name, redact func(string) string) (*client.Session, error) {
	return client.Open(ctx, c.API, c.options(name, redact))
}

// openForPlan makes a session for the plan of a release. Its templates look up no Secrets: a user who may propose
// a chart and read a plan may lack the right to read the Secrets of the cluster.
func (c *Cluster) openForPlan(ctx context.Context, name Name, redact func(string) string) (*client.Session, error) {
	o := c.options(name, redact)
	o.WithholdSecrets = true

	return client.Open(ctx, c.API, o)
}

func (c *Cluster) options(name Name, redact func(string) string) client.Options {
	return client.Options{
		Namespace: name.Namespace, Release: name.Name, Redact: redactWithoutObjects(redact),
		Progress: func(text string) {
			if c.Log != nil {
				c.Log(text, map[string]any{"release": name.String()})
			}
		},
		Slots: c.Slots, Grace: c.Grace, Pause: c.Pause,
	}
}

// tell reports progress; the text contains no secrets.
func (c *Cluster) tell(name Name, text string) {
	if c.Progress != nil {
		c.Progress(redactWithoutObjects(func(text string) string { return text })(text),
			map[string]any{"release": name.String()})
	}
}

func (c *Cluster) pause() time.Duration { return cmp.Or(c.Pause, defaultPause) }

// afterwards is a context for what is still to be observed or written when ctx may have ended.
func (c *Cluster) afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	grace := cmp.Or(c.Grace, defaultGrace)

	return context.WithTimeoutCause(context.WithoutCancel(ctx), grace, fmt.Errorf("timed out after %s", grace))
}

// referenceTo names an object of a manifest for the API, which knows itself whether its kind has
// namespaces.
func referenceTo(o diff.Object) objects.Reference {
	return objects.Reference{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}
