package step

import (
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// SyncManifests applies the bootstrap manifests that a control plane renders to the cluster,
// such as those of kube-proxy and CoreDNS, and prunes what is not among them any more.
type SyncManifests struct {
	plain

	// Machine whose manifests they are.
	Machine string
	// Version of Kubernetes.
	Version string
	// TalosVersion is the oldest one of the control planes, which decides how it is done.
	TalosVersion string
	// Changes is what the manifests are made of and that is another now; empty where only the version is.
	Changes string
	// Keep leaves in the cluster what is not among them any more.
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
