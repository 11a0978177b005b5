package lock

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
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
	freePause = 50 * time.Millisecond
)

// holder is one holding of the lease.
//
// client-go's leaderelection does not fit: it gives up permanently when it cannot renew for a while, which happens in
// any reboot of a single control plane. And it is bound to one API server.
type holder struct {
	leases   coordinationv1client.LeaseInterface
	progress func(message string)
	lease    string
	identity string
	duration time.Duration
	lost     chan struct{}

	mu sync.Mutex
	// written is true once the lease may be in this name.
	written bool
	// over is why it ended against its will.
	over error
	// annotations are those of the lease when it wrote one of them, for a lease that another client deleted.
	annotations map[string]string
}

func (h *holder) retry() time.Duration { return min(h.duration/attempts, maxRetry) }

// acquire waits for the lease. Whatever becomes of it, the lease is not held after an
// error, unless the API went away meanwhile.
func (h *holder) acquire(ctx context.Context, waiting func(string), asked func(error)) error {
	var (
		seen     observation
		reported string
	)

	seen.longest = longestDurations * h.duration

	err := wait.Until(ctx, h.retry(), func(ctx context.Context) error {
		other, err := h.claim(ctx, seen.expired)
		asked(err)

		if err != nil {
			seen = observation{longest: seen.longest}

			return err
		}

		if other == "" {
			return nil
		}

		if other != reported {
			waiting(other)
		}

		reported = other

		return seen.heldBy(other)
	})
	if err != nil && h.written {
		h.free(ctx)
	}

	return err
}

// longestDurations is how many of its own durations a run waits for a lease that does not change, whatever duration the
// lease states. All runs of talosop write the same one, and a lease of 68 years must not block a cluster.
const longestDurations = 4

// A lease as it was when it last changed.
type observation struct {
	// longest is the longest duration that counts.
	longest time.Duration
	version string
	at      time.Time
	spec    coordinationv1.LeaseSpec
}

// expired reports whether the lease did not change for its duration.
func (s *observation) expired(lease *coordinationv1.Lease) bool {
	if s.version != lease.ResourceVersion {
		s.version, s.at, s.spec = lease.ResourceVersion, time.Now(), lease.Spec
	}

	return time.Since(s.at) > s.duration()
}

// duration is how long the lease lasts without a renewal. A stated duration of no time counts as the usual one.
func (s *observation) duration() time.Duration {
	duration := DefaultDuration
	if seconds := s.spec.LeaseDurationSeconds; seconds != nil && *seconds > 0 {
		duration = time.Duration(*seconds) * time.Second
	}

	return min(duration, s.longest)
}

// heldBy says who holds the lease, since when, and when this run takes it if the holder does not renew it. The times in
// the lease are those of the holder's clock.
func (s *observation) heldBy(holder string) error {
	renewed := "never renewed"
	if at := s.spec.RenewTime; at != nil {
		renewed = "renewed at " + at.UTC().Format(time.RFC3339) + " by its clock"
	}

	if at := s.spec.AcquireTime; at != nil {
		renewed += ", acquired at " + at.UTC().Format(time.RFC3339)
	}

	return fmt.Errorf("held by %q (%s); unchanged for %s, another run may take it after %s without a change",
		holder, renewed, time.Since(s.at).Round(time.Second), s.duration())
}

// keep renews the lease until ctx ends or it is lost.
func (h *holder) keep(ctx context.Context) {
	timer := time.NewTimer(h.duration / renewals)
	defer timer.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}

		err := h.renew(ctx)

		switch {
		case err == nil:
			timer.Reset(h.duration / renewals)
		case wait.IsPermanent(err):
			return
		default:
			timer.Reset(h.retry())
		}
	}
}

// lose ends the holding of a lease that is no longer renewed.
func (h *holder) lose(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	if h.over == nil {
		h.over = wait.Permanent(cause)
		close(h.lost)
	}
}

// renew confirms the lease, or learns that it is lost.
func (h *holder) renew(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()

	if h.over != nil {
		return h.over
	}

	other, err := h.claim(ctx, func(*coordinationv1.Lease) bool { return false })
	if err != nil {
		return fmt.Errorf("renew the lock of the cluster: %w", api.WithoutURL(err))
	}

	if other != "" {
		h.over = wait.Permanent(fmt.Errorf("lost the lock of the cluster to %s", other))
		close(h.lost)
	}

	return h.over
}

// claim writes the lease if it is ours, free, or another's that take agrees to take;
// else it names who holds it. Every write is on the condition that the lease is what
// was read; a conflict is an error, after which the claim may be repeated.
func (h *holder) claim(ctx context.Context, take func(*coordinationv1.Lease) bool) (other string, err error) {
	lease, err := h.leases.Get(ctx, h.lease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err := h.leases.Create(ctx, h.write(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, Name: h.lease, Annotations: h.annotations},
		}), metav1.CreateOptions{})

		return "", err
	}

	if err != nil {
		return "", err
	}

	if other := holderOf(lease); other != h.identity && other != "" && !take(lease) {
		return other, nil
	}

	_, err = h.leases.Update(ctx, h.write(lease), metav1.UpdateOptions{})

	return "", err
}

// annotate changes an annotation of the lease, which has to be ours, and renews it. A conflict is an error, after which
// it may be repeated.
func (h *holder) annotate(ctx context.Context, key string, change func(string) (string, error)) error {
	h.mu.Lock()
	defer h.mu.Unlock()

	if h.over != nil {
		return h.over
	}

	lease, err := h.leases.Get(ctx, h.lease, metav1.GetOptions{})
	if err != nil {
		return err
	}

	if other := holderOf(lease); other != h.identity {
		return fmt.Errorf("the lock of the cluster is held by %q", other)
	}

	value, err := change(lease.Annotations[key])
	if err != nil {
		return wait.Permanent(err)
	}

	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}

	if lease.Annotations[key] = value; value == "" {
		delete(lease.Annotations, key)
	}

	if _, err = h.leases.Update(ctx, h.write(lease), metav1.UpdateOptions{}); err == nil {
		h.annotations = maps.Clone(lease.Annotations)
	}

	return err
}

// write puts the holder in a lease.
func (h *holder) write(lease *coordinationv1.Lease) *coordinationv1.Lease {
	h.written = true
	now := metav1.NowMicro()

	if holderOf(lease) != h.identity {
		transitions := int32(0)
		if lease.Spec.LeaseTransitions != nil {
			transitions = *lease.Spec.LeaseTransitions + 1
		}

		lease.Spec.LeaseTransitions = &transitions
		lease.Spec.AcquireTime = &now
	}

	lease.Spec.HolderIdentity = &h.identity
	lease.Spec.LeaseDurationSeconds = new(int32(h.duration.Round(time.Second) / time.Second))
	lease.Spec.RenewTime = &now

	return lease
}

// free empties the lease if it is ours. The lease of one that does not get there
// expires by itself.
func (h *holder) free(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freeBound)
	defer cancel()

	err := wait.Until(ctx, freePause, func(ctx context.Context) error {
		lease, err := h.leases.Get(ctx, h.lease, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}

		if err != nil || holderOf(lease) != h.identity {
			return err
		}

		// Not nil but empty, as client-go's leaderelection leaves it.
		lease.Spec.HolderIdentity = new("")

		_, err = h.leases.Update(ctx, lease, metav1.UpdateOptions{})

		return err
	})
	if err != nil {
		h.progress(fmt.Sprintf("could not release the lock of the cluster, it expires in %s: %s", h.duration,
			api.OneLine(err)))
	}
}

func holderOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}

	return *lease.Spec.HolderIdentity
}
