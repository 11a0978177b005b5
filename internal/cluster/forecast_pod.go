package cluster

import "github.com/talosop/terraform-provider-talosop/internal/cluster/step"

// announce lets the member of a container of the model be known by its present address, as
// Talos does once its etcd is well.
func (s *Snapshot) announce(m Machine) {
	member, ok := s.MemberOf(m)

	for i := range s.Etcd.Members {
		if ok && s.Etcd.Members[i].ID == member.ID {
			s.Etcd.Members[i].PeerURLs = []string{"https://" + hostInURL(m.Address) + ":2380"}
		}
	}
}

// loseData makes a machine of the model a blank one where its data went with its pod.
func (s *Snapshot) loseData(m Machine, step step.Upgrade) {
	if !step.Loses {
		return
	}

	pod := s.Machines[m.Name]
	s.wipe(m, false)

	blank := s.Machines[m.Name]
	blank.TalosVersion, blank.Current, blank.Upgraded = pod.TalosVersion, pod.Current, pod.Upgraded
	s.Machines[m.Name] = blank
}

// started is a machine of the model whose pod was replaced: one in whose pod nothing ran goes
// on with the data that its volumes have.
func started(m Machine, s step.MachineState) step.MachineState {
	if !s.Stopped {
		return s
	}

	s.Stopped, s.Cause = false, ""
	s.Access, s.Stage = step.Maintenance, step.StageMaintenance

	if s.NodeName != "" || s.ConfigDigest != "" || m.MemberID != "" {
		s.Access, s.Stage, s.Ready, s.ConfigDigest = step.Member, step.StageRunning, true, m.ConfigDigest
	}

	return s
}
