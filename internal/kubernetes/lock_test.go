package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/lock"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

var _ lifecycle.Lock = (*lock.Lock)(nil)

// process counts the processes that tests pretend to be: each has a separate queue.
var process atomic.Int32

// lock is the lock of the cluster for a separate process.
func (l *living) lock(t *testing.T, name string, duration time.Duration) *lock.Lock {
	t.Helper()

	return l.client(t).Lock(lock.Options{
		Cluster: fmt.Sprintf("%s %d", t.Name(), process.Add(1)), Name: name, Duration: duration,
	})
}

func (l *living) lease(t *testing.T) *coordinationv1.Lease {
	t.Helper()

	lease, err := l.api.CoordinationV1().Leases("kube-system").Get(t.Context(), "talosop", metav1.GetOptions{})
	check(t, err)

	return lease
}

// replaceHolder writes another holder into the lease.
func (l *living) replaceHolder(t *testing.T, holder string) {
	t.Helper()

	// The holder may renew meanwhile.
	check(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		lease := l.lease(t)
		lease.Spec.HolderIdentity = &holder
		_, err := l.api.CoordinationV1().Leases("kube-system").Update(t.Context(), lease, metav1.UpdateOptions{})

		return err
	}))
}

func TestLock_onClusters(t *testing.T) {
	t.Parallel()
	onClusters(t, func(t *testing.T, l *living) {
		t.Helper()

		// One lease, one test after the other.
		t.Run("is given back", func(t *testing.T) { testLockIsGivenBack(t, l) })
		t.Run("has one holder", func(t *testing.T) { testLockHasOneHolder(t, l) })
		t.Run("is renewed", func(t *testing.T) { testLockIsRenewed(t, l) })
		t.Run("is lost", func(t *testing.T) { testLockIsLost(t, l) })
		t.Run("expires", func(t *testing.T) { testLockExpires(t, l) })
		t.Run("of a forger", func(t *testing.T) { testLockOfAForger(t, l) })
		t.Run("deleted", func(t *testing.T) { testLockDeleted(t, l) })
		t.Run("has annotations", func(t *testing.T) { testLockHasAnnotations(t, l) })
		t.Run("of another lease", func(t *testing.T) { testLockOfAnotherLease(t, l) })
	})
}

func testLockIsGivenBack(t *testing.T, l *living) {
	t.Helper()

	first, second := l.lock(t, "first", time.Hour), l.lock(t, "second", time.Hour)

	if err := first.Held(t.Context()); !wait.IsPermanent(err) {
		t.Errorf("a lock that was not acquired: %v", err)
	}

	lost, release, err := first.Acquire(within(t, time.Minute), func(holder string) { t.Errorf("waits for %s", holder) })
	check(t, err)
	check(t, first.Held(t.Context()))

	lease := l.lease(t)
	if holder := *lease.Spec.HolderIdentity; !strings.HasPrefix(holder, "first@") ||
		*lease.Spec.LeaseDurationSeconds != 3600 {
		t.Errorf("lease of %s for %d s", holder, *lease.Spec.LeaseDurationSeconds)
	}

	holders := make(chan string, 10)
	acquired := make(chan error, 1)

	go func() {
		_, free, err := second.Acquire(within(t, time.Minute), func(holder string) { holders <- holder })
		if err == nil {
			defer free()
		}

		acquired <- err
	}()

	if got := <-holders; got != *lease.Spec.HolderIdentity {
		t.Errorf("waits for %s, want the holder", got)
	}

	release()
	// An hour passes for neither: what was given back is free at once.
	check(t, <-acquired)

	select {
	case <-lost:
		t.Error("a lock that was given back counts as lost")
	default:
	}

	if err := first.Held(t.Context()); !wait.IsPermanent(err) {
		t.Errorf("a lock that was given back: %v", err)
	}
}

// A backup does not wait for a disruption of machines, in this process or another one.
func testLockOfAnotherLease(t *testing.T, l *living) {
	t.Helper()

	c := l.client(t)

	_, release, err := c.Lock(lock.Options{Name: "rollout"}).Acquire(within(t, time.Minute), nil)
	check(t, err)

	defer release()

	backups := c.Lock(lock.Options{Lease: "talosop-backup", Name: "backup"})

	_, free, err := backups.Acquire(within(t, time.Minute), func(holder string) { t.Errorf("waits for %s", holder) })
	check(t, err)

	defer free()

	lease, err := l.api.CoordinationV1().Leases("kube-system").Get(t.Context(), "talosop-backup", metav1.GetOptions{})
	check(t, err)

	if holder := *lease.Spec.HolderIdentity; !strings.HasPrefix(holder, "backup@") {
		t.Errorf("the lease of backups is held by %s", holder)
	}

	if holder := *l.lease(t).Spec.HolderIdentity; !strings.HasPrefix(holder, "rollout@") {
		t.Errorf("the lease of rollouts is held by %s", holder)
	}
}

// Many processes compete; at no time do two of them have it.
func testLockHasOneHolder(t *testing.T, l *living) {
	t.Helper()

	var (
		inside atomic.Int32
		runs   sync.WaitGroup
	)

	for i := range 6 {
		lock := l.lock(t, fmt.Sprintf("run-%d", i), 15*time.Second)

		runs.Go(func() {
			lost, release, err := lock.Acquire(within(t, time.Minute), nil)
			if err != nil {
				t.Error(err)

				return
			}

			defer release()

			if n := inside.Add(1); n != 1 {
				t.Errorf("%d hold the lock", n)
			}

			if err := lock.Held(t.Context()); err != nil {
				t.Error(err)
			}

			select {
			case <-lost:
				t.Error("the lock was lost")
			default:
			}

			inside.Add(-1)
		})
	}

	runs.Wait()
}

// A holder that lives keeps the lock for longer than its duration.
func testLockIsRenewed(t *testing.T, l *living) {
	t.Helper()

	// Time enough for a busy machine to renew it.
	_, release, err := l.lock(t, "holder", 5*time.Second).Acquire(within(t, time.Minute), nil)
	check(t, err)
	t.Cleanup(release)

	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()

	_, _, err = l.lock(t, "other", 5*time.Second).Acquire(ctx, nil)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "holder@") {
		t.Errorf("error %v, want the deadline and the holder", err)
	}
}

func testLockIsLost(t *testing.T, l *living) {
	t.Helper()

	lock := l.lock(t, "holder", time.Second)
	lost, release, err := lock.Acquire(within(t, time.Minute), nil)
	check(t, err)

	l.replaceHolder(t, "a stranger")

	select {
	case <-lost:
	case <-within(t, time.Minute).Done():
		t.Fatal("the loss of the lock is not reported")
	}

	if err := lock.Held(t.Context()); !wait.IsPermanent(err) || !strings.Contains(err.Error(), "lost the lock of the "+
		"cluster to a stranger") {
		t.Errorf("error %v, want the loss", err)
	}

	release()

	if holder := *l.lease(t).Spec.HolderIdentity; holder != "a stranger" {
		t.Errorf("the lease of a stranger was given to %q", holder)
	}
}

// The stranger of the test before never renews. Its times are of a clock that runs a
// year ahead, which must not matter.
func testLockExpires(t *testing.T, l *living) {
	t.Helper()

	lease := l.lease(t)
	lease.Spec.RenewTime = new(metav1.NewMicroTime(time.Now().AddDate(1, 0, 0)))
	lease.Spec.LeaseDurationSeconds = new(int32(2))
	_, err := l.api.CoordinationV1().Leases("kube-system").Update(t.Context(), lease, metav1.UpdateOptions{})
	check(t, err)

	began := time.Now()
	_, release, err := l.lock(t, "heir", time.Second).Acquire(within(t, time.Minute), nil)
	check(t, err)
	t.Cleanup(release)

	if waited := time.Since(began); waited < 2*time.Second {
		t.Errorf("it was taken after %s, before the holder's two seconds", waited)
	}

	after := l.lease(t)
	if *after.Spec.LeaseTransitions != *lease.Spec.LeaseTransitions+1 ||
		!after.Spec.AcquireTime.After(lease.Spec.AcquireTime.Time) {
		t.Errorf("lease %+v after %+v, want a transition", after.Spec, lease.Spec)
	}
}

// A lease that states 68 years and a renewal in the future is waited for as long as a run waits, and no longer. Until
// then the error says who holds it.
func testLockOfAForger(t *testing.T, l *living) {
	t.Helper()

	lease := l.lease(t)
	lease.Spec.HolderIdentity = new("a forger")
	lease.Spec.RenewTime = new(metav1.NewMicroTime(time.Now().AddDate(1, 0, 0)))
	lease.Spec.LeaseDurationSeconds = new(int32(2147483647))
	_, err := l.api.CoordinationV1().Leases("kube-system").Update(t.Context(), lease, metav1.UpdateOptions{})
	check(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()

	_, _, err = l.lock(t, "waits", time.Minute).Acquire(ctx, nil)
	for _, text := range []string{"Lease kube-system/talosop", `held by "a forger"`, "renewed at ", "after 4m0s"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v does not say %q", err, text)
		}
	}

	began := time.Now()
	_, release, err := l.lock(t, "heir", time.Second).Acquire(within(t, time.Minute), nil)
	check(t, err)
	t.Cleanup(release)

	if waited := time.Since(began); waited < 4*time.Second {
		t.Errorf("it was taken after %s, before four durations of the run", waited)
	}
}

// A deleted lease is written again.
func testLockDeleted(t *testing.T, l *living) {
	t.Helper()

	lock := l.lock(t, "holder", time.Hour)
	_, release, err := lock.Acquire(within(t, time.Minute), nil)
	check(t, err)
	t.Cleanup(release)
	check(t, l.api.CoordinationV1().Leases("kube-system").Delete(t.Context(), "talosop", metav1.DeleteOptions{}))
	check(t, lock.Held(t.Context()))

	if holder := *l.lease(t).Spec.HolderIdentity; !strings.HasPrefix(holder, "holder@") {
		t.Errorf("the lease is of %q", holder)
	}
}

// The only control plane reboots for longer than the lock lasts. No run could take the lock meanwhile, so the
// holder still has it. A run that waits does not get it only because time passed.
func TestLock_outlivesAnAPIThatIsGone(t *testing.T) {
	t.Parallel()

	l := newLiving(t, "")
	holder := l.lock(t, "holder", 5*time.Second)

	lost, release, err := holder.Acquire(within(t, time.Minute), nil)
	check(t, err)

	waits := make(chan string, 10)
	acquired := make(chan error, 1)
	other := l.lock(t, "other", 5*time.Second)

	go func() {
		_, free, err := other.Acquire(within(t, 2*time.Minute), func(holder string) { waits <- holder })
		if err == nil {
			defer free()
		}

		acquired <- err
	}()

	<-waits
	l.machine.PowerOff()

	gone := time.Now()

	check(t, wait.Until(within(t, time.Minute), 50*time.Millisecond, func(ctx context.Context) error {
		switch err := holder.Held(ctx); {
		case wait.IsPermanent(err):
			return err
		case err == nil:
			return errors.New("the API still answers")
		case time.Since(gone) < 6*time.Second:
			return errors.New("the lease did not run out yet")
		default:
			return nil
		}
	}))

	l.machine.PowerOn()
	check(t, wait.Until(within(t, time.Minute), 50*time.Millisecond, holder.Held))

	select {
	case <-lost:
		t.Error("the lock counts as lost")
	case err := <-acquired:
		t.Errorf("the other one acquired it: %v", err)
	default:
	}

	release()
	check(t, <-acquired)
}

func TestLock_ofAnAPIThatIsGone(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	lock := ca.client(t, "https://"+closedPort(t)).Lock(lock.Options{Cluster: t.Name()})

	for range 2 { // the second time shows that the queue was left
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("no time left"))
		defer cancel()

		_, _, err := lock.Acquire(ctx, nil)
		if err == nil || !strings.Contains(err.Error(), "no time left") ||
			!strings.Contains(err.Error(), "connection refused") {
			t.Errorf("error %v, want why it ended and what was missing", err)
		}
	}
}

// Runs of one process queue up without the API, in the order they came.
func TestLock_queuesWithinTheProcess(t *testing.T) {
	t.Parallel()

	// The queue is that of the cluster's CA, so this CA is of this test alone.
	bundle, err := secretstest.Generate()
	check(t, err)

	l := newLivingOf(t, "", bundle)
	lock := func(name string) *lock.Lock {
		return l.client(t).Lock(lock.Options{Name: name, Duration: time.Hour})
	}

	_, release, err := lock("first").Acquire(within(t, time.Minute), nil)
	check(t, err)

	waits := make(chan string)
	ended := make(chan error)
	ctx, cancel := context.WithCancelCause(t.Context())

	go func() {
		_, _, err := lock("second").Acquire(ctx, func(holder string) { waits <- holder })
		ended <- err
	}()

	if holder := <-waits; !strings.HasPrefix(holder, "first@") {
		t.Errorf("waits for %q, want the first", holder)
	}

	cancel(errors.New("interrupted"))

	if err := <-ended; err == nil || !strings.Contains(err.Error(), "interrupted") ||
		!strings.Contains(err.Error(), "first@") {
		t.Errorf("error %v, want the interrupt and the holder", err)
	}

	order := make(chan string, 3)

	var runs sync.WaitGroup

	for i, name := range []string{"third", "fourth"} {
		runs.Go(func() {
			_, free, err := lock(name).Acquire(within(t, time.Minute), func(holder string) { waits <- holder })
			if err != nil {
				t.Error(err)

				return
			}

			order <- name

			free()
		})
		<-waits
		eventually(t, func() error { return queued(t, i+1) })
	}

	release()
	release() // once is enough, twice does no harm
	runs.Wait()

	if got := <-order + " " + <-order; got != "third fourth" {
		t.Errorf("order %q", got)
	}
}

// queued is nil once that many runs of the test are really in the queue.
func queued(t *testing.T, want int) error {
	t.Helper()

	var stacks strings.Builder

	check(t, pprof.Lookup("goroutine").WriteTo(&stacks, 2))

	got := 0

	for stack := range strings.SplitSeq(stacks.String(), "\n\n") {
		state, _, _ := strings.Cut(stack, "\n")
		if strings.Contains(state, "[select") && strings.Contains(stack, "(*queue).enter") &&
			strings.Contains(stack, t.Name()) {
			got++
		}
	}

	if got < want {
		return fmt.Errorf("%d wait", got)
	}

	return nil
}

// Only the holder changes annotations of the Lease. They stay for the next one, even if another client deletes the
// Lease meanwhile.
func testLockHasAnnotations(t *testing.T, l *living) {
	t.Helper()

	const key, other = "talosop.dev/hooks", "talosop.dev/other"

	first, second := l.lock(t, "first", time.Hour), l.lock(t, "second", time.Hour)
	to := func(value string) func(string) (string, error) {
		return func(before string) (string, error) { return before + value, nil }
	}

	if err := first.Annotate(t.Context(), key, to("a")); !wait.IsPermanent(err) {
		t.Errorf("without the lock: %v", err)
	}

	_, release, err := first.Acquire(within(t, time.Minute), nil)
	check(t, err)
	check(t, first.Annotate(t.Context(), key, to("a")))
	check(t, first.Annotate(t.Context(), key, to("b")))
	check(t, first.Annotate(t.Context(), other, to("c")))
	check(t, first.Held(t.Context()))
	check(t, l.api.CoordinationV1().Leases("kube-system").Delete(t.Context(), "talosop", metav1.DeleteOptions{}))
	check(t, first.Held(t.Context()))

	failed := errors.New("it is not valid")
	if err := first.Annotate(t.Context(), key, func(string) (string, error) { return "", failed }); !errors.Is(err, failed) {
		t.Errorf("a change that fails: %v", err)
	}

	release()

	for at, want := range map[string]string{key: "ab", other: "c"} {
		if value, err := second.Annotation(t.Context(), at); err != nil || value != want {
			t.Errorf("the next run reads %s %q (%v)", at, value, err)
		}
	}

	_, release, err = second.Acquire(within(t, time.Minute), nil)
	check(t, err)

	defer release()

	l.replaceHolder(t, "thief")

	if err := second.Annotate(t.Context(), key, to("c")); err == nil || !strings.Contains(err.Error(), "held by \"thief\"") {
		t.Errorf("a lock that was lost: %v", err)
	}

	if value, err := second.Annotation(t.Context(), key); err != nil || value != "ab" {
		t.Errorf("it is now %q (%v)", value, err)
	}

	l.replaceHolder(t, "")
}
