package machines

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// onHost is the platform of machines in containers: their host cluster.
type onHost struct {
	*providerdata.HostRoute

	session *session
	fleet   containers.ContainerFleet
	// looked reports whether the host was observed, seen the result, and silent why it did not answer.
	looked bool
	seen   workload.Observation
	silent error
	// host is the identity of the host cluster, as far as it can be known, and gone the recorded machines that it has
	// nothing of.
	host workload.Identity
	gone []string
	// ensured reports whether it has anything of a machine.
	ensured bool
}

// platformOf is the platform of the machines of a session.
func platformOf(s *session, route providerdata.Route) platform {
	through, ok := route.(*providerdata.HostRoute)
	fleet, watched := s.runner.Fleet.(containers.ContainerFleet)

	if !ok || !watched {
		return metal{}
	}

	return &onHost{HostRoute: through, session: s, fleet: fleet}
}

func (h *onHost) spec() workload.Spec { return h.Spec }

// orphans implements platform. A silent host shows none; the operation gets the same answer, and ends before it does
// anything.
func (h *onHost) orphans(ctx context.Context, recorded machineset.PriorState) []cluster.Machine {
	seen, _ := h.firstObservation(ctx)

	return recorded.Orphans(h.session.Set, seen.Orphans)
}

// ensure implements platform. It leaves pods unchanged: a step replaces them.
func (h *onHost) ensure(ctx context.Context, recorded machineset.PriorState) (made bool, err error) {
	s := h.session
	wanted := h.Wanted(s.Set)

	before, err := h.firstObservation(ctx)
	if err != nil {
		return false, err
	}

	made = present(before)
	h.gone = recorded.GoneOf(s.Set, before)

	if lacks(before, wanted) {
		if err := providerdata.CheckHost(ctx, h.Host, wanted); err != nil {
			return made, err
		}
	}

	if err := h.Host.Ensure(ctx, wanted); err != nil {
		return h.present(ctx, before), fmt.Errorf("make what the machines need on the host cluster: %w", err)
	}

	h.ensured = true

	if err := h.findPeers(ctx, recorded, before); err != nil {
		return true, err
	}

	reasons, err := h.Outdated(ctx, before)
	if err != nil {
		return true, &providerdata.HostSilentError{Err: err}
	}

	for i, m := range s.want.Machines {
		s.want.Machines[i].Replace = reasons[m.Name]
	}

	for _, line := range repaired(before) {
		tf.LogInfo(ctx, "repaired on the host cluster", map[string]any{"what": line})
	}

	return true, nil
}

// firstObservation observes the host once, before a run does anything there; later calls get the same result.
func (h *onHost) firstObservation(ctx context.Context) (workload.Observation, error) {
	if !h.looked {
		h.seen, h.silent = h.look(ctx)
		h.looked = true

		if h.silent == nil {
			h.host = h.identity(ctx)
		}
	}

	return h.seen, h.silent
}

// look observes the host.
func (h *onHost) look(ctx context.Context) (workload.Observation, error) {
	looking, cancel := context.WithTimeoutCause(ctx, containers.HostLimit,
		fmt.Errorf("no answer within %s", containers.HostLimit))
	defer cancel()

	seen, err := h.Host.Observe(looking, h.Spec)
	if err != nil {
		return seen, &providerdata.HostSilentError{Err: err}
	}

	return seen, nil
}

// identity is the identity of the host; zero when it does not report one.
func (h *onHost) identity(ctx context.Context) workload.Identity {
	asking, cancel := context.WithTimeout(ctx, containers.HostLimit)
	defer cancel()

	found, err := h.Host.Identity(asking)
	if err != nil {
		tf.LogWarn(ctx, "the host cluster does not say which one it is", map[string]any{"reason": err.Error()})
	}

	return found
}

// present reports whether the host has anything of the machines.
func present(seen workload.Observation) bool {
	for _, pod := range seen.Machines {
		if pod.Exists {
			return true
		}
	}

	return false
}

// present observes again after a failed attempt to create something: what may exist has to be recorded.
func (h *onHost) present(ctx context.Context, before workload.Observation) bool {
	// An interrupt must not prevent the record.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), containers.HostLimit)
	defer cancel()

	seen, err := h.look(ctx)

	return err != nil || present(seen) || len(seen.Missing) < len(before.Missing)
}

// lacks reports whether anything has to be created.
func lacks(seen workload.Observation, wanted workload.Spec) bool {
	for _, m := range wanted.Machines {
		if !seen.Machines[m.Name].Complete {
			return true
		}
	}

	return len(seen.Missing) > 0
}

// repaired lists what differed from the wanted state.
func repaired(seen workload.Observation) []string {
	drift := slices.Clone(seen.Drift)
	for _, name := range slices.Sorted(maps.Keys(seen.Machines)) {
		if seen.Machines[name].Exists {
			drift = append(drift, seen.Machines[name].Drift...)
		}
	}

	return workload.Lines(drift)
}

// answers implements platform.
func (h *onHost) answers(ctx context.Context, record machineset.Record) error {
	seen, err := h.firstObservation(ctx)
	if err == nil {
		h.gone = record.GoneOf(h.session.Set, seen)
	}

	return err
}

// clear implements platform.
func (h *onHost) clear(ctx context.Context) (left *workload.WorkersLeftError, err error) {
	if !h.session.Set.TakesCluster() {
		return nil, nil
	}

	err = h.Host.RemoveShared(ctx, h.Spec)
	if errors.As(err, &left) {
		return left, nil
	}

	if err != nil {
		return nil, fmt.Errorf("remove what the machines shared on the host cluster: %w", err)
	}

	return nil, nil
}

// workersLeft warns of workers whose cluster is gone.
func (r run) workersLeft() finding.List {
	if r.workers == nil {
		return nil
	}

	return finding.List{workersLeft.With(finding.Args{
		"machines": r.workers.Workers, "namespace": r.workers.Namespace, "selector": r.workers.Selector,
	})}
}

// report implements platform.
func (h *onHost) report(ctx context.Context, recorded machineset.PriorState, since time.Time) (hostReport, error) {
	s := h.session

	seen, err := h.fleet.Watch.Look(ctx, since)
	if err != nil {
		return hostReport{}, otherHost(err) // other errors are reported for each machine
	}

	reasons, err := h.Outdated(ctx, seen)
	if err != nil {
		return hostReport{}, otherHost(err)
	}

	found := hostReport{
		host: h.identity(ctx), present: present(seen),
		drift: map[string]machineset.HostDrift{}, pods: map[string]string{}, peers: peersIn(seen),
		orphans: recorded.Orphans(s.Set, seen.Orphans), removed: s.want.Removed,
	}
	wanted := h.Wanted(s.Set)

	for i, m := range wanted.Machines {
		pod := seen.Machines[m.Name]
		repairs := pod.Drift

		// Shared objects are reported with the first machine.
		if i == 0 {
			repairs = slices.Concat(seen.Missing, seen.Drift, repairs)
		}

		found.drift[m.Name] = machineset.HostDrift{
			Repairs: workload.Lines(repairs), VolumesLost: pod.VolumesLost, Replace: reasons[m.Name],
			Stays: workload.Lines(pod.Stays),
		}

		if reasons[m.Name] == "" && pod.Exists {
			found.pods[m.Name] = podDigest(wanted, m.Name)
		}
	}

	return found, nil
}

// otherHost is an error if err says that the host cluster differs from the recorded one.
func otherHost(err error) error {
	var other *containers.OtherHostError
	if errors.As(err, &other) {
		return other
	}

	return nil
}

// podDigest is "" when a pod has no digest.
func podDigest(spec workload.Spec, machine string) string {
	digest, err := workload.PodDigest(spec, machine)
	if err != nil {
		return "" // it then counts as drift
	}

	return digest
}

// in puts a report into the observations of machines; last is the previous record.
func (h hostReport) in(seen, last record.Machines) record.Machines {
	recordOrphans(seen, h.removed)
	h.recordPeers(seen, last)

	for name, drift := range h.drift {
		seen.Change(name, func(m *record.Machine) {
			m.Drift = append(m.Drift.Without(record.OfHost...), drift.Drift()...)
			m.PodDigest = h.pods[name]
		})
	}

	return seen
}

// leftUnchanged warns of drift that is not repaired.
func (h hostReport) leftUnchanged(p machineset.Set) finding.List {
	var claims []string

	for _, name := range slices.Sorted(maps.Keys(h.drift)) {
		for _, line := range h.drift[name].Stays {
			claims = append(claims, name+": "+line)
		}
	}

	if len(claims) == 0 {
		return nil
	}

	return finding.List{volumesDiffer.With(finding.Args{"object": objectOf(p), "claims": claims})}
}

// end implements platform. The pods of a run are the inputs of those that it left as wanted.
func (h *onHost) end(done *run) {
	done.host, done.gone, done.Pods = h.host, h.gone, map[string]string{}
	done.result.Touched = done.result.Touched || h.ensured

	wanted := h.Wanted(h.session.Set)
	for _, m := range wanted.Machines {
		if done.result.Snapshot.Machines[m.Name].Current {
			done.Pods[m.Name] = podDigest(wanted, m.Name)
		}
	}
}
