package lock

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// DefaultDuration is how long a holder that went away keeps others out.
const DefaultDuration = 30 * time.Second

// Options describe a [Lock].
type Options struct {
	// Cluster distinguishes clusters within this process; by default the cluster's CA
	// does, as addresses and endpoints of one cluster have several spellings.
	Cluster string
	// Lease is the name of the Lease, by default that of the right to disrupt machines.
	// Locks of different Leases have nothing to do with each other.
	Lease string
	// Name of the run, such as the name of its resource, shown to runs that wait for it.
	Name string
	// Duration after which a holder that went away loses the lock to the next one;
	// whole seconds, [DefaultDuration] by default. It renews three times in it.
	Duration time.Duration
	// Asked, which may be nil, receives the result of every attempt of [Lock.Acquire]: nil when the API answered,
	// even if another run holds the lock, or else what was missing.
	Asked func(err error)
}

// Lock is the right to disrupt machines of a cluster, or another right that has its own Lease. Across processes
// and computers it is the Lease kube-system/talosop in the cluster itself. The runs of one process queue for it,
// first come, first served.
//
// A holder counts as gone when its Lease stayed unchanged for as long as the Lease says, in an API that answered
// all the while. The limit is four durations of the run that waits; clocks are never compared. So an unreachable
// API keeps the lock with its holder: no run can take it. When the API is back, the holder asks more often and is
// the first to renew. That is why a failed renewal does not lose the lock, and another holder in the Lease does. A
// run that is cut off from the API, but not from machines, does not notice that. So it has to ask [Lock.Held]
// before each disruptive step.
//
// A Lock may be acquired again once it was released. It is safe for concurrent use.
type Lock struct {
	api      *api.Client
	lease    string
	name     string
	duration time.Duration
	asked    func(err error)
	queue    *queue

	mu sync.Mutex
	// holder is nil while the lock is not held.
	holder *holder
	// failing is since when every attempt to acquire it failed; zero while the last one did not.
	failing time.Time
}

// New returns the lock of the client's cluster; it does no I/O.
func New(c *api.Client, o Options) *Lock {
	o.Cluster = cmp.Or(o.Cluster, c.Cluster)
	o.Duration = cmp.Or(o.Duration, DefaultDuration)
	o.Name = cmp.Or(o.Name, "talosop")
	o.Lease = cmp.Or(o.Lease, leaseName)

	if o.Asked == nil {
		o.Asked = func(error) {}
	}

	return &Lock{
		api: c, lease: o.Lease, name: o.Name, queue: queueOf(o.Cluster + "/" + o.Lease),
		duration: o.Duration, asked: o.Asked,
	}
}

// identity is unique for every acquisition.
func (l *Lock) identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}

	const enough = 8

	return fmt.Sprintf("%s@%s-%d-%s", l.name, host, os.Getpid(), rand.Text()[:enough])
}

// Acquire waits until the lock is free and takes it. It calls waiting, which may be nil, once for each holder that
// it waits for. It retries an API that does not answer until ctx ends; the error then has the cause of ctx and
// what was missing.
//
// lost is closed when another holder of the lock was observed: nothing may be disrupted from then on. release
// gives the lock back within a few seconds, even if ctx has ended. It has to be called once, lost or not. A
// release that does not reach the API costs the next run the lock's duration.
func (l *Lock) Acquire(
	ctx context.Context, waiting func(holder string),
) (lost <-chan struct{}, release func(), err error) {
	if waiting == nil {
		waiting = func(string) {}
	}

	h := &holder{
		leases: l.api.CoordinationV1().Leases(leaseNamespace), progress: l.api.Options.Progress,
		lease: l.lease, identity: l.identity(), duration: l.duration, lost: make(chan struct{}),
	}

	leave, err := l.queue.enter(ctx, h.identity, waiting)
	if err != nil {
		return nil, nil, fmt.Errorf("acquire the lock of the cluster: %w", err)
	}

	if err := h.acquire(ctx, waiting, l.note); err != nil {
		leave()

		return nil, nil, fmt.Errorf("acquire the lock of the cluster (Lease %s/%s): %w", leaseNamespace, l.lease,
			api.WithoutURL(err))
	}

	// Work that runs when ctx ends still has to finish under the lock.
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	stopped := make(chan struct{})

	go func() {
		defer close(stopped)

		if err := panics.Call(func() { h.keep(renewing) }); err != nil {
			h.lose(err)
		}
	}()

	l.hold(h)

	return h.lost, sync.OnceFunc(func() {
		stop()
		<-stopped
		l.hold(nil)
		h.free(ctx)
		leave()
	}), nil
}

// note records since when attempts fail.
func (l *Lock) note(err error) {
	l.mu.Lock()

	switch {
	case err == nil:
		l.failing = time.Time{}
	case l.failing.IsZero():
		l.failing = time.Now()
	}

	l.mu.Unlock()
	l.asked(err)
}

// FailingSince is since when every attempt of [Lock.Acquire] failed, because the API does not answer or does not
// let the Lease be written. It is zero while no Acquire is running, or when the last attempt found another holder.
func (l *Lock) FailingSince() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.failing
}

func (l *Lock) hold(h *holder) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.holder = h
}

// Held renews the lock now; nil means that no other run can take it for its duration. The error is permanent when
// another run holds the lock or it was not acquired. Any other error means that the API did not answer, and that
// the holder is unknown.
func (l *Lock) Held(ctx context.Context) error {
	l.mu.Lock()
	h := l.holder
	l.mu.Unlock()

	if h == nil {
		return errNotHeld
	}

	return h.renew(ctx)
}

// errNotHeld is the error of calls that need the lock.
var errNotHeld = wait.Permanent(errors.New("the lock of the cluster is not held"))

// Annotation is an annotation of the Lease, whatever run holds it; empty where there is none.
func (l *Lock) Annotation(ctx context.Context, key string) (string, error) {
	lease, err := l.api.CoordinationV1().Leases(leaseNamespace).Get(ctx, l.lease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}

	if err != nil {
		return "", fmt.Errorf("read the Lease %s/%s: %w", leaseNamespace, l.lease, api.WithoutURL(err))
	}

	return lease.Annotations[key], nil
}

// Annotate changes an annotation of the Lease, if the lock is held. An empty value removes it. An error of change is
// permanent, as is a lock that is not held. After any other error, it may be repeated.
func (l *Lock) Annotate(ctx context.Context, key string, change func(before string) (string, error)) error {
	l.mu.Lock()
	h := l.holder
	l.mu.Unlock()

	if h == nil {
		return errNotHeld
	}

	if err := h.annotate(ctx, key, change); err != nil {
		return fmt.Errorf("annotate the Lease %s/%s: %w", leaseNamespace, l.lease, api.WithoutURL(err))
	}

	return nil
}

// queue orders the runs of this process.
type queue struct {
	// turn has room for the one whose turn it is; Go serves who waits in order.
	turn chan struct{}

	mu     sync.Mutex
	holder string
}

// queues are global because what they order is: a process serves several resources,
// and several configurations of the provider, that may mean the same cluster. One
// queue for each cluster and lease stays for the life of the process.
var queues = struct {
	sync.Mutex
	by map[string]*queue
}{by: map[string]*queue{}}

func queueOf(cluster string) *queue {
	queues.Lock()
	defer queues.Unlock()

	q := queues.by[cluster]
	if q == nil {
		q = &queue{turn: make(chan struct{}, 1)}
		queues.by[cluster] = q
	}

	return q
}

// enter waits for the turn of holder.
func (q *queue) enter(ctx context.Context, holder string, waiting func(string)) (leave func(), err error) {
	select {
	case q.turn <- struct{}{}:
	default:
		first := q.name()
		waiting(first)

		select {
		case q.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w; last reason: held by %s of the same process", context.Cause(ctx), first)
		}
	}

	q.rename(holder)

	return func() {
		q.rename("another run")
		<-q.turn
	}, nil
}

func (q *queue) name() string {
	q.mu.Lock()
	defer q.mu.Unlock()

	return q.holder
}

func (q *queue) rename(holder string) {
	q.mu.Lock()
	defer q.mu.Unlock()

	q.holder = holder
}
