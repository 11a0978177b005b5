package cluster

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// outdated is true for a container whose pod must be replaced, until this run did.
func outdated(m Machine, s step.MachineState) bool {
	return m.Replace != "" && !s.Current && s.Upgraded.Version == ""
}

// replaceable is true for a silent container in whose pod nothing runs and whose pod has another specification than
// the wanted one, which may be the cause.
func replaceable(m Machine, s step.MachineState) bool {
	return s.Access == step.Unreachable && s.Stopped && !s.VolumesLost && s.Busy == "" && outdated(m, s)
}

// passed is true for a release that is no longer on a machine's path, because of the Talos that ran in it last.
func passed(m Machine, s step.MachineState, via Release) bool {
	if versions.Older(m.TalosVersion, via.Version) {
		return versions.Older(s.TalosVersion, via.Version)
	}

	return versions.Older(via.Version, s.TalosVersion)
}

// replacement replaces the pod of a container for the reason in [Machine.Replace].
func replacement(have Snapshot, m Machine, release Release, p Policy) step.Upgrade {
	op := step.Upgrade{
		Machine: m.Name, Role: m.Role, From: have.Machines[m.Name].TalosVersion, To: release.Version,
		Installer: release.Installer, Container: true, Replace: m.Replace,
	}

	if have.Machines[m.Name].Access != step.Maintenance {
		op.Evacuation, op.Loses = EvacuationOf(have, m, p), m.Ephemeral
	}

	return op
}

// dataStays says why a control plane must not lose its data together with its pod. The data is given up like that of
// lost volumes, so the others must hold etcd without it from then on. remedy is set when waiting does not help.
func dataStays(want Spec, have Snapshot, m Machine) (reason, remedy string) {
	if m.Role != step.ControlPlane || !m.Ephemeral || AwaitsRestore(want, have) || !hasEtcd(want, have) {
		return "", ""
	}

	member, ok := have.MemberOf(m)
	q := quorumOf(want, have)

	switch {
	case len(q.Votes) <= 1 && len(want.controlPlanes()) == 1:
		return "the change replaces its pod, which has all data of etcd (storage.ephemeral): the whole cluster would be " +
				"lost",
			"Revert the change. Or first add two more control planes, which keep etcd running. Or destroy the cluster and " +
				"replace the resource (-replace): with restore_from it starts from an etcd snapshot"
	case !have.Etcd.Known:
		return "its pod contains its data, and etcd does not respond" + Because(have.Etcd.Cause), ""
	case ok:
		return q.Without(member.ID), ""
	default:
		return "", ""
	}
}

// formerPeer says that etcd still knows the member of a container at the address of its former pod; empty when it
// does not. Talos advertises the present address once its etcd is healthy (Talos 1.13, AdvertisedPeerController).
// Until then the others cannot reach it, and it counts for the quorum only while it can reach them. An address that
// always leads to its current pod is right.
func formerPeer(have Snapshot, m Machine, member etcdstate.Member) string {
	addresses := have.Machines[m.Name].Addresses

	switch {
	case !m.Platform().Moves:
		return ""
	case len(addresses) == 0:
		return "runs in a pod whose address is unknown"
	}

	for _, peer := range member.PeerURLs {
		parsed, err := url.Parse(peer)
		if err == nil && slices.ContainsFunc(addresses, func(a string) bool { return sameHost(parsed.Hostname(), a) }) {
			return ""
		}
	}

	return fmt.Sprintf("is registered in etcd with the address of a former pod: %s, not %s",
		strings.Join(member.PeerURLs, ", "), strings.Join(addresses, ", "))
}

// memberMoved is formerPeer for a machine of which only the member counts. It ignores a machine that does not answer.
func memberMoved(have Snapshot, m Machine) string {
	member, ok := have.MemberOf(m)
	if !ok || have.Machines[m.Name].Access != step.Member {
		return ""
	}

	return formerPeer(have, m, member)
}

// planVolumes replaces permanently lost volumes, one machine at a time, control planes first: their members must be
// removed before etcd accepts new ones.
func planVolumes(want Spec, have Snapshot, d *Decision) {
	inHand := ""

	for _, m := range want.all() {
		s := have.Machines[m.Name]
		if !s.VolumesLost || s.Access != step.Unreachable || s.Busy != "" {
			continue
		}

		reason := dataNeeded(want, have, m)
		other := d.membershipChange()

		switch {
		case m.Locked:
			d.keep(step.ReplaceVolumes{Machine: m.Name, Role: m.Role, Cause: s.Cause}, isLocked(m.Name))
		case reason != "":
			d.hold(m.Name, "its data is lost%s; its volumes are not replaced yet: %s", Because(s.Cause), reason)
		case inHand != "" || m.Role == step.ControlPlane && other != "":
			d.hold(m.Name, "its data is lost%s; its volumes are replaced after those of %s", Because(s.Cause), inHand+other)
		default:
			d.step(step.ReplaceVolumes{Machine: m.Name, Role: m.Role, Cause: s.Cause})

			inHand = m.Name
		}
	}
}

// dataNeeded says why the lost volumes of a machine must not be given up: while the other etcd members lack the
// quorum, it has nothing to rejoin. With a wanted restore, all data comes from the snapshot.
func dataNeeded(want Spec, have Snapshot, m Machine) string {
	if m.Role != step.ControlPlane || AwaitsRestore(want, have) || !hasEtcd(want, have) {
		return ""
	}

	if !have.Etcd.Known {
		return "etcd does not respond" + Because(have.Etcd.Cause)
	}

	member, ok := have.MemberOf(m)
	q := quorumOf(want, have)

	switch {
	case ok && q.Healthy[member.ID]:
		return fmt.Sprintf("its etcd member %s is healthy", member.ID)
	case ok:
		return q.Without(member.ID)
	default:
		return ""
	}
}

// announce advertises the present address of a container's member in the model, as Talos does once its etcd is
// healthy.
func (s *Snapshot) announce(m Machine) {
	member, ok := s.MemberOf(m)

	for i := range s.Etcd.Members {
		if ok && s.Etcd.Members[i].ID == member.ID {
			s.Etcd.Members[i].PeerURLs = []string{"https://" + hostInURL(m.Address) + ":2380"}
		}
	}
}

// loseData makes a machine of the model blank if its data went with its pod.
func (s *Snapshot) loseData(m Machine, step step.Upgrade) {
	if !step.Loses {
		return
	}

	former := s.Machines[m.Name]
	s.wipe(m, false)

	blank := s.Machines[m.Name]
	blank.TalosVersion, blank.Current, blank.Upgraded = former.TalosVersion, former.Current, former.Upgraded
	s.Machines[m.Name] = blank
}

// started is a machine of the model whose pod was replaced: one in whose pod nothing ran continues with the data on
// its volumes.
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
