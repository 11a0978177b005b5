package sim

import (
	"errors"
)

// errComponentBroken is how a process ends that a test broke.
var errComponentBroken = errors.New("the process exited with code 1")

// component is one version of a component of Kubernetes.
type component struct{ name, version string }

// BreakComponent lets a component of Kubernetes ("kube-apiserver", "kube-controller-manager",
// "kube-scheduler" or "kubelet") crash on this machine whenever it runs in that version
// (such as "v1.36.2", the tag of its image), until MendComponent. One that runs crashes.
// Calling it again changes nothing.
func (m *Machine) BreakComponent(name, version string) {
	m.sim.update(func() {
		if m.breaks == nil {
			m.breaks = map[component]bool{}
		}

		m.breaks[component{name, version}] = true
	})
}

// MendComponent undoes BreakComponent.
func (m *Machine) MendComponent(name, version string) {
	m.sim.update(func() { delete(m.breaks, component{name, version}) })
}

// broken says whether a component of a version crashes on the machine.
func (b *boot) broken(name, version string) bool {
	b.sim.mu.Lock()
	defer b.sim.mu.Unlock()

	return b.m.breaks[component{name, version}]
}
