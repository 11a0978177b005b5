package machines_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machines"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// baseContainers is a valid whole cluster in containers.
func baseContainers() tftest.Config {
	return tftest.Config{
		"mode": "container", "name": "dev", "secrets": tftest.Bundle(), "talos_version": "v1.13.0",
		"kubernetes_version": "v1.35.2",
		"host": tftest.Config{
			"kubeconfig_path": "~/.kube/config", "namespace": "talos", "create_namespace": true,
			"pod": tftest.Config{"resources": tftest.Config{"requests": tftest.Config{"cpu": "250m", "memory": "1Gi"}}},
		},
		"control_plane": tftest.Config{"replicas": 3},
		"workers":       tftest.Config{"batch": tftest.Config{"replicas": 2}},
	}
}

// baseContainerPlane is the control plane of such a cluster.
func baseContainerPlane() tftest.Config {
	base := baseContainers()
	base["replicas"] = 3

	delete(base, "control_plane")
	delete(base, "workers")

	return base
}

// baseContainerWorkers are workers of such a cluster, with a handle written by hand.
func baseContainerWorkers() tftest.Config {
	return tftest.Config{
		"talos_version": "v1.13.0", "replicas": 2,
		"cluster": tftest.Config{
			"mode": "container", "name": "dev", "endpoint": "https://dev.talos.svc.cluster.local:6443",
			"secrets":            tftest.Bundle(),
			"kubernetes_version": "v1.35.2",
			"version_contract":   "v1.13", "talos_endpoints": []any{"dev-cp-0.talos.svc.cluster.local"},
			"host": tftest.Config{"kubeconfig_path": "~/.kube/config", "namespace": "talos"},
		},
	}
}

// olderContainers are containers with an older Talos.
func olderContainers(talos string) tftest.Config {
	return tftest.With(tftest.With(baseContainers(), talos, "talos_version"), "v1.34.1", "kubernetes_version")
}

// documentedContainers are containers of a Talos that knows the documents, with a contract.
func documentedContainers(contract string) tftest.Config {
	return tftest.With(tftest.With(baseContainers(), "v1.14.1", "talos_version"), contract, "version_contract")
}

// podded is a state in which every pod is as recorded.
func podded[M any, P machines.Model[M]](t *testing.T, r resource.Resource, state tftypes.Value) tftypes.Value {
	t.Helper()

	var (
		schema resource.SchemaResponse
		m      M
	)

	r.Schema(t.Context(), resource.SchemaRequest{}, &schema)

	stored := tfsdk.State{Raw: state, Schema: schema.Schema}
	if diags := stored.Get(t.Context(), &m); diags.HasError() {
		t.Fatal(diags)
	}

	p, diags := P(&m).MachineSet(t.Context())
	if diags.HasError() {
		t.Fatal(diags)
	}

	bundle, err := pki.Parse([]byte(p.Secrets))
	if err != nil {
		t.Fatal(err)
	}

	spec := p.HostSpec(machineset.PriorState{}, bundle.Mark())

	for _, machine := range spec.Machines {
		digest, err := workload.PodDigest(spec, machine.Name)
		if err != nil {
			t.Fatal(err)
		}

		state = seen(t, seen(t, state, machine.Name, "pod_digest", digest), machine.Name, "node_name", spec.HostName(machine))
		state = seen(t, seen(t, state, machine.Name, "platform", "container"), machine.Name, "uuid", nil)
	}

	return state
}

func containerScenarios() map[string]planScenario {
	const (
		label   = "machine:\n  nodeLabels:\n    rack: b2"
		changed = `StatefulSet talos/dev-cp-1: spec.template.spec.containers[0].resources.requests.memory is "4Gi" and not "1Gi"`
	)

	unprotected := tftest.With(baseContainers(), false, "deletion_protection")

	return map[string]planScenario{
		"container-create": {says: "A whole cluster is made in containers.", after: baseContainers()},
		"container-create-control-plane": {says: "A control plane is made in containers, for workers of other resources.",
			kind: "talosop_control_plane", after: baseContainerPlane()},
		"container-create-workers": {says: "Workers in containers join a cluster of a handle.", kind: "talosop_worker",
			after: baseContainerWorkers()},
		"container-nothing": {says: "Nothing changed, and nothing is planned.", before: baseContainers(),
			after: baseContainers()},
		"container-scale-up": {
			says:   "Two control planes join, and a worker.",
			before: baseContainers(), after: tftest.With(tftest.With(baseContainers(), 5, "control_plane", "replicas"), 3,
				"workers", "batch",
				"replicas"),
		},
		"container-scale-down": {
			says:   "Two control planes leave, those with the highest numbers, and a worker.",
			before: tftest.With(baseContainers(), 5, "control_plane", "replicas"),
			after:  tftest.With(baseContainers(), 1, "workers", "batch", "replicas"),
		},
		"container-scale-to-one": {
			says:   "Of three control planes one stays, and no worker of the pool.",
			before: baseContainers(), after: tftest.With(tftest.With(baseContainers(), 1, "control_plane", "replicas"), 0,
				"workers", "batch",
				"replicas"),
		},
		"container-pool": {says: "A pool of workers is added.", before: baseContainers(),
			after: tftest.With(baseContainers(), 1, "workers", "gpu", "replicas")},
		"container-upgrade": {
			says:   "Talos goes two minor versions up: pods are replaced, one after the other.",
			before: olderContainers("v1.11.3"), after: olderContainers("v1.13.2"),
		},
		"container-upgrade-workers": {
			says: "Workers in containers are upgraded.", kind: "talosop_worker",
			before: tftest.With(tftest.With(baseContainerWorkers(), "v1.12.6", "talos_version"), "v1.12", "cluster",
				"version_contract"),
			after: tftest.With(tftest.With(baseContainerWorkers(), "v1.13.2", "talos_version"), "v1.12", "cluster",
				"version_contract"),
		},
		"container-resources": {
			says:   "Pods get more memory, and a pool a place of its own.",
			before: baseContainers(),
			after: tftest.With(tftest.With(baseContainers(), "4Gi", "host", "pod", "resources", "requests", "memory"),
				tftest.Config{"disk": "ssd"}, "workers", "batch", "pod", "node_selector"),
		},
		"container-resources-and-upgrade": {
			says:   "Pods get more memory while Talos is upgraded: each is replaced once.",
			before: olderContainers("v1.12.6"),
			after:  tftest.With(olderContainers("v1.13.2"), "4Gi", "host", "pod", "resources", "requests", "memory"),
		},
		"container-patch": {
			says:   "One machine gets a label, and a pool a file that takes a restart.",
			before: baseContainers(),
			after: tftest.With(tftest.With(baseContainers(), []any{label}, "control_plane", "replica_config_patches", "1"),
				[]any{aFile},
				"workers", "batch", "config_patches"),
		},
		"container-contract": {
			says:   "The contract moves: no machine restarts for what Talos does not read in a container.",
			before: documentedContainers("v1.13"), after: documentedContainers("v1.14"),
		},
		"container-service": {
			says:   "The Kubernetes API is to be reached from outside, and the machines by node ports.",
			before: baseContainers(), after: tftest.With(tftest.With(baseContainers(), "NodePort", "host", "service", "type"),
				"node-port",
				"host", "access"),
		},
		"container-volumes-grow": {says: "Volumes grow.", before: baseContainers(),
			after: tftest.With(baseContainers(), "40Gi", "host", "pod", "storage", "var")},
		"container-volumes-shrink-refused": {says: "Volumes cannot shrink.", before: baseContainers(),
			after: tftest.With(baseContainers(), "10Gi", "host", "pod", "storage", "var")},
		"container-ephemeral-refused": {says: "Data does not move out of volumes.", before: baseContainers(),
			after: tftest.With(baseContainers(), true, "host", "pod", "storage", "ephemeral")},
		"container-class-refused": {
			says:   "Volumes stay in their class.",
			before: tftest.With(baseContainers(), "slow", "host", "pod", "storage", "class"),
			after:  tftest.With(baseContainers(), "fast", "host", "pod", "storage", "class"),
		},
		"container-class-unknown-refused": {
			says: "A class is said where none was: which one volumes have is not known.", before: baseContainers(),
			after: tftest.With(baseContainers(), "fast", "host", "pod", "storage", "class"),
		},
		"container-class-left-out-refused": {
			says:   "A class is said no more.",
			before: tftest.With(baseContainers(), "slow", "host", "pod", "storage", "class"), after: baseContainers(),
		},
		"container-replaced": {
			says: "The cluster gets another name: it is replaced.", before: baseContainers(),
			after: tftest.With(tftest.With(baseContainers(), "other", "name"), "4Gi", "host", "pod", "resources", "requests",
				"memory"),
		},
		"container-moved": {
			says: "The cluster goes to another namespace, with more memory.", before: baseContainers(),
			after: tftest.With(tftest.With(baseContainers(), "other", "host", "namespace"), "4Gi", "host", "pod", "resources",
				"requests",
				"memory"),
		},
		"container-drift": {
			says:   "Another client changed a pod's template, and removed a Service.",
			before: baseContainers(), after: baseContainers(),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				state = seen(t, seen(t, state, "cp-1", "pod_digest", nil), "cp-1", "drift",
					record.Drift{{Kind: record.HostReplaces, Found: changed}})

				return seen(t, state, "cp-0", "drift",
					record.Drift{{Kind: record.HostDiffers, Found: "Service talos/dev does not exist"}})
			},
		},
		"container-gone": {
			says: "A worker and its volumes were deleted by hand.", before: baseContainers(), after: baseContainers(),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				return degraded(t, seen(t, state, "batch/1", "stage", record.StageGone))
			},
		},
		"container-last-control-planes-refused": {
			says: "A control plane of its own kind cannot go as a whole.", kind: "talosop_control_plane",
			before: baseContainerPlane(), after: tftest.With(baseContainerPlane(), 0, "replicas"),
		},
		"container-destroy": {says: "The cluster is destroyed.", before: unprotected},
	}
}
