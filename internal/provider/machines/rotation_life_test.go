package machines_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// rotationLife is a cluster whose keys are rotated by plans and applies as the CLIs make them, with one state.
type rotationLife struct {
	*lifeSite

	t      *testing.T
	config lifeConfig
	state  lifeState
	// ahead reports whether the secrets may be more than one apply ahead of the machines.
	ahead bool
}

func newRotationLife(t *testing.T, layout lifeLayout, planes, workers int) *rotationLife {
	t.Helper()

	return newLifeAt(t, layout, planes, planes, workers, "")
}

// newLifeAt is newRotationLife for a cluster at a version of Kubernetes that uses only the given number of control
// planes.
func newLifeAt(t *testing.T, layout lifeLayout, used, planes, workers int, kubernetes string) *rotationLife {
	t.Helper()

	r := &rotationLife{
		lifeSite: &lifeSite{Site: sitetest.New(t, planes, workers), folder: t.TempDir()}, t: t, state: lifeState{},
		config: lifeConfig{Layout: layout, Label: "this", SecretsUnlocked: true, Kubernetes: kubernetes},
	}

	for i := range used {
		r.config.Planes = append(r.config.Planes, i)
	}

	for i := range workers {
		r.config.Workers = append(r.config.Workers, i)
	}

	r.settle()

	return r
}

// plan plans, with a refresh that recognizes every machine.
func (r *rotationLife) plan(o lifeOptions) lifePlan {
	r.t.Helper()

	o.Random, o.ReadsOrphansFirst = rand.New(rand.NewPCG(1, 1)), true //nolint:gosec // the order of a plan
	p := planLife(r.t, r.state, r.blocks(r.config), o)

	if p.Refused || len(p.Bugs) > 0 {
		r.t.Fatalf("the plan: %v\n%s", p.Bugs, tftest.Show(p.Diagnostics))
	}

	for _, d := range p.Diagnostics {
		if code, _ := tftest.Code(d); code == "identity_mismatch" || code == "machines_unreachable" {
			r.t.Errorf("the refresh: %s: %s", d.Summary, d.Detail)
		}
	}

	return p
}

// end is how an apply is interrupted.
type end string

const (
	killed         end = "killed"             // the answer of the provider so far is stored
	providerKilled end = "provider killed"    // likewise, without the private state of the changed object
	lost           end = "killed, state lost" // a remote state has nothing of the apply
	interrupted    end = "interrupted"        // the provider stops by itself, and its state is stored
	never          end = "never"
)

// apply applies a plan until the given number of calls have changed machines. It returns how many did.
func (r *rotationLife) apply(p lifePlan, how end, after int) int {
	r.t.Helper()

	stop, changes := make(chan struct{}), atomic.Int64{}

	var over, gone atomic.Bool

	r.SetOnCall(func(c fault.Call) error {
		if how != never && changes.Load() >= int64(after) && over.CompareAndSwap(false, true) {
			gone.Store(how != interrupted)
			close(stop)
		}

		if gone.Load() {
			return status.Error(codes.Unavailable, "the process that calls is gone")
		}

		if c.Mutates() {
			changes.Add(1)
		}

		return nil
	})

	applied := applyLife(r.t, p, r.blocks(r.config), stop, func() loss {
		switch {
		case !gone.Load():
			return lossNone
		case how == providerKilled:
			return lossOfPrivate
		default:
			return lossOfAnswers
		}
	})
	r.SetOnCall(nil)

	switch {
	case len(applied.Bugs) > 0:
		r.t.Errorf("the apply: %v", applied.Bugs)
	case how == never && applied.failed() && !r.waits(applied.Diagnostics):
		r.t.Fatalf("the apply: %s", tftest.Show(applied.Diagnostics))
	}

	if r.state = applied.state; how == lost {
		r.state = p.State
	}

	return int(changes.Load())
}

// applied applies a plan to its end, and returns all results.
func (r *rotationLife) applied(p lifePlan) *lifeApply {
	r.t.Helper()

	applied := applyLife(r.t, p, r.blocks(r.config), make(chan struct{}), func() loss { return lossNone })
	if applied.failed() {
		r.t.Fatalf("the apply: %v\n%s", applied.Bugs, tftest.Show(applied.Diagnostics))
	}

	r.state = applied.state

	return applied
}

// waits reports whether the only problem was that machines of other resources were not as far yet, where each
// machine is a resource without dependencies.
func (r *rotationLife) waits(diagnostics []*tfprotov6.Diagnostic) bool {
	return r.config.Layout == machinesLayout && !slices.ContainsFunc(diagnostics, func(d *tfprotov6.Diagnostic) bool {
		return d.Severity == tfprotov6.DiagnosticSeverityError && !strings.Contains(d.Detail, "still work with keys that the secrets do not have")
	})
}

// settle applies until the plan is empty. During each apply a client has credentials from before it. It returns how
// many calls of each apply changed machines.
func (r *rotationLife) settle() []int {
	r.t.Helper()

	var changes []int

	for range 8 {
		p := r.plan(lifeOptions{})
		if p.empty() {
			return changes
		}

		goesOn := r.client()
		changes = append(changes, r.apply(p, never, 0))

		goesOn()
	}

	r.t.Fatal("the plan does not become empty")

	return nil
}

// bundle is the secrets in state; nil while there are none.
func (r *rotationLife) bundle() *pki.Bundle {
	object := r.state[lifeKey{Address: lifeSecrets}]
	if object == nil {
		return nil
	}

	return tftest.ParsedBundle(r.t, tftest.Text(r.t, object.Value, "bundle"))
}

// client is a client with credentials from before an apply: they work before it, and the returned function checks
// that they still do.
func (r *rotationLife) client() (goesOn func()) {
	r.t.Helper()

	bundle := r.bundle()
	if bundle == nil || r.ahead || r.config.Layout == machinesLayout {
		// The first apply creates the cluster. Machines in separate resources without dependencies may be applies behind
		// the secrets, as the guide says.
		return func() {}
	}

	credentials, err := bundle.KubernetesClient("kubectl", []string{pki.GroupAdmin}, time.Hour)
	tftest.Must(r.t, err)

	write := func(when string) {
		if err := r.write(credentials); err != nil {
			r.t.Errorf("%s the apply a client cannot write: %v", when, err)
		}
	}
	write("before")

	return func() { write("after") }
}

// write creates an object, at the first API server that answers.
func (r *rotationLife) write(c pki.Credentials) error {
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()

	var last error

	for ctx.Err() == nil {
		for _, m := range r.ControlPlane {
			api, err := typedcore.NewForConfig(&rest.Config{
				Host: "https://" + net.JoinHostPort(m.Address().String(), "6443"), Timeout: 2 * time.Second,
				TLSClientConfig: rest.TLSClientConfig{CAData: c.CA, CertData: c.Certificate, KeyData: c.Key},
				Dial:            (&net.Dialer{Timeout: time.Second}).DialContext,
			})
			tftest.Must(r.t, err)

			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "written-"}}
			_, err = api.ConfigMaps("default").Create(ctx, object, metav1.CreateOptions{})
			if err == nil {
				return nil
			}

			if ctx.Err() == nil { // otherwise the error is only the end of the test
				last = fmt.Errorf("%s: %w", m.Name(), err)
			}
		}
	}

	return last
}

// rotationEnd is where an apply of a rotation is interrupted.
type rotationEnd struct {
	How          end
	Apply, After int
}

// rotationEnds are all interruptions of applies that make these changes to machines; a selection unless every test
// is requested.
func rotationEnds(changes []int, most int) []rotationEnd {
	var all, some []rotationEnd

	ends := []end{killed, providerKilled, lost, interrupted}

	for apply, count := range changes {
		for after := range count + 1 {
			for _, how := range ends {
				all = append(all, rotationEnd{how, apply, after})
			}
		}
	}

	if points := len(all) / len(ends); !testenv.Everything() && points > most {
		for i := range most {
			point := (2*i + 1) * points / (2 * most)
			some = append(some, all[point*len(ends)+i%len(ends)])
		}

		return some
	}

	return all
}

// Wherever an apply of a rotation is interrupted, a refresh knows every machine, and the next applies finish the
// rotation. Credentials from before an apply still work after it, where workers depend on their control planes.
func TestRotation_goesOnWhereverAnApplyEnds(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		layout          lifeLayout
		planes, workers int
		ends            int
	}{{wholeLayout, 3, 1, 2}, {pairLayout, 1, 1, 1}, {machinesLayout, 2, 1, 1}} {
		t.Run(string(c.layout), func(t *testing.T) {
			t.Parallel()

			r := newRotationLife(t, c.layout, c.planes, c.workers)
			r.config.Turn = turnOf("undisturbed")
			before := r.bundle()
			changes := r.settle()
			t.Logf("changes of each apply: %v", changes)
			sitetest.ExpectRefused(t, r.lifeSite.Site, before)

			for i, at := range rotationEnds(changes, c.ends) {
				t.Logf("%+v", at)

				r.config.Turn = turnOf(fmt.Sprint(i))

				for range at.Apply {
					r.apply(r.plan(lifeOptions{}), never, 0)
				}

				r.apply(r.plan(lifeOptions{}), at.How, at.After)
				r.settle()
			}
		})
	}
}

// Each apply takes the secrets one step further, and machines follow even when several applies were interrupted
// early. A refresh recognizes each machine, and no two machines wait for each other.
func TestRotation_goesOnAfterAppliesThatEndEarly(t *testing.T) {
	t.Parallel()

	for i, layout := range []lifeLayout{wholeLayout, pairLayout} {
		t.Run(string(layout), func(t *testing.T) {
			t.Parallel()

			r := newRotationLife(t, layout, 3, 1)
			r.ahead = true

			for turn, ends := range [][]rotationEnd{
				{{How: killed, After: 1}, {How: killed, After: 1}},
				{{How: interrupted, After: 1}, {How: killed, After: 2}, {How: killed, After: 1}},
				{{How: lost, After: 1}, {How: killed, After: 1}, {How: lost, After: 1}, {How: killed, After: 1}},
				{{How: killed, After: 1}, {How: killed, After: 3}, {How: never}, {How: killed, After: 1}, {How: killed, After: 2}},
			} {
				if turn%2 != i && !testenv.Everything() {
					continue
				}

				before := r.bundle()
				r.config.Turn = turnOf(fmt.Sprint(turn))

				for _, at := range ends {
					r.apply(r.plan(lifeOptions{}), at.How, at.After)
				}

				r.settle()
				sitetest.ExpectRefused(t, r.lifeSite.Site, before)
			}
		})
	}
}

// An apply is interrupted before a machine has the next key, and the next plan rotates another key: it forecasts for
// the machines what its apply does.
func TestRotation_ofAnotherKeyAfterAnEarlyEnd(t *testing.T) {
	t.Parallel()

	r := newRotationLife(t, wholeLayout, 1, 0)
	r.config.Turn = lifeTurn{"first"}
	r.apply(r.plan(lifeOptions{}), interrupted, 0)

	r.config.Turn[2] = "second"
	r.applied(r.plan(lifeOptions{}))
	r.settle()

	if rotated := r.bundle().Rotated(); !slices.Equal(rotated, []rotation.Kind{rotation.TalosCA, rotation.ClusterToken}) {
		t.Errorf("turned over were %v", rotated)
	}
}

// A cluster can be destroyed wherever its rotation was interrupted.
func TestRotation_isDestroyedWhereverAnApplyEnded(t *testing.T) {
	t.Parallel()

	for _, at := range rotationEnds([]int{2, 2, 2}, 3) {
		t.Run(fmt.Sprintf("%+v", at), func(t *testing.T) {
			t.Parallel()

			r := newRotationLife(t, wholeLayout, 1, 1)
			r.config.Turn = turnOf("1")

			for range at.Apply {
				r.apply(r.plan(lifeOptions{}), never, 0)
			}

			r.apply(r.plan(lifeOptions{}), at.How, at.After)
			r.apply(r.plan(lifeOptions{Destroy: true}), never, 0)
			r.ExpectBlank(t)
		})
	}
}

// Machines that are imported during a rotation continue it, whichever of the secrets the file has.
func TestRotation_goesOnAfterAnImport(t *testing.T) {
	t.Parallel()

	for _, layout := range []lifeLayout{wholeLayout, machinesLayout} {
		t.Run(string(layout), func(t *testing.T) {
			t.Parallel()

			r := newRotationLife(t, layout, 2, 1)
			r.config.Turn = turnOf("1")
			r.apply(r.plan(lifeOptions{}), never, 0)

			before := r.text()
			r.apply(r.plan(lifeOptions{}), killed, 1)

			for i, file := range []string{before, r.text()} {
				kept := lifeState{{Address: lifeSecrets}: r.state[lifeKey{Address: lifeSecrets}]}
				walk := newLifeWalk(t, kept)

				for _, b := range r.blocks(r.config)[1:] {
					walk.importObject(t.Context(), b, r.importID(t, r.config, b.Address, r.saved(t, file)))
				}

				if walk.failed() {
					t.Fatalf("import with file %d: %v\n%s", i, walk.Bugs, tftest.Show(walk.Diagnostics))
				}

				r.state = walk.state
				r.plan(lifeOptions{})
			}

			r.settle()
		})
	}
}

// Machines join during and after a rotation.
func TestRotation_machinesJoin(t *testing.T) {
	t.Parallel()

	for applies := 1; applies <= 3; applies++ {
		if applies != 2 && !testenv.Everything() {
			continue
		}

		t.Run(fmt.Sprint("after apply ", applies), func(t *testing.T) {
			t.Parallel()

			r := newRotationLife(t, wholeLayout, 1, 2)
			r.config.Workers = r.config.Workers[:1]
			r.settle()
			r.config.Turn = turnOf("1")

			for range applies {
				r.apply(r.plan(lifeOptions{}), never, 0)
			}

			r.config.Workers = []int{0, 1}
			r.settle()
		})
	}
}

// text is the secrets in state as a file.
func (r *rotationLife) text() string {
	return tftest.Text(r.t, r.state[lifeKey{Address: lifeSecrets}].Value, "bundle")
}
