package cluster

import (
	"fmt"
	"slices"
	"time"
)

// A create sends the first configuration once every machine of it was reached: with one wrong address, the other
// machines would be installed for a cluster that cannot become Ready.

// leastSilence is how long a create waits at least for an address that drops packets: calls to it end late, and a slow
// machine looks the same.
const leastSilence = time.Minute

// awaitAbsent holds the first configurations of a create while a machine of it does not answer, and refuses the create
// once machines have refused connections for Policy.AppearWithin, or were silent for that, at least a minute.
func awaitAbsent(want Spec, have Snapshot, p Policy, d *Decision) {
	if !untouched(want, have) || len(d.Refusals) > 0 {
		return
	}

	var absent []Machine

	for _, m := range want.all() {
		if have.Machines[m.Name].Access == Unreachable && !m.Through && !m.Container {
			absent = append(absent, m)
		}
	}

	limit := func(s MachineState) time.Duration {
		if s.Refuses {
			return p.AppearWithin
		}

		return max(p.AppearWithin, leastSilence)
	}

	d.refuseLate(absent, have, limit,
		func(m Machine, s MachineState) string { return "nothing answers at " + m.Address + Because(s.Cause) },
		unheard, "Nothing was sent to a machine by this run. Correct the address, or start the machine and apply again. For "+
			"machines that take longer to start (VMs of the same apply, or a reboot after an interrupted create), set "+
			"appear_within")
}

// unheard says that a create waits for the machine.
func unheard(m Machine, s MachineState) string {
	return fmt.Sprintf("no answer from %s%s, and no machine gets a configuration before it answers", m.Address,
		Because(s.Cause))
}

// awaitDisks refuses the machines that the wanted configuration cannot be installed on, before anything is sent. Linux
// finds disks after it started, so they have as long to appear as machines.
func awaitDisks(want Spec, have Snapshot, p Policy, d *Decision) {
	var lacking []Machine

	for _, m := range want.all() {
		if s := have.Machines[m.Name]; s.Access == Maintenance && s.DiskProblem != "" {
			lacking = append(lacking, m)
		}
	}

	problem := func(_ Machine, s MachineState) string { return s.DiskProblem }
	d.refuseLate(lacking, have, func(MachineState) time.Duration { return p.AppearWithin }, problem, problem,
		"Correct install, or the patch that names the disk, or attach such a disk, and apply again")
}

// refuseLate refuses machines once all of them have been as they are for their limits, so that one run names them all.
// Until then it holds them.
func (d *Decision) refuseLate(
	machines []Machine, have Snapshot, limit func(MachineState) time.Duration,
	reason, meanwhile func(Machine, MachineState) string, remedy string,
) {
	early := slices.ContainsFunc(machines, func(m Machine) bool {
		s := have.Machines[m.Name]

		return have.Time.Sub(s.Since) < limit(s)
	})

	for _, m := range machines {
		if s := have.Machines[m.Name]; early {
			d.hold(m.Name, "%s", meanwhile(m, s))
		} else {
			d.refuse(m.Name, reason(m, s), remedy)
		}
	}
}

// untouched is true in a create that has sent nothing yet, and of whose machines none is known to be part of a cluster:
// one that goes on with what a killed run began waits for machines that boot.
func untouched(want Spec, have Snapshot) bool {
	return !want.Bootstrapped && len(want.Removed) == 0 && !slices.ContainsFunc(want.Machines, func(m Machine) bool {
		s := have.Machines[m.Name]
		_, registered := have.NodeOf(m)

		return registered || m.InService || m.Joined || s.Access == Member || s.WasMember || s.FirstBoot || s.Busy != ""
	})
}
