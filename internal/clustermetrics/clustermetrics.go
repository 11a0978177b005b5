// Package clustermetrics is the observed health of a cluster as metrics. They change only when the cluster does, so
// that an output of them does not change in every plan.
package clustermetrics

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/openmetrics"
	"github.com/talosop/terraform-provider-talosop/internal/statuspage"
)

// Text is an observation as OpenMetrics text. It has no reasons, which may contain private names, and no time of the
// observation.
func Text(o statuspage.Observation) (string, error) {
	var families []openmetrics.Family

	for _, part := range [][]openmetrics.Family{
		conditions(o), machines(o), drift(o), etcd(o), certificates(o), operations(o), backups(o),
	} {
		families = append(families, part...)
	}

	for i := range families {
		families[i].Labels = append([]string{"cluster"}, families[i].Labels...)

		for n, s := range families[i].Samples {
			families[i].Samples[n].Labels = append([]string{o.Name}, s.Labels...)
		}
	}

	return openmetrics.Text(families)
}

func conditions(o statuspage.Observation) []openmetrics.Family {
	healthy := openmetrics.Family{Name: "talosop_cluster_healthy", Help: "Whether every condition of the cluster is true."}
	condition := openmetrics.Family{Name: "talosop_cluster_condition",
		Help:   "1 for the status of a condition (true, false or unknown), 0 for the others.",
		Labels: []string{"condition", "status"}}
	since := openmetrics.Family{Name: "talosop_cluster_condition_last_change_timestamp_seconds", Unit: "seconds",
		Help: "When the status of a condition changed, if its source keeps a record.", Labels: []string{"condition"}}

	healthy.Add(openmetrics.Of(o.Health.Healthy()))

	for _, c := range o.Health.Conditions {
		addStatus(&condition, c.Status, c.Name)

		if !c.Since.IsZero() {
			since.Add(timestamp(c.Since), c.Name)
		}
	}

	return []openmetrics.Family{healthy, condition, since}
}

// addStatus adds a sample for each status.
func addStatus(f *openmetrics.Family, is health.Status, labels ...string) {
	for _, status := range []health.Status{health.True, health.False, health.Unknown} {
		f.Add(openmetrics.Of(is == status), append(slices.Clone(labels), strings.ToLower(string(status)))...)
	}
}

func timestamp(t time.Time) float64 { return float64(t.Unix()) }

func machines(o statuspage.Observation) []openmetrics.Family {
	info := openmetrics.Family{Name: "talosop_machine_info", Help: "Role, address and versions of a machine.",
		Labels: []string{"machine", "role", "address", "talos_version", "kubernetes_version"}}
	status := openmetrics.Family{Name: "talosop_machine_status",
		Help:   "1 for the status of a machine (true is healthy, false or unknown), 0 for the others.",
		Labels: []string{"machine", "status"}}
	staged := openmetrics.Family{Name: "talosop_machine_staged",
		Help: "Whether a machine applies a staged configuration at its next boot.", Labels: []string{"machine"}}
	unmanaged := openmetrics.Family{Name: "talosop_unmanaged_nodes", Help: "Nodes without a talosop resource."}

	for _, m := range o.Health.Machines {
		name, kubernetes := cmp.Or(m.Name, m.Address, m.Title), ""

		if m.Node != nil {
			kubernetes = m.Node.KubeletVersion
		}

		info.Add(1, name, m.Role.String(), m.Address, m.TalosVersion, kubernetes)
		addStatus(&status, m.Status, name)

		if m.Node != nil && o.Health.Staged != nil {
			staged.Add(openmetrics.Of(m.Node.Staged), name)
		}
	}

	if o.Health.Unmanaged != nil {
		unmanaged.Add(float64(len(o.Health.Unmanaged)))
	}

	return []openmetrics.Family{info, status, staged, unmanaged}
}

func drift(o statuspage.Observation) []openmetrics.Family {
	differences := openmetrics.Family{Name: "talosop_machine_differences",
		Help: "Differences of a machine from the last apply.", Labels: []string{"machine"}}

	for name, found := range o.Drift {
		differences.Add(float64(len(found)), name)
	}

	slices.SortFunc(differences.Samples, func(a, b openmetrics.Sample) int { return slices.Compare(a.Labels, b.Labels) })

	return []openmetrics.Family{differences}
}

func etcd(o statuspage.Observation) []openmetrics.Family {
	member := []string{"member"}
	healthy := openmetrics.Family{Name: "talosop_etcd_member_healthy",
		Help: "Whether an etcd member votes, follows a leader and reports no error.", Labels: member}
	leader := openmetrics.Family{Name: "talosop_etcd_member_leader", Help: "Whether an etcd member is the leader.",
		Labels: member}
	learner := openmetrics.Family{Name: "talosop_etcd_member_learner", Help: "Whether an etcd member does not vote yet.",
		Labels: member}
	quorum := openmetrics.Family{Name: "talosop_etcd_quorum", Help: "Voting etcd members that must work."}
	alarms := openmetrics.Family{Name: "talosop_etcd_alarms", Help: "Active alarms of etcd."}

	for _, m := range o.Health.Etcd.Members {
		healthy.Add(openmetrics.Of(len(m.Errors) == 0), m.NameOrID())
		leader.Add(openmetrics.Of(m.Leader), m.NameOrID())
		learner.Add(openmetrics.Of(m.Learner), m.NameOrID())
	}

	if o.Health.Etcd.Quorum > 0 {
		quorum.Add(float64(o.Health.Etcd.Quorum))
	}

	if o.Health.Etcd.Reachable {
		alarms.Add(float64(len(o.Health.Etcd.Alarms)))
	}

	return []openmetrics.Family{healthy, leader, learner, quorum, alarms}
}

func certificates(o statuspage.Observation) []openmetrics.Family {
	labels := []string{"certificate", "server"}
	expiry := openmetrics.Family{Name: "talosop_certificate_expiry_timestamp_seconds", Unit: "seconds",
		Help: "When a certificate expires.", Labels: labels}
	due := openmetrics.Family{Name: "talosop_certificate_due",
		Help: "Whether a certificate expires within expires_within, or has expired.", Labels: labels}

	for _, c := range o.Health.Certificates {
		expiry.Add(timestamp(c.NotAfter), c.Name, c.Server)
		due.Add(openmetrics.Of(c.Due), c.Name, c.Server)
	}

	return []openmetrics.Family{expiry, due}
}

func operations(o statuspage.Observation) []openmetrics.Family {
	pending := openmetrics.Family{Name: "talosop_pending_operations",
		Help: "Operations that a plan holds for the machines."}
	if o.Operations != nil {
		pending.Add(float64(len(o.Operations)))
	}

	return []openmetrics.Family{pending}
}

func backups(o statuspage.Observation) []openmetrics.Family {
	count := openmetrics.Family{Name: "talosop_etcd_backups", Help: "Snapshots of etcd by whether they can be restored.",
		Labels: []string{"restorable"}}
	newest := openmetrics.Family{Name: "talosop_etcd_backup_newest_timestamp_seconds", Unit: "seconds",
		Help: "When the newest snapshot of etcd that can be restored was taken."}

	if o.Backups == nil {
		return nil
	}

	var last time.Time

	number := map[bool]int{}

	for _, b := range o.Backups {
		number[b.Problem == ""]++

		if b.Problem == "" && b.Time.After(last) {
			last = b.Time
		}
	}

	for _, restorable := range []bool{true, false} {
		count.Add(float64(number[restorable]), strconv.FormatBool(restorable))
	}

	if !last.IsZero() {
		newest.Add(timestamp(last))
	}

	return []openmetrics.Family{count, newest}
}
