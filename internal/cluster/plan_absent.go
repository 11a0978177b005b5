package cluster

import "slices"

// A create sends the first configuration once every machine of it was reached: with one wrong address, the other
// machines would be installed for a cluster that cannot become Ready.

// awaitAbsent holds the first configurations of a create while a machine of it does not answer, and refuses the create
// once a machine has refused connections for Policy.AppearWithin.
func awaitAbsent(want Spec, have Snapshot, p Policy, d *Decision) {
	if !untouched(want, have) {
		return
	}

	for _, m := range want.Machines {
		s := have.Machines[m.Name]
		if m.Through || m.Container || s.Access != Unreachable {
			continue
		}

		if s.Refuses && have.Time.Sub(s.Since) >= p.AppearWithin {
			d.refuse(m.Name, "nothing answers at "+m.Address+Because(s.Cause),
				"Nothing was sent to a machine by this run. Correct the address, or start the machine and apply again. For "+
					"machines that take longer to start (VMs of the same apply, or a reboot after an interrupted create), set "+
					"appear_within")

			continue
		}

		d.hold(m.Name, "no answer from %s%s, and no machine gets a configuration before it answers", m.Address,
			Because(s.Cause))
	}
}

// untouched is true in a create that has sent nothing yet, and of whose machines none is known to be part of a cluster:
// one that goes on with what a killed run began waits for machines that boot.
func untouched(want Spec, have Snapshot) bool {
	return len(want.Removed) == 0 && !slices.ContainsFunc(want.Machines, func(m Machine) bool {
		s := have.Machines[m.Name]
		_, registered := have.NodeOf(m)

		return registered || m.InService || m.Joined || s.Access == Member || s.WasMember || s.FirstBoot || s.Busy != ""
	})
}
