package machines

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// What a run on machines in containers does on their host cluster before and after its steps: what
// machines need is there before the first of them is looked at, and nothing is left of a cluster
// that ended.

// ensureHost makes and repairs what the machines of a set need on the host cluster, once that is
// known to be possible. made is whether the host has anything of them, so that the outcome has to be remembered.
// Pods are left as they are: to replace one is a step.
func (s *session) ensureHost(ctx context.Context, recorded machineset.PriorState) (made bool, err error) {
	if s.Route.Host == nil {
		return false, nil
	}

	wanted := s.Route.Wanted(s.Set)

	before, err := s.firstObservation(ctx)
	if err != nil {
		return false, err
	}

	made = present(before)
	s.gone = recorded.GoneOf(s.Set, before)

	if lacks(before, wanted) {
		if err := providerdata.CheckHost(ctx, s.Route.Host, wanted); err != nil {
			return made, err
		}
	}

	if err := s.Route.Host.Ensure(ctx, wanted); err != nil {
		return s.present(ctx, before), fmt.Errorf("make what the machines need on the host cluster: %w", err)
	}

	s.hostEnsured = true

	if err := s.findPeers(ctx, recorded, before); err != nil {
		return true, err
	}

	reasons, err := s.Route.Outdated(ctx, before)
	if err != nil {
		return true, &providerdata.HostSilentError{Err: err}
	}

	for i, m := range s.want.Machines {
		s.want.Machines[i].Replace = reasons[m.Name]
	}

	for _, line := range repaired(before) {
		tf.LogInfo(ctx, "put right on the host cluster", map[string]any{"what": line})
	}

	return true, nil
}

// firstObservation observes the host once, before a run does anything there; every later call gets what the first one
// saw.
func (s *session) firstObservation(ctx context.Context) (workload.Observation, error) {
	if !s.looked {
		s.Seen, s.silent = s.Look(ctx)
		s.looked = true

		if s.silent == nil {
			s.host = s.identity(ctx)
		}
	}

	return s.Seen, s.silent
}

// Look observes the host.
func (s *session) Look(ctx context.Context) (workload.Observation, error) {
	looking, cancel := context.WithTimeoutCause(ctx, containers.HostLimit,
		fmt.Errorf("no answer within %s", containers.HostLimit))
	defer cancel()

	seen, err := s.Route.Host.Observe(looking, s.Route.Spec)
	if err != nil {
		return seen, &providerdata.HostSilentError{Err: err}
	}

	return seen, nil
}

// identity is which cluster the host is; zero where it does not say.
func (s *session) identity(ctx context.Context) workload.Identity {
	asking, cancel := context.WithTimeout(ctx, containers.HostLimit)
	defer cancel()

	found, err := s.Route.Host.Identity(asking)
	if err != nil {
		tf.LogWarn(ctx, "the host cluster does not say which one it is", map[string]any{"reason": err.Error()})
	}

	return found
}

// present is whether the host has anything of the machines.
func present(seen workload.Observation) bool {
	for _, pod := range seen.Machines {
		if pod.Exists {
			return true
		}
	}

	return false
}

// present looks again, after an attempt to make something that failed: what may be there has to be remembered.
func (s *session) present(ctx context.Context, before workload.Observation) bool {
	// An interrupt is no reason to forget.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), containers.HostLimit)
	defer cancel()

	seen, err := s.Look(ctx)

	return err != nil || present(seen) || len(seen.Missing) < len(before.Missing)
}

// lacks is whether anything has to be made.
func lacks(seen workload.Observation, wanted workload.Spec) bool {
	for _, m := range wanted.Machines {
		if !seen.Machines[m.Name].Complete {
			return true
		}
	}

	return len(seen.Missing) > 0
}

// repaired lists what was not as it should be.
func repaired(seen workload.Observation) []string {
	drift := slices.Clone(seen.Drift)
	for _, name := range slices.Sorted(maps.Keys(seen.Machines)) {
		if seen.Machines[name].Exists {
			drift = append(drift, seen.Machines[name].Drift...)
		}
	}

	return workload.Lines(drift)
}

// hostNotEnsured is how a run ended that could not begin. What the host has of the machines is looked after by the next
// one.
func (s *session) hostNotEnsured(ctx context.Context, recorded machineset.PriorState, made bool, err error) run {
	if !made {
		return run{err: err}
	}

	return s.ended(ctx, recorded, lifecycle.Result{Touched: true}, err)
}

// hostAnswers is nil when it does, and where there is none: without it nothing can be removed, and no machine that
// is silent is known to be gone.
func (s *session) hostAnswers(ctx context.Context) error {
	if s.Route.Host == nil {
		return nil
	}

	_, err := s.firstObservation(ctx)

	return err
}

// clearHost removes what the machines of a cluster shared, when its control planes are gone. Workers of other resources
// may stay, as one says that preserves its machines.
func (s *session) clearHost(ctx context.Context) (left *workload.WorkersLeftError, err error) {
	if s.Route.Host == nil || !s.Set.TakesCluster() {
		return nil, nil
	}

	err = s.Route.Host.RemoveShared(ctx, s.Route.Spec)
	if errors.As(err, &left) {
		return left, nil
	}

	if err != nil {
		return nil, fmt.Errorf("remove what the machines shared on the host cluster: %w", err)
	}

	return nil, nil
}

// workersLeft warns of workers that have no cluster any more.
func (r run) workersLeft() finding.List {
	if r.workers == nil {
		return nil
	}

	return finding.List{finding.Warn("Workers are left on the host cluster",
		fmt.Sprintf("The control planes are gone, and with them the cluster. Its workers %s are "+
			"still in namespace %s, where nothing talks to them, and so the namespace stays, too. To remove them: kubectl "+
			"delete statefulsets,services,networkpolicies,persistentvolumeclaims -n %[2]s -l %[3]s",
			finding.Describe(r.workers.Workers), r.workers.Namespace, r.workers.Selector))}
}

// HostReport is what a refresh finds out about machines in containers from their host cluster.
type HostReport struct {
	// Host is which cluster it is, as far as that may be known, and present whether it has any of the machines.
	Host    workload.Identity
	present bool
	// Drift is what of their objects is not as it should be, and pods what those are made of that are as they should
	// be; both by machine.
	Drift map[string]machineset.HostDrift
	Pods  map[string]string
	// Peers are the addresses at which the etcd of control planes is found that are configured from now on.
	Peers map[string]netip.Addr
	// Orphans are called as on the host, and removed are the machines that are to leave.
	Orphans []string
	Removed []cluster.Machine
}

// HostReport looks at the host, or at what was seen of it since a time. It is nil on metal, and where the host does not
// answer. The error is that it is another host than the recorded one.
func (s *session) hostReport(ctx context.Context, since time.Time) (*HostReport, error) {
	machines, ok := s.runner.Fleet.(containers.ContainerFleet)
	if !ok {
		return nil, nil
	}

	seen, err := machines.Watch.Look(ctx, since)
	if err != nil {
		return nil, otherHost(err) // what else it is is told of each of its machines
	}

	reasons, err := s.Route.Outdated(ctx, seen)
	if err != nil {
		return nil, otherHost(err)
	}

	found := &HostReport{
		Host: s.identity(ctx), present: present(seen),
		Drift: map[string]machineset.HostDrift{}, Pods: map[string]string{}, Peers: peersIn(seen),
		Orphans: seen.Orphans, Removed: s.want.Removed,
	}
	wanted := s.Route.Wanted(s.Set)

	for i, m := range wanted.Machines {
		pod := seen.Machines[m.Name]
		repairs := pod.Drift

		// What machines share is told with the first of them.
		if i == 0 {
			repairs = slices.Concat(seen.Missing, seen.Drift, repairs)
		}

		found.Drift[m.Name] = machineset.HostDrift{
			Repairs: workload.Lines(repairs), VolumesLost: pod.VolumesLost, Replace: reasons[m.Name],
			Stays: workload.Lines(pod.Stays),
		}

		if reasons[m.Name] == "" && pod.Exists {
			found.Pods[m.Name] = podDigest(wanted, m.Name)
		}
	}

	return found, nil
}

// otherHost is an error where it is that the host cluster is another one than was recorded.
func otherHost(err error) error {
	var other *containers.OtherHostError
	if errors.As(err, &other) {
		return other
	}

	return nil
}

// podDigest is "" where a pod cannot be told from others.
func podDigest(spec workload.Spec, machine string) string {
	digest, err := workload.PodDigest(spec, machine)
	if err != nil {
		return "" // it then counts as one that is not as talosop made it
	}

	return digest
}

// in puts a report into what was seen of machines; last is what was remembered before. Without a report that stays as
// it is.
func (h *HostReport) in(seen, last record.Machines) record.Machines {
	if h == nil {
		return seen
	}

	recordOrphans(seen, h.Removed)
	h.recordPeers(seen, last)

	for name, drift := range h.Drift {
		seen.Change(name, func(m *record.Machine) {
			m.Drift = append(m.Drift.Without(record.OfHost...), drift.Drift()...)
			m.PodDigest = h.Pods[name]
		})
	}

	return seen
}

// leftUnchanged warns of what differs and stays as it is.
func (h *HostReport) leftUnchanged() finding.List {
	if h == nil {
		return nil
	}

	var lines []string

	for _, name := range slices.Sorted(maps.Keys(h.Drift)) {
		for _, line := range h.Drift[name].Stays {
			lines = append(lines, "\n  - "+name+": "+line)
		}
	}

	if len(lines) == 0 {
		return nil
	}

	return finding.List{finding.Warn("Volumes of machines differ, and are left as they are",
		"No apply puts this right, because the host cluster does not let the "+
			"claims of volumes be changed so, and other ones would be empty. A claim of another size or class than is wanted "+
			"lets every apply that changes the machines end before it does anything."+strings.Join(lines, ""))}
}

// podsOf is what the pods are made of that a run left as they are wanted.
func (s *session) podsOf(have cluster.Snapshot) map[string]string {
	if s.Route.Host == nil {
		return nil
	}

	pods := map[string]string{}

	wanted := s.Route.Wanted(s.Set)
	for _, m := range wanted.Machines {
		if have.Machines[m.Name].Current {
			pods[m.Name] = podDigest(wanted, m.Name)
		}
	}

	return pods
}
