package cluster

// planConfigs decides which machines get their configuration now. Machines in
// maintenance mode get it at once, all of them. Of the control planes that run, one
// gets a changed configuration at a time: most changes restart its kubelet or its
// static pods (Talos 1.13), and a bad one must not reach them all.
func planConfigs(want Spec, have Snapshot, d *Decision) {
	turn, wait := configTurn(want, have)

	for _, m := range want.all() {
		s := have.Machines[m.Name]

		switch {
		case s.Busy != "":
			d.hold(m.Name, "%s", s.Busy)
		case s.Access == Unobserved:
			d.hold(m.Name, "not observed yet")
		case s.Access == Unreachable:
			d.hold(m.Name, "no answer from %s: %s", m.Address, s.Cause)
		case changesConfig(m, s) && m.Role == ControlPlane && turn != m.Name && wait != "":
			d.hold(m.Name, "keeps its configuration for now: %s", wait)
		case s.Access == Maintenance, changesConfig(m, s):
			d.step(ApplyConfig{
				Machine: m.Name, Address: m.Address, Role: m.Role, Digest: m.ConfigDigest,
				Access: s.Access, Install: m.InstallTarget, TalosVersion: m.TalosVersion,
			})
		}
	}
}

// changesConfig is true for a member that runs another configuration than wanted.
func changesConfig(m Machine, s MachineState) bool {
	return s.Access == Member && s.ConfigDigest != "" && s.ConfigDigest != m.ConfigDigest
}

// configTurn names the control plane whose configuration is changed next, and why
// the others wait; without a reason all may change, because there is no cluster yet
// that could be harmed. A machine that lacks something goes first, since the change
// may be its cure; otherwise every other control plane has to be whole.
func configTurn(want Spec, have Snapshot) (turn, wait string) {
	if !want.Bootstrapped && len(have.Etcd.Members) == 0 {
		return "", ""
	}

	var first, unsettled string

	for _, m := range want.sorted(ControlPlane) {
		s := have.Machines[m.Name]
		reason := Unsettled(want, have, m)

		switch {
		case s.Busy != "":
			return "", m.Name + " is " + s.Busy
		case changesConfig(m, s) && reason != "":
			return m.Name, "that of " + m.Name + " is changed first"
		case changesConfig(m, s) && first == "":
			first = m.Name
		case reason != "":
			unsettled = m.Name + ": " + reason
		}
	}

	if unsettled != "" {
		return "", unsettled
	}

	return first, "that of " + first + " is changed first"
}
