package machined

import (
	"errors"
)

// ErrComponentBroken is how a process ends that a test broke.
var ErrComponentBroken = errors.New("the process exited with code 1")

// component is one version of a component of Kubernetes.
type component struct{ name, version string }

// BreakComponent makes a component of Kubernetes ("kube-apiserver", "kube-controller-manager", "kube-scheduler" or
// "kubelet") crash on this machine whenever it runs in that version (such as "v1.36.2", the tag of its image),
// until RepairComponent. A running one crashes at once. Calling it again changes nothing.
func (m *Hardware) BreakComponent(name, version string) {
	m.World.Update(func() {
		if m.breaks == nil {
			m.breaks = map[component]bool{}
		}

		m.breaks[component{name, version}] = true
	})
}

// RepairComponent undoes BreakComponent.
func (m *Hardware) RepairComponent(name, version string) {
	m.World.Update(func() { delete(m.breaks, component{name, version}) })
}

// Broken reports whether a component of a version crashes on the machine.
func (b *Boot) Broken(name, version string) bool {
	b.World.Lock()
	defer b.World.Unlock()

	return b.breaks[component{name, version}]
}

// BreaksNow is broken for callers that hold the world.
func (b *Boot) BreaksNow(name, version string) bool { return b.breaks[component{name, version}] }
