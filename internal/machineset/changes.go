package machineset

import (
	"regexp"
	"strconv"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/healthcheck"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/timetable"
)

// Changes is how machines that run are changed, in plain values.
type Changes struct {
	cluster.Rollout

	// Drain is how nodes are drained; zero values leave it to the policy.
	Drain          cluster.DrainPolicy
	Via            []machineconfig.TalosVersion
	AllowDowngrade bool
	// AllowUntested lets machines run a Talos that is newer than all that this build knows.
	AllowUntested bool
	// Snapshots is the folder for snapshots of etcd; empty for none.
	Snapshots string
	// KubernetesVia are releases of Kubernetes that upgrades pass.
	KubernetesVia []machineconfig.KubernetesVersion
	// HealthChecks have to pass before machines go out of service, and once they are back.
	HealthChecks []healthcheck.Check
	// Window is when machines may be taken out of service, and RefusesOutside whether plans that would do it at another
	// time are refused.
	Window         timetable.Window
	RefusesOutside bool
	// AppearWithin is how long machines of a create may refuse connections; zero leaves it to the policy.
	AppearWithin time.Duration
}

// Policy is a policy with what the user says about changes.
func (p Set) Policy(base cluster.Policy) cluster.Policy {
	base.Rollout, base.Drain.Skip = p.Changes.Rollout, p.Changes.Drain.Skip

	if p.Changes.AppearWithin > 0 {
		base.AppearWithin = p.Changes.AppearWithin
	}

	if p.Changes.Drain.Timeout > 0 {
		base.Drain.Timeout = p.Changes.Drain.Timeout
	}

	if p.Changes.Drain.OnTimeout != "" {
		base.Drain.OnTimeout = p.Changes.Drain.OnTimeout
	}

	return base
}

// budgetPattern is a number or a percentage, without leading zeros.
var budgetPattern = regexp.MustCompile(`^([1-9][0-9]{0,4})(%?)$`)

// ReadBudget reads max_unavailable; ok is false when it is neither a number nor a share.
func ReadBudget(text string) (b cluster.Budget, ok bool) {
	if text == "" {
		return b, true
	}

	parts := budgetPattern.FindStringSubmatch(text)
	if parts == nil {
		return b, false
	}

	number, err := strconv.Atoi(parts[1])

	switch {
	case err != nil:
		return b, false
	case parts[2] == "":
		return cluster.Budget{Count: number}, true
	default:
		return cluster.Budget{Percent: number}, number <= 100
	}
}
