package kubernetes_test

import (
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgo "k8s.io/client-go/kubernetes"

	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

const ownerMark = "talosop.dev/owner"

func TestOwn_onClusters(t *testing.T) {
	t.Parallel()
	onClusters(t, testOwn)
}

// A mark counts on the node that it was written for, as long as that node is the same object, and nowhere else.
func testOwn(t *testing.T, l *living) {
	t.Helper()

	client := l.client(t)

	for _, node := range []string{"marked", "copied", "forged", "made-again", "taken-over", "taken-off"} {
		l.node(t, node, nil)
	}

	for node, owners := range map[string][]string{
		"marked": {"mine", "mine"}, "made-again": {"mine"}, "taken-over": {"theirs", "mine"}, "taken-off": {"mine", "", ""},
	} {
		for _, owner := range owners {
			check(t, client.Own(t.Context(), node, owner))
		}
	}

	l.annotate(t, l.api, "copied", l.ownerMark(t, "marked"))
	l.annotate(t, l.api, "forged", "mine")

	mark := l.ownerMark(t, "made-again")
	check(t, l.api.CoreV1().Nodes().Delete(t.Context(), "made-again", metav1.DeleteOptions{}))
	l.node(t, "made-again", func(n *corev1.Node) { n.Annotations[ownerMark] = mark })

	want := kubestate.State{Owners: map[string]string{"marked": "mine", "taken-over": "mine"},
		Unproven: map[string]string{"copied": "mine", "forged": "mine", "made-again": "mine"}}

	eventually(t, func() error {
		got := client.Observe(t.Context())
		if fmt.Sprint(got.Owners, got.Unproven) != fmt.Sprint(want.Owners, want.Unproven) {
			return fmt.Errorf("owners %v and unproven %v, want %v and %v", got.Owners, got.Unproven, want.Owners, want.Unproven)
		}

		return nil
	})

	// A client of another cluster's secrets, and one without a key, believe none of them.
	for name, keys := range map[string][][]byte{"other keys": {make([]byte, 32)}, "no key": nil} {
		options := l.options
		options.OwnerKeys = keys

		other := (&living{options: options}).client(t)
		if got := other.Observe(t.Context()); len(got.Owners) > 0 || len(got.Unproven) != 5 {
			t.Errorf("%s: owners %v, unproven %v", name, got.Owners, got.Unproven)
		}
	}
}

// A kubelet can write, by the Node authorizer, NodeRestriction and RBAC of a real API server, the annotations of
// its own node, and neither those of another node nor the Lease.
func TestKubelet_canWriteItsOwnMarkOnly(t *testing.T) {
	t.Parallel()

	l := newLiving(t, assets(t))
	bundle, err := sharedBundle()
	check(t, err)

	credentials, err := bundle.KubernetesClient("system:node:own", []string{"system:nodes"}, time.Hour)
	check(t, err)

	config := l.config()
	config.TLSClientConfig.CertData, config.TLSClientConfig.KeyData = credentials.Certificate, credentials.Key
	kubelet, err := clientgo.NewForConfig(config)
	check(t, err)

	l.node(t, "own", nil)
	l.node(t, "other", nil)

	client := l.client(t)
	check(t, client.Own(t.Context(), "own", "mine"))
	check(t, client.Own(t.Context(), "other", "mine"))

	_, release, err := l.lock(t, "holder", time.Minute).Acquire(within(t, time.Minute), nil)
	check(t, err)
	t.Cleanup(release)

	l.annotate(t, kubelet, "own", "theirs")

	nodes, leases := kubelet.CoreV1().Nodes(), kubelet.CoordinationV1().Leases("kube-system")
	lease := l.lease(t)

	for what, try := range map[string]func() error{
		"the mark of another node": func() error {
			_, err := nodes.Patch(t.Context(), "other", types.MergePatchType, markPatch("theirs"), metav1.PatchOptions{})

			return err
		},
		"delete its own node": func() error { return nodes.Delete(t.Context(), "own", metav1.DeleteOptions{}) },
		"the Lease": func() error {
			_, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{})

			return err
		},
		"delete the Lease": func() error { return leases.Delete(t.Context(), "talosop", metav1.DeleteOptions{}) },
		"make a Lease": func() error {
			_, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "talosop-backup"}},
				metav1.CreateOptions{})

			return err
		},
	} {
		if err := try(); !apierrors.IsForbidden(err) {
			t.Errorf("a kubelet writes %s: %v", what, err)
		}
	}

	eventually(t, func() error {
		if got := client.Observe(t.Context()); got.Owners["own"] != "" || got.Unproven["own"] != "theirs" ||
			got.Owners["other"] != "mine" {
			return fmt.Errorf("owners %v, unproven %v", got.Owners, got.Unproven)
		}

		return nil
	})
}

func (l *living) ownerMark(t *testing.T, node string) string {
	t.Helper()

	n, err := l.api.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	check(t, err)

	return n.Annotations[ownerMark]
}

// annotate writes an owner mark by hand.
func (l *living) annotate(t *testing.T, api clientgo.Interface, node, mark string) {
	t.Helper()

	_, err := api.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, markPatch(mark), metav1.PatchOptions{})
	check(t, err)
}

func markPatch(mark string) []byte {
	return fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, ownerMark, mark)
}
