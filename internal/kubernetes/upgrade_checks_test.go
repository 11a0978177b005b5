package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/upgrade"
)

// talosWith is the resources of Talos on a machine whose components have these arguments.
func talosWith(t *testing.T, arguments map[string][]string) state.State {
	t.Helper()

	resources := state.WrapCore(namespaced.NewState(inmem.Build))

	for component, args := range arguments {
		if component == k8s.KubeletID {
			spec := k8s.NewKubeletSpec(k8s.NamespaceName, k8s.KubeletID)
			spec.TypedSpec().Args = args
			check(t, resources.Create(t.Context(), spec))

			continue
		}

		pod := k8s.NewStaticPod(k8s.NamespaceName, component)
		pod.TypedSpec().Pod = map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"command": args}}}}
		check(t, resources.Create(t.Context(), pod))
	}

	return resources
}

var errAsleep = errors.New("the machine is asleep")

func TestUpgradeChecks_findRemovedAPIsAndFlags(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	u := newUpgrading()
	own := ca.apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			u.serve(w, r)

			return
		}

		if accept := r.Header.Get("Accept"); accept != "text/plain" {
			t.Errorf("metrics were asked for as %s", accept)
		}

		fmt.Fprint(w, `# HELP apiserver_requested_deprecated_apis [STABLE] Gauge of deprecated APIs that have been requested
# TYPE apiserver_requested_deprecated_apis gauge
apiserver_requested_deprecated_apis{group="",removed_release="",resource="endpoints",subresource="",version="v1"} 1
apiserver_requested_deprecated_apis{group="flowcontrol.apiserver.k8s.io",removed_release="1.36",resource="flowschemas",subresource="status",version="v1beta3"} 1
apiserver_requested_deprecated_apis{group="policy",removed_release="1.34",resource="gone",subresource="",version="v1beta1"} 1
apiserver_requested_deprecated_apis{group="batch",removed_release="1.37",resource="cronjobs",subresource="",version="v1beta1"} 1
apiserver_requested_deprecated_apis_total{group="x",removed_release="1.36",resource="x",subresource="",version="v1"} 1
`)
	})

	machines := map[string]state.State{
		"cp-1": talosWith(t, map[string][]string{
			k8s.APIServerID: {"kube-apiserver", "--feature-gates=HonorPVReclaimPolicy=true,Other=true",
				"--enable-admission-plugins=NodeRestriction"},
			k8s.ControllerManagerID: {"kube-controller-manager"},
			k8s.KubeletID:           {"--pod-infra-container-image=pause"},
		}),
		"cp-2": talosWith(t, map[string][]string{
			k8s.APIServerID: {"kube-apiserver", "--feature-gates=HonorPVReclaimPolicy=true"}}),
		"worker-1": talosWith(t, map[string][]string{k8s.KubeletID: {"--pod-infra-container-image=pause"}}),
	}
	of := func(_ context.Context, node string) (state.State, error) {
		if s := machines[node]; s != nil {
			return s, nil
		}

		return nil, errAsleep
	}

	found, err := ca.clientOf(t, own.URL, own, nil).UpgradeChecks(within(t, time.Minute),
		[][2]string{{"v1.34.7", "v1.35.4"}, {"v1.35.4", "v1.36.3"}}, []string{"cp-2", "cp-1", "cp-3"}, []string{"worker-1"},
		of)

	// A machine that does not answer hides nothing of the others.
	if !errors.Is(err, errAsleep) || err.Error() != "check the components on cp-3: the machine is asleep" {
		t.Errorf("error %v", err)
	}

	want := []string{
		"feature gate HonorPVReclaimPolicy of kube-apiserver on cp-1, cp-2 is removed in Kubernetes 1.36",
		"flag --pod-infra-container-image of kubelet on cp-1, worker-1 is removed in Kubernetes 1.35",
		"flowschemas.v1beta3.flowcontrol.apiserver.k8s.io/status is removed in Kubernetes 1.36 and was requested by a client",
	}
	if got := found.Lines(); !slices.Equal(got, want) {
		t.Errorf("found:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	if _, err := ca.clientOf(t, own.URL, own, nil).UpgradeChecks(t.Context(), [][2]string{{"v1.35.4", "edge"}}, nil, nil,
		of); err == nil {
		t.Error("a version that is none is no error")
	}
}

// Without the API of the cluster the machines are still asked.
func TestUpgradeChecks_withoutTheAPI(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	machine := talosWith(t, map[string][]string{
		k8s.APIServerID: {"kube-apiserver", "--enable-admission-plugins=A,PodSecurityPolicy"}})

	found, err := ca.client(t, "https://"+closedPort(t)).UpgradeChecks(within(t, time.Minute),
		[][2]string{{"1.24.0", "1.25.0"}}, []string{"cp-1"}, nil,
		func(context.Context, string) (state.State, error) { return machine, nil })
	for _, want := range []string{"list the control planes: ", "list objects of the APIs that Kubernetes 1.25 removes: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}

	want := upgrade.RemovedSetting{
		Kind: "admission plugin", Name: "PodSecurityPolicy", Component: "kube-apiserver", Nodes: []string{"cp-1"},
		RemovedIn: "1.25",
	}
	if len(found.Settings) != 1 || found.Settings[0].String() != want.String() ||
		len(found.Resources)+len(found.Requests) != 0 {
		t.Errorf("found %+v, want %+v", found, want)
	}
}

// The objects of an API that is removed are named, but not all of them.
func TestUpgradeChecks_namesObjects(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	u := newUpgrading()
	own := ca.apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/metrics":
		case "/apis/policy/v1beta1/podsecuritypolicies":
			list := map[string]any{"kind": "PodSecurityPolicyList", "apiVersion": "policy/v1beta1"}
			items := []any{}

			for i := range 12 {
				if r.URL.Query().Get("limit") == fmt.Sprint(i) {
					list["metadata"] = map[string]any{"continue": "more"}

					break
				}

				items = append(items, map[string]any{
					"kind": "PodSecurityPolicy", "apiVersion": "policy/v1beta1",
					"metadata": map[string]any{"name": fmt.Sprintf("p%02d", i), "namespace": "default"},
				})
			}

			list["items"] = items
			answer(w, http.StatusOK, list)
		default:
			u.serve(w, r)
		}
	})

	found, err := ca.clientOf(t, own.URL, own, nil).UpgradeChecks(
		within(t, time.Minute), [][2]string{{"v1.24.0", "v1.25.0"}, {"v1.25.0", "v1.26.0"}}, nil, nil, nil)
	check(t, err)

	want := "podsecuritypolicies.v1beta1.policy is removed in Kubernetes 1.25 and has 12 objects: default/p00, " +
		"default/p01, default/p02, default/p03, default/p04, default/p05, default/p06, default/p07, default/p08, " +
		"default/p09 and 2 more"
	if got := found.Lines(); len(got) != 1 || got[0] != want {
		t.Errorf("found %q, want %q", got, want)
	}
}

// A real API server serves none of the APIs that were removed before it, and the metric as
// it was looked up.
func TestUpgradeChecks_onAnAPIServer(t *testing.T) {
	t.Parallel()

	l := newLiving(t, assets(t))

	// It counts this one as deprecated; the version of its removal is unknown.
	_, err := l.api.CoreV1().Endpoints("default").List(t.Context(), metav1.ListOptions{})
	check(t, err)

	raw, err := l.api.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	check(t, err)

	if !strings.Contains(string(raw),
		`apiserver_requested_deprecated_apis{group="",removed_release="",resource="endpoints"`) {
		t.Error("the API server does not have the metric as it was looked up")
	}

	found, err := l.client(t).UpgradeChecks(within(t, time.Minute),
		[][2]string{{"v1.24.0", "v1.25.0"}, {"v1.31.0", "v1.32.0"}}, nil, nil, nil)
	check(t, err)

	if lines := found.Lines(); len(lines) != 0 {
		t.Errorf("found %q in an empty cluster", lines)
	}
}

func TestObserve_staticPods(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	u := newUpgrading()
	server := ca.apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/kube-system/pods" {
			u.serve(w, r)

			return
		}

		other := u.pod.DeepCopy()
		other.Name = "not-a-mirror-pod"
		answer(w, http.StatusOK, corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
			Items: []corev1.Pod{*u.pod, *other}})
	})

	got := ca.clientOf(t, server.URL, server, func(o *api.Options) { o.StaticPods = true }).Observe(t.Context())
	if len(got.Nodes) != 1 || len(got.Nodes[0].StaticPods) != 1 {
		t.Fatalf("state %+v", got)
	}

	if pod := got.Nodes[0].StaticPods["kube-apiserver"]; pod.Image != newAPIServer || !pod.Ready {
		t.Errorf("pod %+v", pod)
	}
}
