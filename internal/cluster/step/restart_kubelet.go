package step

import "time"

// RestartKubelet restarts the kubelet of a member that has no node in Kubernetes: a kubelet registers only when it
// starts. Pods continue to run.
type RestartKubelet struct {
	plain

	Machine string
}

// On names the machine.
func (s RestartKubelet) On() string { return s.Machine }

func (s RestartKubelet) String() string {
	return "restart the kubelet of " + s.Machine + " to register its missing node"
}

func (RestartKubelet) ends(m *MachineState, _ time.Time) { m.KubeletRestarted = true }

func (s RestartKubelet) forecast(m Model) {
	did(s, m)
	m.Settle()
}

func (RestartKubelet) shows(f *Shown) { f.Open = append(f.Open, FieldNodeName, FieldKubernetesVersion) }
