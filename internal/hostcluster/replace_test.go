package hostcluster_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Claims of a cluster, by name.
func (s site) claims(t *testing.T, spec workload.Spec) map[string]metav1.Object {
	t.Helper()

	claims := map[string]metav1.Object{}

	for name, o := range s.objects(t, spec) {
		if strings.HasPrefix(name, "PersistentVolumeClaim") {
			claims[name] = o
		}
	}

	return claims
}

func TestWipe_leavesNoVolume(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	spec := s.spec("dev", 1, 1)
	check(t, s.Ensure(t.Context(), spec))

	before, had := s.observe(t, spec, quiet), s.claims(t, spec)
	check(t, s.Wipe(t.Context(), spec, "cp-0"))

	after, has := s.observe(t, spec, quiet), s.claims(t, spec)
	if after.Machines["cp-0"].PodUID == before.Machines["cp-0"].PodUID ||
		after.Machines["batch/0"].PodUID != before.Machines["batch/0"].PodUID {
		t.Errorf("the pods were %+v and are %+v", before.Machines, after.Machines)
	}

	if len(has) != len(had) {
		t.Errorf("there are %d claims instead of %d", len(has), len(had))
	}

	for name, o := range has {
		if same := uidOf(had, name) == o.GetUID(); same == strings.Contains(name, "-cp-0") {
			t.Errorf("that %s is the same is %t", name, same)
		}
	}
}

func TestChanges_ofAnUnknownMachine(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	spec := s.spec("dev", 0, 0)

	for name, change := range map[string]func(context.Context, workload.Spec, string) error{
		"Replace": s.Replace, "Restart": s.Restart, "Wipe": s.Wipe, "Remove": s.Remove,
	} {
		if err := change(t.Context(), spec, "cp-7"); !wait.IsPermanent(err) || !strings.Contains(err.Error(), "cp-7") {
			t.Errorf("%s of a machine that there is not ends with %v", name, err)
		}
	}
}

// operation is one that may be killed, on a separate cluster.
type operation struct {
	name   string
	before func(t *testing.T, s site, spec *workload.Spec)
	run    func(context.Context, *hostcluster.Host, workload.Spec) error
	// after it ended without an error, at last.
	after func(t *testing.T, s site, spec workload.Spec)
}

// For every request that changes something: the process is killed when it was carried out, and the operation is done
// again from the start. It has to end as if nothing had happened.
func TestChanges_killedAtEveryCall(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	made := func(t *testing.T, s site, spec *workload.Spec) {
		t.Helper()
		check(t, s.Ensure(t.Context(), *spec))
	}
	whole := func(t *testing.T, s site, spec workload.Spec) {
		t.Helper()
		s.observe(t, spec, func(o workload.Observation) bool {
			m := o.Machines["batch/0"]

			return m.Complete && m.Pod != "" && len(m.Drift)+len(m.Outdated)+len(o.Missing)+len(o.Drift) == 0
		})
	}

	for _, o := range []operation{
		{
			"ensure", func(*testing.T, site, *workload.Spec) {},
			func(ctx context.Context, h *hostcluster.Host, spec workload.Spec) error {
				return h.Ensure(ctx, spec)
			}, whole,
		},
		{
			"replace", func(t *testing.T, s site, spec *workload.Spec) {
				t.Helper()
				spec.Machines[0].Pod.Storage.Ephemeral = true
				made(t, s, spec)
				s.observe(t, *spec, quiet)
				s.patchSet(t, spec.Cluster+"-batch-0",
					`{"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/os":"linux"}}}}}`)

				spec.Machines[0].Image += "-next"
			},
			func(ctx context.Context, h *hostcluster.Host, spec workload.Spec) error {
				return h.Replace(ctx, spec, "batch/0")
			}, whole,
		},
		{
			"wipe", made,
			func(ctx context.Context, h *hostcluster.Host, spec workload.Spec) error {
				return h.Wipe(ctx, spec, "batch/0")
			}, whole,
		},
		{
			"remove", made,
			func(ctx context.Context, h *hostcluster.Host, spec workload.Spec) error {
				if err := h.Remove(ctx, spec, "batch/0"); err != nil {
					return err
				}

				return h.RemoveShared(ctx, spec)
			},
			func(t *testing.T, s site, spec workload.Spec) {
				t.Helper()

				if left := s.objects(t, spec); len(left) > 0 {
					t.Errorf("there are still %d objects", len(left))
				}
			},
		},
	} {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			s.killAtEveryCall(t, o)
		})
	}
}

// killAtEveryCall works on several clusters at a time, one for each request (every other one, but in make test-all): they
// wait most of the time, and more of them than there are processors.
func (s site) killAtEveryCall(t *testing.T, o operation) {
	t.Helper()

	const atOnce = 8

	step := 2
	if testenv.Everything() {
		step = 1
	}

	var ended atomic.Bool

	for first := 1; !ended.Load() && !t.Failed(); first += atOnce * step {
		var group sync.WaitGroup

		for n := first; n < first+atOnce*step; n += step {
			group.Go(func() {
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					if !s.kill(t, o, n) {
						ended.Store(true)
					}
				})
			})
		}

		group.Wait()
	}
}

// kill reports whether the operation had so many requests that it was killed.
func (s site) kill(t *testing.T, o operation, n int) (killed bool) {
	spec := s.spec(fmt.Sprintf("%s%d", o.name, n), 0, 1)
	o.before(t, s, &spec)

	proxy := s.cluster.Proxy(t)
	dead := proxy.Die(n, kubetest.Call.Changes, true)
	ctx, cancel := context.WithCancel(t.Context())

	defer cancel()

	go func() {
		select {
		case <-dead:
			cancel()
		case <-ctx.Done():
		}
	}()

	err := o.run(ctx, openHost(t, proxy.Kubeconfig()), spec)

	select {
	case <-dead:
		if err == nil && ctx.Err() == nil {
			t.Error("the operation ended well without its host")
		}

		killed = true
	default:
		check(t, err)
	}

	check(t, o.run(t.Context(), s.Host, spec))
	o.after(t, s, spec)

	return killed
}
