package talos

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	cosi "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	"github.com/cosi-project/runtime/pkg/state/protobuf/server"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	"google.golang.org/grpc"

	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// kubeletOf are the resources about a machine's kubelet, as Talos writes them.
type kubeletOf struct {
	t    *testing.T
	held state.State
}

func newKubeletOf(t *testing.T) (*kubeletOf, *Machine) {
	t.Helper()

	k := &kubeletOf{t, state.WrapCore(namespaced.NewState(inmem.Build))}

	return k, served(t, func(s *grpc.Server) { cosi.RegisterStateServer(s, server.NewState(k.held)) })
}

func (k *kubeletOf) check(err error) {
	k.t.Helper()

	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *kubeletOf) wants(image string) *kubeletOf {
	k.t.Helper()
	k.check(safe.StateModify(k.t.Context(), k.held, k8s.NewKubeletSpec(k8s.NamespaceName, k8s.KubeletID),
		func(r *k8s.KubeletSpec) error {
			r.TypedSpec().Image = image

			return nil
		}))

	return k
}

func (k *kubeletOf) runs(healthy bool) *kubeletOf {
	k.t.Helper()
	k.check(safe.StateModify(k.t.Context(), k.held, v1alpha1.NewService(kubeletServiceID),
		func(r *v1alpha1.Service) error {
			*r.TypedSpec() = v1alpha1.ServiceSpec{Running: true, Healthy: healthy, Unknown: !healthy}

			return nil
		}))

	return k
}

func (k *kubeletOf) stops() *kubeletOf {
	k.t.Helper()
	k.check(k.held.Destroy(k.t.Context(), v1alpha1.NewService(kubeletServiceID).Metadata()))

	return k
}

// TestAwaitKubelet_ignoresTheOneBefore: a kubelet that was running and healthy before is not the awaited one,
// whatever its version.
func TestAwaitKubelet_ignoresTheOneBefore(t *testing.T) {
	t.Parallel()

	const (
		before, after = "ghcr.io/siderolabs/kubelet:v1.36.1", "ghcr.io/siderolabs/kubelet:v1.36.1-slim"
		another       = "registry.example.org/kubelet:v1.36.1"
		stale         = "has not restarted the service yet"
	)

	tests := map[string]struct {
		have func(*kubeletOf)
		want string
	}{
		"nothing is there": {func(*kubeletOf) {}, "the machine has no " + k8s.KubeletSpecType},
		"another image is wanted": {func(k *kubeletOf) { k.wants(before).runs(true) }, "Talos is still configured with " +
			"" + before},
		"not restarted": {func(k *kubeletOf) { k.wants(before).runs(true).wants(after) }, stale},
		"healthy again, not restarted": {func(k *kubeletOf) { k.wants(before).runs(false).wants(after).runs(true) },
			stale},
		"restarted for another one": {
			func(k *kubeletOf) { k.wants(before).runs(true).wants(another).stops().runs(true).wants(after) }, stale},
		"stopped": {func(k *kubeletOf) { k.wants(before).runs(true).wants(after).stops() },
			"the service is not running"},
		"restarted, not healthy": {
			func(k *kubeletOf) { k.wants(before).runs(true).wants(after).stops().runs(false) }, "not healthy"},
		"restarted": {
			func(k *kubeletOf) { k.wants(before).runs(true).wants(after).stops().runs(false).runs(true) }, ""},
		"restarted once more": {
			func(k *kubeletOf) { k.wants(before).runs(true).wants(after).stops().runs(true).stops().runs(true) }, ""},
		"booted with it":                  {func(k *kubeletOf) { k.wants(after).runs(true) }, ""},
		"booted with it, the clock wrong": {func(k *kubeletOf) { k.runs(true).wants(after) }, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			k, m := newKubeletOf(t)

			if test.want != "" {
				m.fleet.options.Timeouts.Kubelet = time.Second
			}

			test.have(k)
			// the connection also takes time
			k.check(m.read(t.Context(), func(context.Context, *session) error { return nil }))

			switch err := m.AwaitKubelet(t.Context(), after); {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (!errors.Is(err, ErrInProgress) || wait.IsPermanent(err) ||
				!strings.Contains(err.Error(), test.want)):
				t.Errorf("error %v, want one that may be repeated with %q", err, test.want)
			}
		})
	}
}
