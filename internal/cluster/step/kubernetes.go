package step

import (
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// PullImages makes a machine fetch the images of Kubernetes that it is going to run, before
// any component changes. It is safe to repeat.
type PullImages struct {
	Machine string
	// Version of Kubernetes.
	Version string
}

// On names the machine.
func (s PullImages) On() string { return s.Machine }

func (s PullImages) String() string {
	return fmt.Sprintf("pull the images of Kubernetes %s on %s", s.Version, s.Machine)
}

// UpgradeComponent gives one component of Kubernetes on one machine another image, at once
// and without a reboot, and ends when the component is seen to run with it. For kube-proxy,
// which runs elsewhere, it ends with the configuration.
type UpgradeComponent struct {
	Machine   string
	Role      Role
	Component kubenames.Component
	// From is the image that the machine's configuration has, and Image the one that it gets.
	From, Image string
	// OnNode is the node on which it is seen to run.
	OnNode string
	// Awaits is true in a plan where API servers or kubelets of other resources decide whether this apply makes the
	// change, or a later one.
	Awaits bool
	// Evacuation before a kubelet is upgraded, where that was asked for.
	Evacuation
}

// On names the machine.
func (s UpgradeComponent) On() string { return s.Machine }

func (s UpgradeComponent) String() string {
	from, known := kubenames.ImageVersion(s.From)
	to, ok := kubenames.ImageVersion(s.Image)

	text := fmt.Sprintf("upgrade %s on %s: %s -> %s", s.Component, s.Machine, from, to)

	switch {
	case s.From == s.Image:
		text = fmt.Sprintf("await %s on %s: %s", s.Component, s.Machine, s.Image)
	case !known || !ok || from == to:
		text = fmt.Sprintf("change the image of %s on %s to %s", s.Component, s.Machine, s.Image)
	case versions.Older(to, from):
		text = fmt.Sprintf("take %s on %s back: %s -> %s", s.Component, s.Machine, from, to)
	}

	if s.Drain {
		text += " (drain)"
	}

	return text
}

// SyncManifests applies the bootstrap manifests that a control plane renders to the cluster,
// such as those of kube-proxy and CoreDNS, and prunes what is not among them any more.
type SyncManifests struct {
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
