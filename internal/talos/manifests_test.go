package talos

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	cosi "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	"github.com/cosi-project/runtime/pkg/state/protobuf/server"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"google.golang.org/grpc"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// withResources is a machine that has these resources and nothing else.
func withResources(t *testing.T, resources ...resource.Resource) *Machine {
	t.Helper()

	held := state.WrapCore(namespaced.NewState(inmem.Build))

	for _, r := range resources {
		if err := held.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}

	return served(t, func(s *grpc.Server) { cosi.RegisterStateServer(s, server.NewState(held)) })
}

func manifest(id string, objects ...map[string]any) *k8s.Manifest {
	r := k8s.NewManifest(k8s.ControlPlaneNamespaceName, id)
	for _, object := range objects {
		r.TypedSpec().Items = append(r.TypedSpec().Items, k8s.SingleManifest{Object: object})
	}

	return r
}

func object(kind, namespace, name string, spec map[string]any) map[string]any {
	return map[string]any{
		"kind": kind, "metadata": map[string]any{"name": name, "namespace": namespace}, "spec": spec,
	}
}

// runs is the spec of a DaemonSet with one container.
func runs(image string) map[string]any {
	containers := []any{map[string]any{"name": "main", "image": image}}

	return map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}}
}

func rendered(proxy bool) *k8s.BootstrapManifestsConfig {
	r := k8s.NewBootstrapManifestsConfig()
	r.TypedSpec().ProxyEnabled = proxy

	return r
}

func extras(list ...k8s.ExtraManifest) *k8s.ExtraManifestsConfig {
	r := k8s.NewExtraManifestsConfig()
	r.TypedSpec().ExtraManifests = list

	return r
}

func TestManifests_onceTheyAreComplete(t *testing.T) {
	t.Parallel()

	const (
		older  = "registry.k8s.io/kube-proxy:v1.35.2"
		newer  = "registry.k8s.io/kube-proxy:v1.36.2"
		planes = "version: v1alpha1\nmachine: {type: controlplane}\ncluster:\n  network: {cni: {name: none}}\n"
	)

	var (
		token = manifest("00-kubelet-bootstrapping-token", object("Secret", "kube-system", "bootstrap", nil))
		proxy = manifest("10-kube-proxy",
			object("DaemonSet", "kube-system", "kube-proxy", runs(newer)),
			object("ServiceAccount", "kube-system", "kube-proxy", nil))
		inline = k8s.ExtraManifest{Name: "motd", Priority: "99", InlineManifest: "{}"}
		remote = k8s.ExtraManifest{Name: "https://me:sesame@a.example/cni.yaml?key=sesame", Priority: "05",
			URL: "https://me:sesame@a.example/cni.yaml?key=sesame"}
		loaded = []resource.Resource{
			manifest("99-motd", object("ConfigMap", "default", "motd", nil)),
			manifest("05-"+remote.Name, object("DaemonSet", "kube-system", "cni", runs("a.example/cni:v1"))),
		}
	)

	tests := map[string]struct {
		resources []resource.Resource
		image     string
		// configuration is the wanted one, where it matters.
		configuration []byte
		// want are the objects' kinds and names; without them it is not done, and says this.
		want []string
		says string
	}{
		"rendered": {
			resources: []resource.Resource{proxy, token, rendered(true), extras()}, image: newer,
			want: []string{"Secret bootstrap", "DaemonSet kube-proxy", "ServiceAccount kube-proxy"},
		},
		"with extra ones": {
			resources: append(slices.Clone(loaded), proxy, token, rendered(true), extras(inline, remote, remote)), image: newer,
			want: []string{"Secret bootstrap", "DaemonSet cni", "DaemonSet kube-proxy", "ServiceAccount kube-proxy",
				"ConfigMap motd"},
		},
		"whatever the image": {
			resources: []resource.Resource{proxy, rendered(true), extras()},
			want:      []string{"DaemonSet kube-proxy", "ServiceAccount kube-proxy"},
		},
		"without kube-proxy": {resources: []resource.Resource{token, rendered(false), extras()}, image: newer,
			want: []string{"Secret bootstrap"}},
		"a kube-proxy of the user's": {
			resources: []resource.Resource{
				manifest("99-motd", object("DaemonSet", "kube-system", "kube-proxy", runs("a.example/proxy:v1"))), token,
				rendered(false), extras(inline),
			},
			want: []string{"Secret bootstrap", "DaemonSet kube-proxy"},
		},
		"kube-proxy has another image": {
			resources: []resource.Resource{proxy, token, rendered(true), extras()}, image: older,
			says: older + " yet, it is " + newer,
		},
		"kube-proxy is not rendered": {resources: []resource.Resource{token, rendered(true), extras()},
			says: "kube-proxy yet"},
		"another DaemonSet of that name": {
			resources: []resource.Resource{manifest("99-motd", object("DaemonSet", "default", "kube-proxy", runs(newer))), token,
				rendered(true), extras(inline)},
			image: newer, says: "kube-proxy yet",
		},
		"an extra one is not loaded": {
			resources: []resource.Resource{proxy, token, rendered(true), extras(inline, remote), loaded[0]}, image: newer,
			says: "has not loaded https://a.example/cni.yaml yet",
		},
		"an inline one is not loaded": {
			resources: []resource.Resource{proxy, token, rendered(true), extras(inline, remote), loaded[1]}, image: newer,
			says: "has not loaded motd yet",
		},
		"nothing but extra ones": {resources: append(slices.Clone(loaded), rendered(false), extras(inline, remote)),
			says: "has not rendered any manifests yet"},
		"from the wanted configuration": {
			resources:     []resource.Resource{loaded[0], proxy, token, rendered(true), extras(inline)},
			configuration: []byte(planes + "  coreDNS: {disabled: true}\n  inlineManifests: [{name: motd, contents: '{}'}]\n"),
			want:          []string{"Secret bootstrap", "DaemonSet kube-proxy", "ServiceAccount kube-proxy", "ConfigMap motd"},
		},
		"an inline one is still another": {
			resources:     []resource.Resource{loaded[0], proxy, token, rendered(true), extras(inline)},
			configuration: []byte(planes + "  coreDNS: {disabled: true}\n  inlineManifests: [{name: motd, contents: '{a: 1}'}]\n"),
			says:          "has not updated the manifests",
		},
		"kube-proxy is still enabled": {
			resources:     []resource.Resource{proxy, token, rendered(true), extras()},
			configuration: []byte(planes + "  coreDNS: {disabled: true}\n  proxy: {disabled: true}\n"),
			says:          "has not updated the manifests",
		},
		"nothing at all": {resources: []resource.Resource{rendered(false), extras()},
			says: "has not rendered any manifests yet"},
		"nothing, as on a worker": {says: "only control planes render"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			// Each state owns what it holds.
			owned := make([]resource.Resource, len(test.resources))
			for i, r := range test.resources {
				owned[i] = r.DeepCopy()
			}

			objects, err := withResources(t, owned...).Manifests(t.Context(), test.image, test.configuration)

			if test.says != "" {
				if !errors.Is(err, ErrInProgress) || wait.IsPermanent(err) || !strings.Contains(err.Error(), test.says) ||
					strings.Contains(err.Error(), "sesame") {
					t.Errorf("err = %v, want one that says %q and can be repeated", err, test.says)
				}

				return
			}

			if err != nil {
				t.Fatal(err)
			}

			var got []string

			for _, o := range objects {
				metadata, ok := o["metadata"].(map[string]any)
				if !ok {
					t.Fatalf("object %v", o)
				}

				got = append(got, o["kind"].(string)+" "+metadata["name"].(string))
			}

			if !slices.Equal(got, test.want) {
				t.Errorf("objects %q, want %q", got, test.want)
			}
		})
	}
}

// Talos's objects have integers and no null (k8s.io's unstructured ones); what arrives has to
// be the same JSON.
func TestManifests_areJSON(t *testing.T) {
	t.Parallel()

	whole := map[string]any{
		"replicas": int64(2), "share": 0.5, "large": int64(4294967296), "paused": false, "empty": map[string]any{},
		"list": []any{int64(1), "a", true},
	}

	objects, err := withResources(t, rendered(false), manifest("00-whole", whole)).Manifests(t.Context(), "", nil)
	if err != nil || len(objects) != 1 {
		t.Fatalf("objects %v, %v", objects, err)
	}

	got, err := json.Marshal(objects[0])
	if err != nil {
		t.Fatal(err)
	}

	if want := `{"empty":{},"large":4294967296,"list":[1,"a",true],"paused":false,"replicas":2,"share":0.5}`; string(
		got) != want {
		t.Errorf("object %s, want %s", got, want)
	}

	if n, ok := objects[0]["replicas"].(float64); !ok || n != 2 {
		t.Errorf("an integer arrives as %T", objects[0]["replicas"])
	}
}

// TestResources_outliveOtherConnections: what is opened for others is alive on its own until it is released, whatever
// becomes of the machine's other connections.
func TestResources_outliveOtherConnections(t *testing.T) {
	t.Parallel()

	spec := k8s.NewKubeletSpec(k8s.NamespaceName, k8s.KubeletID)
	spec.TypedSpec().Args = []string{"--container-runtime=remote"}
	m := withResources(t, spec)

	resources, release, err := m.Resources(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if _, err := m.dial(t.Context()); err != nil {
		t.Fatal(err)
	}

	m.disconnect()

	read := func() (*k8s.KubeletSpec, error) {
		return safe.StateGet[*k8s.KubeletSpec](t.Context(), resources,
			k8s.NewKubeletSpec(k8s.NamespaceName, k8s.KubeletID).Metadata())
	}

	got, err := read()
	if err != nil || !slices.Equal(got.TypedSpec().Args, spec.TypedSpec().Args) {
		t.Errorf("read %v, %v", got, err)
	}

	release()

	if _, err := read(); err == nil {
		t.Error("the connection is still there after its release")
	}
}

func TestResources_ofNoMember(t *testing.T) {
	t.Parallel()

	g := serveTLS(t, maintenance(t, nil))

	f, err := NewFleet(testOptions(g.port(), Credentials{}))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(f.Close)

	m := f.Machine(cluster.Machine{Name: "cp-1", Wanted: cluster.Wanted{Address: "127.0.0.1"}})
	if _, _, err := m.Resources(t.Context()); !errors.Is(err, ErrMaintenance) {
		t.Errorf("resources: %v", err)
	}

	if _, err := m.Manifests(t.Context(), "", nil); !errors.Is(err, ErrMaintenance) {
		t.Errorf("manifests: %v", err)
	}
}
