package step

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// UpgradeComponent gives one Kubernetes component on one machine another image, at once and without a reboot. It ends
// when the component is observed to run with it. For kube-proxy, which runs elsewhere, it ends with the
// configuration.
type UpgradeComponent struct {
	plain

	Machine   string
	Role      Role
	Component kubenames.Component
	// From is the image in the machine's configuration, and Image the new one.
	From, Image string
	// OnNode is the node on which it is observed.
	OnNode string
	// Awaits is true in a plan where API servers or kubelets of other resources decide whether this apply or a later one
	// makes the change.
	Awaits bool
	// Evacuation before a kubelet is upgraded, where that is requested.
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
		text += " (" + s.Steps() + ")"
	}

	return text
}

// Together reports whether one line of a plan can name the components of both upgrades.
func (s UpgradeComponent) Together(other UpgradeComponent) bool {
	other.Component = s.Component

	return s.String() == other.String()
}

// Disrupts is true where the node is cordoned.
func (s UpgradeComponent) Disrupts() bool { return s.Node != "" }

// OneByOne is true for control planes.
func (s UpgradeComponent) OneByOne() bool { return s.Role == ControlPlane }

// Impact includes that of the drain.
func (s UpgradeComponent) Impact() Impact { return Impact{Drains: s.Drain, UpgradesKubernetes: true} }

// UpgradesKubernetes is true.
func (UpgradeComponent) UpgradesKubernetes() bool { return true }

func (s UpgradeComponent) ends(m *MachineState, _ time.Time) {
	m.Images = maps.Clone(m.Images)
	m.Images[s.Component] = s.Image
}

func (s UpgradeComponent) forecast(m Model) {
	did(s, m)
	m.Kubernetes(func(k *kubestate.State) {
		if s.Component == kubenames.KubeProxy {
			k.KubeProxy = cmp.Or(k.KubeProxy, s.From) // until the manifests are synced
		}

		k.Reachable = k.Reachable || s.Component == kubenames.KubeAPIServer

		for i := range k.Nodes {
			k.Nodes[i].Soak.Due = k.Nodes[i].Soak.Due || s.Soaks && k.Nodes[i].Name == s.OnNode
		}
	})
	m.Settle()
	m.Cordon(s.Node, true)
}

// The Kubernetes version of a machine is that of its kubelet.
func (s UpgradeComponent) shows(f *Shown) {
	if s.Component != kubenames.Kubelet {
		return
	}

	version, known := kubenames.ImageVersion(s.Image)
	if s.Awaits || !known { // a later apply may make the change
		f.Open = append(f.Open, FieldKubernetesVersion)

		return
	}

	f.Texts[FieldKubernetesVersion] = version
}

// ShowsInState is false.
func (UpgradeComponent) ShowsInState() bool { return false }

func (s UpgradeComponent) sums(t *Total) {
	t.Kubernetes = pass(t.Kubernetes, versionsOf(s.From, s.Image)...)
}

func (s UpgradeComponent) on(machines string) Step {
	s.Machine = machines

	return s
}
