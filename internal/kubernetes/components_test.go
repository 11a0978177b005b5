package kubernetes_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/upgrade"
)

// inspected is a control plane with the errors in the logs of its components.
type inspected struct {
	resources state.State
	errors    map[kubenames.Component]string
}

func (i inspected) Resources(context.Context) (state.State, func(), error) {
	return i.resources, func() {}, nil
}

func (i inspected) LastError(_ context.Context, component kubenames.Component) (string, error) {
	return i.errors[component], nil
}

// A component that does not work is found by what Talos knows, and an API server that is not ready by its own checks.
func TestFailingComponents(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	server := ca.apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || !r.URL.Query().Has("verbose") {
			t.Errorf("asked for %s", r.URL)
		}

		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, "[+]ping ok\n[-]informer-sync failed: reason withheld\n[-]etcd failed: reason withheld\n"+
			"readyz check failed\n")
	})

	at, err := url.Parse(server.URL)
	check(t, err)

	client := ca.clientOf(t, server.URL, server, func(o *api.Options) { o.Port = at.Port() })

	kubelet := v1alpha1.NewService("kubelet")
	kubelet.TypedSpec().Running = true

	addresses := network.NewNodeAddress(network.NamespaceName, network.NodeAddressDefaultID)
	addresses.TypedSpec().Addresses = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}

	pod := func(component string, state map[string]any) resource.Resource {
		r := k8s.NewStaticPodStatus(k8s.NamespaceName, "kube-system/"+component+"-cp-1")
		r.TypedSpec().PodStatus = map[string]any{"phase": "Running", "containerStatuses": []any{
			map[string]any{"name": component, "state": state, "restartCount": 3}}}

		return r
	}
	runs := map[string]any{"running": map[string]any{}}
	crashes := map[string]any{"waiting": map[string]any{"reason": "CrashLoopBackOff"}}

	for name, test := range map[string]struct {
		resources []resource.Resource
		errors    map[kubenames.Component]string
		want      []upgrade.Problem
	}{
		"kubelet": {[]resource.Resource{pod("kube-apiserver", crashes)},
			map[kubenames.Component]string{kubenames.Kubelet: "unknown flag: --gone"},
			[]upgrade.Problem{{Code: "component_not_ready", Object: "kubelet on cp-1",
				Reason: "its service does not run; its log: unknown flag: --gone"}}},
		"crash": {[]resource.Resource{kubelet, addresses, pod("kube-apiserver", crashes), pod("other", crashes)},
			map[kubenames.Component]string{kubenames.KubeAPIServer: "group version a/v1 that has not been registered"},
			[]upgrade.Problem{{Code: "component_not_ready", Object: "kube-apiserver on cp-1",
				Reason: "container kube-apiserver is waiting: CrashLoopBackOff; its log: group version a/v1 that has not been " +
					"registered"}}},
		"not ready": {
			[]resource.Resource{kubelet, addresses, pod("kube-apiserver", runs), pod("kube-scheduler", crashes)}, nil,
			[]upgrade.Problem{
				{Code: "component_not_ready", Object: "kube-apiserver on cp-1", Reason: "it is not ready: informer-sync, etcd"},
				{Code: "component_not_ready", Object: "kube-scheduler on cp-1",
					Reason: "container kube-scheduler is waiting: CrashLoopBackOff"},
			}},
	} {
		resources := state.WrapCore(namespaced.NewState(inmem.Build))
		for _, r := range test.resources {
			check(t, resources.Create(t.Context(), r.DeepCopy()))
		}

		got, err := client.FailingComponents(within(t, time.Minute), "cp-1", inspected{resources, test.errors})
		check(t, err)

		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: problems differ (-want +got):\n%s", name, diff)
		}
	}
}
