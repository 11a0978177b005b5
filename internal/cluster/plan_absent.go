package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// A create sends the first configuration once every machine was reached. With one wrong address, the other machines
// would be installed for a cluster that cannot become Ready.

// leastSilence is the minimum wait of a create for an address that drops packets, because calls to it end late and a
// slow machine looks the same.
const leastSilence = time.Minute

// awaitAbsent holds the first configurations of a create while a machine does not answer. It refuses the create once
// machines have refused connections for Policy.AppearWithin, or were silent for that time and at least a minute.
func awaitAbsent(want Spec, have Snapshot, p Policy, d *Decision) {
	if !untouched(want, have) || len(d.Refusals) > 0 {
		return
	}

	var absent []late

	for _, m := range want.all() {
		s := have.Machines[m.Name]
		if m.Through || m.Platform().Identified || s.Access != step.Unreachable {
			continue
		}

		limit := p.AppearWithin
		if !s.Refuses {
			limit = max(limit, leastSilence)
		}

		absent = append(absent, late{
			machine: m.Name, at: s.Since.Add(limit), reason: "no response from " + m.Address + Because(s.Cause),
			meanwhile: fmt.Sprintf("no response from %s%s", m.Address, Because(s.Cause)),
		})
	}

	d.refuseLate(absent, have, "Correct the address, or start the machine. Then apply again. For machines that take "+
		"longer to start (VMs of the same apply, or a reboot after an interrupted create), set `appear_within`")
}

// awaitDisks refuses machines on which the wanted configuration cannot be installed, before anything is sent. Linux
// finds disks after it started, so they may take as long to appear as machines.
func awaitDisks(want Spec, have Snapshot, p Policy, d *Decision) {
	var lacking []late

	for _, m := range want.all() {
		if s := have.Machines[m.Name]; s.Access == step.Maintenance && s.DiskProblem != "" {
			lacking = append(lacking,
				late{machine: m.Name, at: s.Since.Add(p.AppearWithin), reason: s.DiskProblem, meanwhile: s.DiskProblem})
		}
	}

	d.refuseLate(lacking, have,
		"Correct `install`, or the patch that names the disk, or attach such a disk. Then apply again")
}

// late is a machine that is refused for a reason from a time on. Meanwhile says why it is held until then.
type late struct {
	machine           string
	at                time.Time
	reason, meanwhile string
}

// refuseLate refuses machines once all of them are late, so that one run names them all. Until then it holds them.
func (d *Decision) refuseLate(machines []late, have Snapshot, remedy string) {
	early := slices.ContainsFunc(machines, func(l late) bool { return have.Time.Before(l.at) })

	for _, l := range machines {
		if early {
			d.hold(l.machine, "%s", l.meanwhile)
		} else {
			d.refuse(l.machine, l.reason, remedy)
		}
	}
}

// untouched is true in a create that has sent nothing yet, and none of whose machines is known to be part of a
// cluster. A create after a killed run waits for machines that boot.
func untouched(want Spec, have Snapshot) bool {
	return !want.Bootstrapped && len(want.Removed) == 0 && !slices.ContainsFunc(want.Machines, func(m Machine) bool {
		s := have.Machines[m.Name]
		_, registered := have.NodeOf(m)

		return registered || m.InService || m.Joined || s.Access == step.Member || s.WasMember || s.FirstBoot || s.Busy != ""
	})
}
