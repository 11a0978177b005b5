package cluster

// Plan compares what is wanted with what was observed. It is pure: the same arguments give the same decision.
//
// The rules, in their order: which machines may be contacted (identity), the remains of lost machines, lost volumes,
// joins, orphaned nodes, uncordons, changes on running machines, the bootstrap of etcd, META, removals, the
// Kubernetes upgrade, and what must settle before the cluster counts as Ready.
func Plan(want Spec, have Snapshot, p Policy) Decision {
	d := Decision{named: map[string]bool{}}
	have = have.indexed()
	want = want.Ordered()

	if refuseNewOwners(want, have, &d); len(d.Refusals) > 0 {
		return Decision{Refusals: d.Refusals}
	}

	want = want.withoutOthers(have).withoutWaiting(have, p).withoutScaledIn(have)

	decide(want, have, p, &d)
	d.holdOutside(want, have)

	d.named = nil
	if len(d.Refusals) > 0 {
		d.Steps, d.Holds, d.Kept, d.Behind = nil, nil, nil, nil
	}

	return d
}

func decide(want Spec, have Snapshot, p Policy, d *Decision) {
	refuseMismatches(want, have, d)
	refuseReturned(want, have, p, d)
	refuseNewNodeNames(want, have, d)
	refuseSharedNodeNames(want, have, d)
	refuseLostEtcd(want, have, d)
	refuseLostQuorum(want, have, d)
	refuseRestore(want, have, p, d)
	refuseLiving(want, have, d)
	refuseUnconsented(want, have, d)
	refuseUpgrades(want, have, d)
	refuseOlderEtcd(want, have, d)
	refuseKubernetes(want, have, p, d)
	refuseLastRemoval(want, have, d)
	refuseLockedRemoval(want.Removed, d)

	awaitRolledBack(want, have, d)
	awaitAbsent(want, have, p, d)
	awaitDisks(want, have, p, d)

	if len(d.Refusals) > 0 || len(d.Holds) > 0 {
		return
	}

	holdWaiting(want, d)
	planDepartures(want, have, p, d)
	planVolumes(want, have, d)
	planJoins(want, have, p, d)
	planFormerNodes(want, have, d)
	holdBusyUnmanaged(want, have, d)
	d.GiveBack(want, have)
	planRegistrations(want, have, p, d)
	planMarks(want, have, p, d)
	planChanges(want, have, p, d)
	planBootstrap(want, have, p, d)
	planMeta(want, have, d)
	planRemovals(want, have, p, d)
	planKubernetes(want, have, p, d)
	holdUntilReady(want, have, d)
}

// holdUntilReady lists what is still unsettled. It skips machines that are already held, or that are about to act.
func holdUntilReady(want Spec, have Snapshot, d *Decision) {
	if want.OwnsControlPlane() && len(d.Steps) == 0 && !have.Etcd.Known {
		d.hold("", "etcd does not respond yet%s%s", Because(have.Etcd.Cause), tooFewVoters(want, have))
	}

	for _, m := range want.all() {
		if d.concerns(m.Name) {
			continue
		}

		if reason := NotReady(want, have, m); reason != "" {
			d.hold(m.Name, "%s", reason)
		} else if at := have.Machines[m.Name].FoundAt; at != "" {
			// It works. But the next run would connect only to the new address.
			d.hold(m.Name, "responds only at its former address %s, not at %s", at, m.Address)
		}
	}
}
