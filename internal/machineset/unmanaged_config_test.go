package machineset

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

const (
	sharedConfig = `version: v1alpha1
machine:
    type: worker
    kubelet:
        image: ghcr.io/siderolabs/kubelet:v1.36.2
    sysctls:
        a: "1"
`
	changedConfig = `version: v1alpha1
machine:
    type: worker
    kubelet:
        image: ghcr.io/siderolabs/kubelet:v1.36.3
    sysctls:
        a: "2"
`
)

// nodeWith is a node whose machine has a configuration, with a hostname of its own.
func nodeWith(t *testing.T, name, talos, config string) UnmanagedNode {
	t.Helper()

	named := strings.Replace(config, "    type: worker\n", "    type: worker\n    network:\n        hostname: "+name+"\n", 1)

	shared, digest, err := SharedConfig([]byte(named))
	if err != nil {
		t.Fatal(err)
	}

	return UnmanagedNode{Config: string(shared), Digest: digest, Node: kubestate.Node{Name: name,
		Addresses: []string{"10.0.0.9"}, Ready: true, TalosVersion: talos}}
}

func namesOfNodes(nodes []UnmanagedNode) []string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}

	return names
}

// The machines that are outdated are in the plan, and how they differ is drift. A hostname and a rotation of keys are no
// difference, a kubelet image is.
func TestUnmanagedConfig_outdated(t *testing.T) {
	t.Parallel()

	held := nodeWith(t, "held", "v1.13.0", changedConfig)
	held.Cordoned, held.Unschedulable = true, true
	nodes := []UnmanagedNode{nodeWith(t, "old", "v1.13.0", sharedConfig), nodeWith(t, "right", "v1.13.0", changedConfig),
		held, {Node: kubestate.Node{Name: "silent", Addresses: []string{"10.0.0.8"}, TalosVersion: "v1.13.0"}}}

	p := Set{Endpoints: []string{"10.0.0.1"}}

	outdated, err := p.Outdated(nodes, []byte(changedConfig))
	if diff := cmp.Diff([]string{"old", "held"}, namesOfNodes(outdated)); diff != "" || err != nil {
		t.Error(diff, err)
	}

	f, err := p.ForecastUnmanaged(nodes, []byte(changedConfig), cluster.Budget{}, cluster.DefaultPolicy())
	if diff := cmp.Diff([]string{"reach node held and node old through control planes", "uncordon node held",
		"apply configuration to node old (no reboot): machine.sysctls.a = \"1\" -> \"2\""}, f.Operations); diff != "" || err != nil {
		t.Error(diff, err)
	}

	drift, err := p.DriftOfUnmanaged(nodes[0], []byte(changedConfig))
	if lines := drift.Lines(); err != nil || len(lines) != 2 || !strings.Contains(lines[0], "machine.sysctls.a") ||
		!strings.Contains(lines[1], "image of kubelet") {
		t.Errorf("the drift is %q, %v", lines, err)
	}
}

// A Talos that does not know the documents of the contract keeps its configuration. Only a cordon is removed.
func TestUnmanagedConfig_ofAnOlderTalos(t *testing.T) {
	t.Parallel()

	p := Set{Endpoints: []string{"10.0.0.1"}}
	p.Settings.Contract = "v1.14"

	older := nodeWith(t, "older", "v1.13.6", sharedConfig)
	newer := nodeWith(t, "newer", "v1.14.1", sharedConfig)

	outdated, err := p.Outdated([]UnmanagedNode{older, newer}, []byte(changedConfig))
	if names := namesOfNodes(outdated); err != nil || !slices.Equal(names, []string{"newer"}) {
		t.Errorf("%q, %v", names, err)
	}

	older.Cordoned, older.Unschedulable = true, true

	f, err := p.ForecastUnmanaged([]UnmanagedNode{older}, []byte(changedConfig), cluster.Budget{}, cluster.DefaultPolicy())
	if err != nil || !slices.Contains(f.Operations, "uncordon node older") || len(f.Operations) != 2 {
		t.Errorf("%q, %v", f.Operations, err)
	}

	drift, _ := p.DriftOfUnmanaged(older, []byte(changedConfig))
	if lines := drift.Lines(); len(lines) == 0 || lines[0] != "Talos: running v1.13.6, expected v1.14 or later" {
		t.Errorf("the drift is %q", lines)
	}
}
