package kubernetes

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgo "k8s.io/client-go/kubernetes"

	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

const (
	leaseNamespace = "kube-system"
	leaseName      = "talosop"
	// renewals in the duration of a lease, so that one may fail.
	renewals = 3
	// attempts in the duration of a lease, to take it or to renew it after a failure;
	// but one every maxRetry.
	attempts = 15
	maxRetry = 2 * time.Second
	// freeBound is how long giving the lease back may take.
	freeBound = 5 * time.Second
)

// tenure is one holding of the lease.
//
// client-go's leaderelection is not it: it gives up for good when a renewal was not
// possible for a while, which is any reboot of a single control plane, and it is bound
// to one API server.
type tenure struct {
	client   *Client
	lease    string
	holder   string
	duration time.Duration
	lost     chan struct{}

	mu sync.Mutex
	// written is true once the lease may be in this name.
	written bool
	// over is why the tenure ended against its will.
	over error
}

func (t *tenure) retry() time.Duration { return min(t.duration/attempts, maxRetry) }

// acquire waits for the lease. Whatever becomes of it, the lease is not held after an
// error, unless the API went away meanwhile.
func (t *tenure) acquire(ctx context.Context, waiting func(string), asked func(error)) error {
	var (
		seen sighting
		told string
	)

	err := wait.Until(ctx, t.retry(), func(ctx context.Context) error {
		other, err := t.claim(ctx, seen.expired)
		asked(err)

		if err != nil {
			seen = sighting{}

			return err
		}

		if other == "" {
			return nil
		}

		if other != told {
			waiting(other)
		}

		told = other

		return fmt.Errorf("%s holds it", other)
	})
	if err != nil && t.written {
		t.free(ctx)
	}

	return err
}

// sighting is a lease as it was when it last changed.
type sighting struct {
	version string
	at      time.Time
}

// expired reports whether the lease did not change for its duration.
func (s *sighting) expired(lease *coordinationv1.Lease) bool {
	if s.version != lease.ResourceVersion {
		*s = sighting{version: lease.ResourceVersion, at: time.Now()}
	}

	duration := DefaultLockDuration
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil {
		duration = time.Duration(*seconds) * time.Second
	}

	return time.Since(s.at) > duration
}

// keep renews the lease until ctx ends or it is lost.
func (t *tenure) keep(ctx context.Context) {
	timer := time.NewTimer(t.duration / renewals)
	defer timer.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}

		err := t.renew(ctx)

		switch {
		case err == nil:
			timer.Reset(t.duration / renewals)
		case wait.IsPermanent(err):
			return
		default:
			timer.Reset(t.retry())
		}
	}
}

// renew confirms the lease, or learns that it is lost.
func (t *tenure) renew(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()

	if t.over != nil {
		return t.over
	}

	other, err := t.claim(ctx, func(*coordinationv1.Lease) bool { return false })
	if err != nil {
		return fmt.Errorf("renew the lock of the cluster: %w", err)
	}

	if other != "" {
		t.over = wait.Permanent(fmt.Errorf("the lock of the cluster was lost to %s", other))
		close(t.lost)
	}

	return t.over
}

// claim writes the lease if it is ours, free, or another's that take agrees to take;
// else it names who holds it. Every write is on the condition that the lease is what
// was read; a conflict is an error, after which the claim may be repeated.
func (t *tenure) claim(ctx context.Context, take func(*coordinationv1.Lease) bool) (other string, err error) {
	lease, err := t.client.lease(ctx, t.lease)
	if apierrors.IsNotFound(err) {
		return "", t.client.createLease(ctx, t.write(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, Name: t.lease},
		}))
	}

	if err != nil {
		return "", err
	}

	if holder := holderOf(lease); holder != t.holder && holder != "" && !take(lease) {
		return holder, nil
	}

	return "", t.client.updateLease(ctx, t.write(lease))
}

// write puts the holder in a lease.
func (t *tenure) write(lease *coordinationv1.Lease) *coordinationv1.Lease {
	t.written = true
	now := metav1.NowMicro()

	if holderOf(lease) != t.holder {
		transitions := int32(0)
		if lease.Spec.LeaseTransitions != nil {
			transitions = *lease.Spec.LeaseTransitions + 1
		}

		lease.Spec.LeaseTransitions = &transitions
		lease.Spec.AcquireTime = &now
	}

	lease.Spec.HolderIdentity = &t.holder
	lease.Spec.LeaseDurationSeconds = new(int32(t.duration.Round(time.Second) / time.Second))
	lease.Spec.RenewTime = &now

	return lease
}

// free empties the lease if it is ours. The lease of one that does not get there
// expires by itself.
func (t *tenure) free(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freeBound)
	defer cancel()

	err := wait.Until(ctx, settle, func(ctx context.Context) error {
		lease, err := t.client.lease(ctx, t.lease)
		if apierrors.IsNotFound(err) {
			return nil
		}

		if err != nil || holderOf(lease) != t.holder {
			return err
		}

		// Not nil but empty, as client-go's leaderelection leaves it.
		lease.Spec.HolderIdentity = new("")

		return t.client.updateLease(ctx, lease)
	})
	if err != nil {
		t.client.progress(fmt.Sprintf("the lock of the cluster could not be given back, it expires in %s: %s", t.duration, oneLine(err)))
	}
}

func holderOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}

	return *lease.Spec.HolderIdentity
}

func (c *Client) lease(ctx context.Context, name string) (lease *coordinationv1.Lease, err error) {
	err = c.do(ctx, func(ctx context.Context, api clientgo.Interface) (err error) {
		lease, err = api.CoordinationV1().Leases(leaseNamespace).Get(ctx, name, metav1.GetOptions{})

		return err
	})

	return lease, err
}

func (c *Client) createLease(ctx context.Context, lease *coordinationv1.Lease) error {
	return c.do(ctx, func(ctx context.Context, api clientgo.Interface) error {
		_, err := api.CoordinationV1().Leases(leaseNamespace).Create(ctx, lease, metav1.CreateOptions{})

		return err
	})
}

func (c *Client) updateLease(ctx context.Context, lease *coordinationv1.Lease) error {
	return c.do(ctx, func(ctx context.Context, api clientgo.Interface) error {
		_, err := api.CoordinationV1().Leases(leaseNamespace).Update(ctx, lease, metav1.UpdateOptions{})

		return err
	})
}
