package sim

// SetOnVersions sets a hook that gets what runs on all machines, now and whenever a kubelet or a kube-apiserver starts
// or ends on any: between two calls nothing changes. It must not call the simulator.
func (s *Simulator) SetOnVersions(hook func(running []Versions)) {
	s.world.Lock()
	defer s.world.Unlock()

	s.onVersions = hook
	s.tellVersions()
}

// tellVersions notifies the hook; world is held.
func (s *Simulator) tellVersions() {
	if s.onVersions == nil {
		return
	}

	var running []Versions

	for _, m := range s.machines {
		if b := m.boot; b != nil && !b.Crashed && b.kubelet != nil {
			running = append(running, Versions{Machine: m.Name(), Kubelet: b.kubelet.Version, APIServer: b.kubelet.APIServer})
		}
	}

	s.onVersions(running)
}
