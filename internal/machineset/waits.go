package machineset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// What keeps the machines of a resource from being Ready. A refresh records it as drift, and the plan of that record
// waits for it. It includes machines that start after a killed run.

// WithTroubles adds to the drift of machines why they are not ready. A machine that did not answer keeps its recorded
// drift. Leaving machines are checked too: in a resource that grew in a killed run, the new pods look like leaving
// ones, and the next plan wants them.
func WithTroubles(
	drift map[string]record.Drift, want cluster.Spec, have cluster.Snapshot, recorded PriorState,
	troubles []health.Trouble,
) map[string]record.Drift {
	reasons, etcd := map[string]string{}, ""

	judged := want
	judged.Machines = want.Removed

	for _, t := range slices.Concat(troubles, health.TroublesOf(judged, have)) {
		switch {
		case t.Machine != "":
			reasons[t.Machine] = t.Reason
		case t.OfEtcd() && etcd == "":
			etcd = t.Reason
		}
	}

	for _, m := range slices.Concat(want.Machines, want.Removed) {
		now, answered := drift[m.Name]
		if !answered {
			now = recorded.Seen[m.Name].Drift.Without(record.NotReady, record.EtcdNotHealthy)
		}

		if reason := reasons[m.Name]; reason != "" && !now.SaysNotReady() {
			now = append(now, record.Difference{Kind: record.NotReady, Found: reason})
		}

		if m.Role == step.ControlPlane && etcd != "" {
			now = append(now, record.Difference{Kind: record.EtcdNotHealthy, Found: etcd})
		}

		if answered || len(now) > 0 || len(recorded.Seen[m.Name].Drift) > 0 {
			drift[m.Name] = now
		}
	}

	return drift
}

// WarnOfTroubles warns about machines that are not Ready, with the reasons. WarnOfUnanswered warns about those that are
// unreachable.
func WarnOfTroubles(want cluster.Spec, have cluster.Snapshot, troubles []health.Trouble) finding.List {
	unreachable, _, _ := Unanswered(want, have)

	troubles = slices.DeleteFunc(slices.Clone(troubles), func(t health.Trouble) bool {
		return slices.Contains(unreachable.Machines, t.Machine)
	})
	if len(troubles) == 0 {
		return nil
	}

	var machines []string
	for _, t := range troubles {
		machines = append(machines, t.Machine)
	}

	return finding.List{clusterUnhealthy.With(finding.Args{"cluster": want.Name,
		"machines": distinct(finding.NonEmpty(machines...)), "problems": LinesOfTroubles(troubles)})}
}

// LinesOfTroubles lists troubles: first those of the cluster, then those of machines, with equal ones together.
func LinesOfTroubles(troubles []health.Trouble) []string {
	var (
		lines    []string
		machines finding.Alike[string]
	)

	for _, t := range troubles {
		if t.Machine == "" {
			lines = append(lines, fmt.Sprintf("%s: %s", t.Condition, t.Reason))

			continue
		}

		machines.Add(t.Reason, t.Machine)
	}

	for reason, names := range machines.All() {
		lines = append(lines, finding.Describe(names)+": "+reason)
	}

	return lines
}

// waitsFor lists what an apply waits for without a step: machines that were not ready in the last observation, and
// etcd.
func (r PriorState) waitsFor(p Set, steps []step.Step) []string {
	var (
		names []string
		etcd  string
	)

	for _, name := range p.Names() {
		drift := r.Seen[name].Drift
		if etcd == "" {
			etcd = drift.First(record.EtcdNotHealthy).Found
		}

		if drift.SaysNotReady() && !acts(steps, name) {
			names = append(names, name)
		}
	}

	return waitLines(names, etcd, steps)
}

// Waits is what the plan after a refresh with this snapshot will wait for, beside its steps.
func Waits(want cluster.Spec, have cluster.Snapshot, steps []step.Step) []string {
	var (
		names []string
		etcd  string
	)

	for _, t := range health.TroublesOf(want, have) {
		switch {
		case t.Machine != "" && !acts(steps, t.Machine):
			names = append(names, t.Machine)
		case t.Machine == "" && t.OfEtcd() && etcd == "":
			etcd = t.Reason
		}
	}

	slices.Sort(names)

	return waitLines(names, etcd, steps)
}

func acts(steps []step.Step, machine string) bool {
	return slices.ContainsFunc(steps, func(s step.Step) bool { return s.On() == machine })
}

// waitLines skips etcd where a step begins one: the apply does not wait for the lost one.
func waitLines(machines []string, etcd string, steps []step.Step) []string {
	var lines []string

	if len(machines) > 0 {
		lines = append(lines, "wait for "+strings.Join(machines, ", "))
	}

	if etcd != "" && !slices.ContainsFunc(steps, step.BeginsEtcd) {
		lines = append(lines, "wait for etcd: "+etcd)
	}

	return lines
}
