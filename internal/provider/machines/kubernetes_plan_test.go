package machines_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// The text of plans for Kubernetes upgrades; see TestPlan_asRecorded.
func kubernetesScenarios() map[string]planScenario {
	const (
		mirror = "cluster:\n  apiServer:\n    image: registry.example.com/kube-apiserver:%[1]s\nmachine:\n  kubelet:\n    " +
			"image: registry.example.com/kubelet:%[1]s-slim"
		proxy    = "cluster:\n  proxy:\n    image: registry.example.com/kube-proxy:v1.31.0"
		manifest = "cluster:\n  inlineManifests:\n    - name: %[1]s\n      contents: |\n        apiVersion: v1\n" +
			"        kind: ConfigMap\n        metadata: {name: %[1]s, namespace: kube-system}\n        data: %[2]s"
		pinned = "cluster:\n  scheduler:\n    image: registry.example.com/kube-scheduler@sha256:%s"
	)

	patched := func(base tftest.Config, patch string) tftest.Config {
		return tftest.With(base, []any{patch}, "cluster_config_patches")
	}
	controlPlane := func(base tftest.Config, patch string) tftest.Config {
		return tftest.With(base, []any{patch}, "control_plane", "config_patches")
	}
	kubelet := func(base tftest.Config, version string) tftest.Config {
		return tftest.With(base, []any{"machine:\n  kubelet:\n    image: ghcr.io/siderolabs/kubelet:" + version}, "workers",
			"batch",
			"config_patches")
	}
	pool := func(version string) tftest.Config {
		return tftest.With(tftest.BaseWorker(), version, "cluster", "kubernetes_version")
	}
	machine := func(version string) tftest.Config {
		return tftest.With(tftest.BaseMachine(), version, "cluster", "kubernetes_version")
	}

	return map[string]planScenario{
		"kubernetes-one-minor": {
			says:   "Kubernetes goes one minor version up.",
			before: running("v1.35.2", 2), after: running("v1.36.3", 2),
		},
		"kubernetes-two-minors": {
			says:   "Kubernetes goes two minor versions up, through the newest patch of the one in between.",
			before: running("v1.34.1", 5), after: running("v1.36.3", 5),
		},
		"kubernetes-via": {
			says:   "The same through a release of one's own choice.",
			before: running("v1.34.1", 1), after: tftest.With(running("v1.36.3", 1), []any{"v1.35.2"}, "kubernetes_upgrade_via"),
		},
		"kubernetes-with-talos": {
			says:   "Talos goes one minor version up, and Kubernetes with it: to one that only the newer Talos runs.",
			before: tftest.With(running("v1.35.2", 1), "v1.12.6", "talos_version"),
			after:  tftest.With(running("v1.36.3", 1), "v1.13.0", "talos_version"),
		},
		"kubernetes-workers": {
			says: "The version in the handle of a pool of workers changes.", kind: "talosop_worker",
			before: pool("v1.35.2"), after: pool("v1.36.3"),
		},
		"kubernetes-machine": {
			says: "The version in the handle of a control plane of its own changes.", kind: "talosop_machine",
			before: machine("v1.35.2"), after: machine("v1.36.3"),
		},
		"manifests-changed": {
			says:   "What bootstrap manifests are made of is another, and the version stays.",
			before: patched(running("v1.36.3", 1), fmt.Sprintf(manifest, "one", "{}")),
			after: patched(running("v1.36.3", 1), fmt.Sprintf(manifest, "two", "{}")+"\n  proxy: {mode: ipvs}\n"+
				"  network: {cni: {name: none}}"),
		},
		"manifests-kept": {
			says:   "A bootstrap manifest goes, and its object stays.",
			before: patched(running("v1.36.3", 1), fmt.Sprintf(manifest, "one", "{}")),
			after:  tftest.With(running("v1.36.3", 1), false, "prune_bootstrap_manifests"),
		},
		"kubernetes-repository": {
			says:   "The version stays, and its images come from another repository.",
			before: running("v1.36.3", 1), after: patched(running("v1.36.3", 1), fmt.Sprintf(mirror, "v1.36.3")),
		},
		"kubernetes-keeps-repositories": {
			says:   "Images of one's own go along with the version in their tags.",
			before: patched(running("v1.34.1", 1), fmt.Sprintf(mirror, "v1.34.1")),
			after:  patched(running("v1.36.3", 1), fmt.Sprintf(mirror, "v1.36.3")),
		},
		"kubernetes-pinned-refused": {
			says:   "An image that is pinned by a digest says nothing of the version in between.",
			before: controlPlane(running("v1.34.1", 1), fmt.Sprintf(pinned, strings.Repeat("a", 64))),
			after:  controlPlane(running("v1.36.3", 1), fmt.Sprintf(pinned, strings.Repeat("b", 64))),
		},
		"kubernetes-own-tag-stays": {
			says:   "An image with a tag of its own stays as it is, whatever the others go through.",
			before: controlPlane(running("v1.34.1", 1), proxy), after: controlPlane(running("v1.36.3", 1), proxy),
		},
		"kubernetes-drain": {
			says:   "Nodes are drained for their kubelets, where that is asked for.",
			before: running("v1.35.2", 2), after: tftest.With(running("v1.36.3", 2), true, "drain_before_kubelet_upgrade"),
		},
		"kubernetes-resumed": {
			says:   "An upgrade stopped after the first control plane got its API server, and goes on.",
			before: running("v1.35.2", 1), after: running("v1.36.3", 1),
			since: hasImage("cp-1", "kube-apiserver", "registry.k8s.io/kube-apiserver:v1.36.3"),
		},
		"kubernetes-taken-back": {
			says:   "An upgrade that broke after the first control plane got its API server is taken back.",
			before: running("v1.35.2", 1), after: running("v1.35.2", 1),
			since: hasImage("cp-1", "kube-apiserver", "registry.k8s.io/kube-apiserver:v1.36.3"),
		},
		"kubernetes-drift": {
			says:   "The kubelet of a worker was changed by hand.",
			before: running("v1.35.2", 2), after: running("v1.35.2", 2),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				state = hasImage("batch/w-1", "kubelet", "ghcr.io/siderolabs/kubelet:v1.35.1")(t, state)

				return seen(t, state, "batch/w-1", "drift", record.Drift{{Kind: record.ImageDiffers, Component: kubenames.Kubelet,
					Found: "ghcr.io/siderolabs/kubelet:v1.35.1", Wanted: "ghcr.io/siderolabs/kubelet:v1.35.2"}})
			},
		},
		"kubernetes-pinned-worker-downgrade-refused": {
			says: "The kubelet of a worker was kept at an older minor version by a patch, which makes no downgrade of the " +
				"cluster an upgrade to take back.",
			before: kubelet(running("v1.36.3", 1), "v1.35.2"), after: kubelet(running("v1.35.2", 1), "v1.35.2"),
		},
		"kubernetes-laggard-worker-downgrade-refused": {
			says:   "A worker that was left behind by an upgrade makes no downgrade of the cluster an upgrade to take back.",
			before: running("v1.36.3", 1), after: running("v1.35.2", 1),
			since: hasImage("batch/w-1", "kubelet", "ghcr.io/siderolabs/kubelet:v1.35.2"),
		},
		"kubernetes-back-from-the-second-hop-refused": {
			says: "An upgrade across two minor versions stopped in the second one. The way back ends at the release in " +
				"between.",
			before: running("v1.34.1", 1), after: running("v1.34.1", 1),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				return hasImage("cp-1", "kube-apiserver", "registry.k8s.io/kube-apiserver:v1.36.3")(t,
					hasKubernetes(t, state, "v1.35.4"))
			},
		},
		"kubernetes-kubelet-ahead-refused": {
			says:   "A patch makes a kubelet newer than the API servers.",
			before: running("v1.35.2", 2), after: kubelet(running("v1.35.2", 2), "v1.36.3"),
		},
		"kubernetes-scheduler-ahead-refused": {
			says:  "A patch makes the schedulers of a new cluster newer than its API servers.",
			after: patched(running("v1.35.2", 1), "cluster:\n  scheduler:\n    image: registry.k8s.io/kube-scheduler:v1.36.3"),
		},
		"kubernetes-worker-ahead-refused": {
			says: "A patch makes kubelets newer than the version in the handle.", kind: "talosop_worker",
			before: pool("v1.35.2"),
			after: tftest.With(pool("v1.35.2"), []any{"machine:\n  kubelet:\n    image: ghcr.io/siderolabs/kubelet:v1.36.3"},
				"config_patches"),
		},
		"kubernetes-worker-not-ready": {
			says:   "A worker is down when Kubernetes is to be upgraded.",
			before: running("v1.35.2", 2), after: tftest.With(running("v1.36.3", 2), "2", "workers", "batch", "max_unavailable"),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				return seen(t, seen(t, state, "batch/w-1", "ready", false), "batch/w-1", "stage", "booting")
			},
		},
		"kubernetes-images-unknown": {
			says: "The images of the machines of a pool were not read yet.", kind: "talosop_worker",
			before: pool("v1.35.2"), after: pool("v1.36.3"),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				return seen(t, seen(t, state, "w-1", "images", nil), "w-2", "images", nil)
			},
		},
		"kubernetes-via-not-passed": {
			says:   "Releases to pass are named that the upgrade does not pass.",
			before: running("v1.34.1", 1),
			after:  tftest.With(running("v1.36.3", 1), []any{"v1.33.9", "v1.35.2"}, "kubernetes_upgrade_via"),
		},
		"kubernetes-label": {
			says:   "A label is applied, and Kubernetes stays.",
			before: running("v1.36.3", 1), after: patched(running("v1.36.3", 1), "machine:\n  nodeLabels:\n    rack: b2"),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				return stored(t, state, "bootstrap_manifests_version", "v1.36.3")
			},
		},
		"kubernetes-runs-otherwise": {
			says:   "A kubelet and an API server were seen to run in other versions than the images that their machines have.",
			before: running("v1.35.2", 2), after: running("v1.35.2", 2),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				state = seen(t, state, "batch/w-1", "running", tftest.Config{"kubelet": "v1.35.1"})
				state = seen(t, state, "batch/w-2", "running", tftest.Config{"kubelet": "v1.35.2+fips.1"})

				return seen(t, state, "cp-2", "running",
					tftest.Config{"kubelet": "v1.35.2", "kube-apiserver": "v1.35.1", "kube-scheduler": "v1.35.2"})
			},
		},
		"kubernetes-manifests": {
			says:   "An upgrade stopped before the bootstrap manifests.",
			before: running("v1.36.3", 1), after: running("v1.36.3", 1),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				return stored(t, state, "bootstrap_manifests_version", "v1.35.2")
			},
		},
		"kubernetes-downgrade-refused": {
			says:   "Kubernetes does not go back a minor version, not even on purpose.",
			before: running("v1.36.3", 1), after: tftest.With(running("v1.35.2", 1), true, "allow_downgrade"),
		},
		"kubernetes-patch-downgrade-refused": {
			says:   "Kubernetes does not go back to a lower patch unasked.",
			before: running("v1.36.3", 1), after: running("v1.36.1", 1),
		},
		"kubernetes-patch-downgrade-allowed": {
			says:   "Kubernetes goes back to a lower patch on purpose.",
			before: running("v1.36.3", 1), after: tftest.With(running("v1.36.1", 1), true, "allow_downgrade"),
		},
		"kubernetes-unsupported-refused": {
			says:   "No Kubernetes that the Talos does not run.",
			before: tftest.With(running("v1.34.1", 1), "v1.12.6", "talos_version"),
			after:  tftest.With(running("v1.36.3", 1), "v1.12.6", "talos_version"),
		},
		"kubernetes-unsupported-hop-refused": {
			says:   "Talos is upgraded first, and does not run the Kubernetes that runs, nor the next one.",
			before: tftest.With(running("v1.29.4", 1), "v1.11.6", "talos_version"),
			after:  tftest.With(running("v1.34.1", 1), "v1.13.0", "talos_version"),
		},
		"kubernetes-removals": {
			says:   "A control plane uses a flag that the wanted version removes.",
			before: running("v1.35.2", 1), after: running(tftest.Removing, 1),
		},
		"kubernetes-unknown-refused": {
			says:   "A Kubernetes that this version of the provider knows nothing of, on a Talos that may run it.",
			before: running("v1.36.3", 1), after: tftest.With(tftest.With(running("v1.48.0", 1), "v1.15.0", "talos_version"),
				true,
				"allow_untested"),
		},
	}
}

// running is a whole cluster of three control planes and some workers at a version of Kubernetes.
func running(kubernetes string, workers int) tftest.Config {
	config := tftest.Without(tftest.Without(tftest.With(tftest.BaseCluster(), kubernetes, "kubernetes_version"),
		"workers", "gpu"), "workers", "batch",
		"machines", "w-2")

	for i := 2; i <= workers; i++ {
		tftest.With(config, fmt.Sprintf("10.0.0.2%d", i), "workers", "batch", "machines", fmt.Sprintf("w-%d", i), "address")
	}

	return config
}

// hasImage is a state in which a component of a machine was observed with an image.
func hasImage(machine, component, image string) func(t *testing.T, state tftypes.Value) tftypes.Value {
	return func(t *testing.T, state tftypes.Value) tftypes.Value {
		t.Helper()

		images := maps.Clone(tftest.Remembered(t, state)[machine].Images)
		images[kubenames.Component(component)] = image

		return seen(t, state, machine, "images", images)
	}
}

// hasKubernetes is a state in which every machine was observed with the images of a version.
func hasKubernetes(t *testing.T, state tftypes.Value, version string) tftypes.Value {
	t.Helper()

	for name, m := range tftest.Remembered(t, state) {
		images := kubenames.Images{}

		for component, image := range m.Images {
			images[component] = image[:strings.LastIndex(image, ":")+1] + version
		}

		state = seen(t, state, name, "images", images)
	}

	return state
}

// stored is a state with another value of an attribute.
func stored(t *testing.T, state tftypes.Value, name string, value any) tftypes.Value {
	t.Helper()

	return tftest.Put(t, state, tftypes.NewAttributePath().WithAttributeName(name), value)
}
