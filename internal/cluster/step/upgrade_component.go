package step

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// UpgradeComponent gives Kubernetes components on one machine other images, at once and without a reboot, in one change
// of its configuration. It ends when they are observed to run with them. For kube-proxy, which runs elsewhere, it ends
// with the configuration.
type UpgradeComponent struct {
	plain

	Machine   string
	Role      Role
	Component kubenames.Component
	// From is the image in the machine's configuration, and Image the new one.
	From, Image string
	// With are the components that change together with this one; the rest is zero.
	With [mostWith]ComponentChange
	// OnNode is the node on which they are observed.
	OnNode string
	// Awaits is true in a plan where API servers or kubelets of other resources decide whether this apply or a later one
	// makes the change.
	Awaits bool
	// Evacuation before a kubelet is upgraded, where that is requested.
	Evacuation
}

// ComponentChange is another image of a component.
type ComponentChange struct {
	Component   kubenames.Component
	From, Image string
}

// mostWith is how many components change together with one: four are behind the API server.
const mostWith = 3

// And is a step that changes one more component, in the same configuration.
func (s UpgradeComponent) And(c ComponentChange) UpgradeComponent {
	s.With[len(s.Each())-1] = c

	return s
}

// Each is a step for each component alone. Only that of the kubelet evacuates the machine.
func (s UpgradeComponent) Each() []UpgradeComponent {
	changes := []ComponentChange{{s.Component, s.From, s.Image}}

	for _, c := range s.With {
		if c.Component != "" {
			changes = append(changes, c)
		}
	}

	if len(changes) == 1 {
		return []UpgradeComponent{s}
	}

	each := make([]UpgradeComponent, len(changes))

	for i, c := range changes {
		part := s
		part.Component, part.From, part.Image, part.With = c.Component, c.From, c.Image, [mostWith]ComponentChange{}

		if c.Component != kubenames.Kubelet {
			part.Evacuation = Evacuation{}
		}

		each[i] = part
	}

	return each
}

// Of is the step for one component alone; ok is false where it does not change.
func (s UpgradeComponent) Of(c kubenames.Component) (part UpgradeComponent, ok bool) {
	each := s.Each()
	at := slices.IndexFunc(each, func(part UpgradeComponent) bool { return part.Component == c })

	if at < 0 {
		return UpgradeComponent{}, false
	}

	return each[at], true
}

// On names the machine.
func (s UpgradeComponent) On() string { return s.Machine }

func (s UpgradeComponent) String() string {
	var texts []string

	for rest := s.Each(); len(rest) > 0; {
		names, alike := string(rest[0].Component), 1

		for ; alike < len(rest) && rest[0].Together(rest[alike]); alike++ {
			names += ", " + string(rest[alike].Component)
		}

		texts = append(texts, rest[0].text(names))
		rest = rest[alike:]
	}

	return strings.Join(texts, "; ")
}

// text is the text of one component, or of several with the same versions.
func (s UpgradeComponent) text(names string) string {
	from, known := kubenames.ImageVersion(s.From)
	to, ok := kubenames.ImageVersion(s.Image)

	text := fmt.Sprintf("upgrade %s on %s: %s -> %s", names, s.Machine, from, to)

	switch {
	case s.From == s.Image:
		text = fmt.Sprintf("await %s on %s: %s", names, s.Machine, s.Image)
	case !known || !ok || from == to:
		text = fmt.Sprintf("change the image of %s on %s to %s", names, s.Machine, s.Image)
	case versions.Older(to, from):
		text = fmt.Sprintf("take %s on %s back: %s -> %s", names, s.Machine, from, to)
	}

	if s.Drain {
		text += " (" + s.Steps() + ")"
	}

	return text
}

// Together reports whether one line of a plan can name the components of both upgrades, each of one component.
func (s UpgradeComponent) Together(other UpgradeComponent) bool {
	return s.text("") == other.text("")
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

	for _, part := range s.Each() {
		m.Images[part.Component] = part.Image
	}
}

func (s UpgradeComponent) forecast(m Model) {
	did(s, m)
	m.Kubernetes(func(k *kubestate.State) {
		if proxy, changes := s.Of(kubenames.KubeProxy); changes {
			k.KubeProxy = cmp.Or(k.KubeProxy, proxy.From) // until the manifests are synced
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
	kubelet, changes := s.Of(kubenames.Kubelet)
	if !changes {
		return
	}

	version, known := kubenames.ImageVersion(kubelet.Image)
	if s.Awaits || !known { // a later apply may make the change
		f.Open = append(f.Open, FieldKubernetesVersion)

		return
	}

	f.Texts[FieldKubernetesVersion] = version
}

// ShowsInState is false.
func (UpgradeComponent) ShowsInState() bool { return false }

func (s UpgradeComponent) sums(t *Total) {
	for _, part := range s.Each() {
		t.Kubernetes = pass(t.Kubernetes, versionsOf(part.From, part.Image)...)
	}
}

func (s UpgradeComponent) on(machines string) Step {
	s.Machine = machines

	return s
}
