package step

import (
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// SyncManifests applies the bootstrap manifests that a control plane renders, such as those of kube-proxy and
// CoreDNS, and prunes objects that are no longer in them.
type SyncManifests struct {
	plain

	// Machine whose manifests they are.
	Machine string
	// Version of Kubernetes.
	Version string
	// TalosVersion is the oldest one of the control planes, which decides how they are applied.
	TalosVersion string
	// Changes are the changed sources of the manifests; empty where only the version changes.
	Changes string
	// Keep keeps objects that are no longer in them.
	Keep bool
}

// On names the machine.
func (s SyncManifests) On() string { return s.Machine }

func (s SyncManifests) String() string {
	text := fmt.Sprintf("sync the bootstrap manifests of Kubernetes %s from %s", s.Version, s.Machine)
	if s.Keep {
		text += " (nothing is pruned)"
	}

	if s.Changes != "" {
		text += ": " + s.Changes
	}

	return text
}

// OneByOne is always true.
func (s SyncManifests) OneByOne() bool { return true }

// UpgradesKubernetes is true.
func (SyncManifests) UpgradesKubernetes() bool { return true }

func (s SyncManifests) forecast(m Model) {
	var proxy string

	m.Change(func(state *MachineState) { proxy = state.Images[kubenames.KubeProxy] })
	m.Kubernetes(func(k *kubestate.State) { k.Manifests, k.KubeProxy = s.Version, proxy })
}

// ShowsInState is false.
func (SyncManifests) ShowsInState() bool { return false }
