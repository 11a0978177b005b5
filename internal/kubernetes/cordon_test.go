package kubernetes_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/nodes"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

const (
	ourMark   = "talosop.dev/cordoned"
	talosMark = "talos.dev/cordoned"
)

// Only the client that made a cordon undoes it.
func TestCordon_andUncordon(t *testing.T) {
	t.Parallel()
	onClusters(t, testCordonAndUncordon)
}

func testCordonAndUncordon(t *testing.T, l *living) {
	t.Helper()

	type state struct{ unschedulable, ours, talos bool }

	tests := map[string]struct{ before, cordoned, uncordoned state }{
		"free":                       {state{}, state{unschedulable: true, ours: true}, state{}},
		"ours":                       {state{true, true, false}, state{true, true, false}, state{}},
		"of-others":                  {state{true, false, false}, state{true, false, false}, state{true, false, false}},
		"talos":                      {state{true, false, true}, state{true, false, true}, state{true, false, true}},
		"ours-uncordoned-by-others":  {state{false, true, false}, state{true, true, false}, state{}},
		"ours-uncordoned-then-talos": {state{true, true, true}, state{true, true, true}, state{true, false, true}},
		"talos-forgot-its-mark":      {state{false, false, true}, state{true, true, true}, state{true, false, true}},
	}

	client := l.client(t)

	read := func(t *testing.T, name string) state {
		t.Helper()

		n, err := l.api.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		check(t, err)

		_, ours := n.Annotations[ourMark]
		_, talos := n.Annotations[talosMark]

		if n.Annotations["kept"] != "yes" || len(n.Spec.Taints) > 1 {
			t.Errorf("the node is changed otherwise: %v %v", n.Annotations, n.Spec.Taints)
		}

		return state{n.Spec.Unschedulable, ours, talos}
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, action := range []string{"cordon", "uncordon"} {
				node := action + "-" + name
				l.node(t, node, func(n *corev1.Node) {
					n.Spec.Unschedulable = test.before.unschedulable
					n.Annotations["kept"] = "yes"

					if test.before.ours {
						n.Annotations[ourMark] = "2026-01-02T03:04:05Z"
					}

					if test.before.talos {
						n.Annotations[talosMark] = "true"
					}
				})
			}

			for range 2 { // the second time changes nothing
				check(t, client.Cordon(t.Context(), "cordon-"+name))

				if got := read(t, "cordon-"+name); got != test.cordoned {
					t.Errorf("cordoned %+v, want %+v", got, test.cordoned)
				}
			}

			observed := client.Observe(t.Context())
			i := slices.IndexFunc(observed.Nodes, func(n kubestate.Node) bool { return n.Name == "cordon-"+name })

			if i < 0 || observed.Nodes[i].Cordoned != test.cordoned.ours ||
				observed.Nodes[i].Unschedulable != test.cordoned.unschedulable {
				t.Errorf("observed %+v at once, want %+v", observed, test.cordoned)
			}

			for range 2 {
				check(t, client.Uncordon(t.Context(), "cordon-"+name))

				if got := read(t, "cordon-"+name); got != test.uncordoned {
					t.Errorf("uncordoned %+v, want %+v", got, test.uncordoned)
				}
			}

			// Without an earlier cordon, too, only ours is undone.
			want := state{test.before.unschedulable && (!test.before.ours || test.before.talos), false, test.before.talos}

			check(t, client.Uncordon(t.Context(), "uncordon-"+name))

			if got := read(t, "uncordon-"+name); got != want {
				t.Errorf("uncordoned %+v without cordoning before, want %+v", got, want)
			}
		})
	}

	t.Run("gone", func(t *testing.T) {
		check(t, client.Uncordon(t.Context(), "nobody"))

		if err := client.Cordon(t.Context(), "nobody"); err == nil || !strings.Contains(err.Error(), "cordon node nobody") {
			t.Errorf("cordon of a node that does not exist: %v", err)
		}
	})
}

// A cordoned node shows since when it is cordoned, and for which run.
func TestCordon_saysSinceWhenAndForWhom(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	node := corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}}

	server := ca.apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			check(t, json.NewDecoder(r.Body).Decode(&node))
		}

		answer(w, http.StatusOK, node)
	})

	client := ca.clientOf(t, server.URL, server, func(o *api.Options) { o.Name = `workers "batch"` })
	check(t, client.Cordon(t.Context(), "a"))

	got := nodes.Of(&node)
	if !got.HeldBack() || time.Since(got.CordonedAt) > time.Hour || got.CordonedBy != `workers "batch"` {
		t.Errorf("the node says %+v", got)
	}

	node.Spec.Unschedulable = false // kubectl uncordon
	if got := nodes.Of(&node); got.HeldBack() || !got.Cordoned {
		t.Errorf("after it was uncordoned the node says %+v", got)
	}
}

// What is noted of a configuration that waits for the next boot ends with the boot. A reset is noted with its time.
func TestNoteStaged_endsWithTheBoot(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	node := corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	node.Status.NodeInfo.BootID = "one"

	var writes int

	server := ca.apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			writes++

			check(t, json.NewDecoder(r.Body).Decode(&node)) // a map is added to, and what is null in it is null after
		}

		answer(w, http.StatusOK, node)
	})

	client := ca.clientOf(t, server.URL, server, nil)

	for range 2 {
		check(t, client.NoteStaged(t.Context(), "a", true))
	}

	if !nodes.Of(&node).Staged || writes != 1 {
		t.Errorf("after %d writes the node says %+v", writes, nodes.Of(&node))
	}

	node.Status.NodeInfo.BootID = "two"

	if nodes.Of(&node).Staged {
		t.Error("the note outlived the boot")
	}

	check(t, client.NoteStaged(t.Context(), "a", true))

	if !nodes.Of(&node).Staged {
		t.Error("what waits in the next boot was not noted")
	}

	check(t, client.NoteStaged(t.Context(), "a", false))

	if nodes.Of(&node).Staged {
		t.Error("the note was not taken off")
	}

	began := time.Now().Truncate(time.Second)
	check(t, client.NoteReset(t.Context(), "a"))

	if at := nodes.Of(&node).ResetAt; at.Before(began) {
		t.Errorf("the reset is noted at %s", at)
	}
}

// If another client cordons a node between our read and our write, the cordon is theirs.
func TestCordon_thatLostARace(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)

	var reads, writes atomic.Int32

	server := ca.apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			writes.Add(1)
			refusal(409, metav1.StatusReasonConflict)(w, r)

			return
		}

		answer(w, http.StatusOK, corev1.Node{
			TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "worker-1"},
			Spec: corev1.NodeSpec{Unschedulable: reads.Add(1) > 1},
		})
	})

	check(t, ca.client(t, server.URL).Cordon(t.Context(), "worker-1"))

	if writes.Load() != 1 || reads.Load() != 2 {
		t.Errorf("%d writes and %d reads, want one write and a second look", writes.Load(), reads.Load())
	}
}

// An API that does not answer is the caller's to wait for.
func TestCordon_reportsAnAPIThatIsGone(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	cert, key := ca.issue(t)

	client, err := kubernetes.New(api.Options{
		Endpoint: "https://" + closedPort(t), CA: ca.pem(), Cert: cert, Key: key, Call: time.Hour,
	})
	check(t, err)

	for name, err := range map[string]error{"cordon": client.Cordon(t.Context(), "a"),
		"uncordon": client.Uncordon(t.Context(), "a")} {
		if err == nil || !strings.Contains(err.Error(), name+" node a") || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// How far the soak of a canary node is survives the run that began it.
func TestNoteSoak_isReadBack(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	node := corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	writes := 0
	server := ca.apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			var patch corev1.Node

			writes++

			check(t, json.NewDecoder(r.Body).Decode(&patch))

			node.Annotations = patch.Annotations
			if node.Annotations["talosop.dev/canary-soak"] == "" {
				node.Annotations = nil
			}
		}

		answer(w, http.StatusOK, node)
	})
	client := ca.clientOf(t, server.URL, server, nil)

	for _, want := range []kubestate.Soak{{Due: true}, {Due: true, Since: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)},
		{Due: true}, {}} {
		for range 2 {
			check(t, client.NoteSoak(t.Context(), "a", want))
		}

		if got := nodes.Of(&node).Soak; got != want {
			t.Errorf("the node says %+v, want %+v", got, want)
		}
	}

	if writes != 4 {
		t.Errorf("the node was written %d times", writes)
	}
}
