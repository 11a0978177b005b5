package machineset

import (
	"regexp"
	"strconv"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/healthcheck"
	"github.com/talosop/terraform-provider-talosop/internal/hook"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/timetable"
)

// Changes is how running machines are changed, in plain values.
type Changes struct {
	cluster.Rollout

	// Drain is how nodes are drained; zero values use the policy.
	Drain          cluster.DrainPolicy
	Via            []machineconfig.TalosVersion
	AllowDowngrade bool
	// AllowUntested permits a Talos that is newer than all versions that this build knows.
	AllowUntested bool
	// Snapshots is the folder for etcd snapshots; empty for none.
	Snapshots string
	// KubernetesVia are the Kubernetes releases that upgrades pass through.
	KubernetesVia []machineconfig.KubernetesVersion
	// HealthChecks must pass before machines go out of service, and once they are back.
	HealthChecks []healthcheck.Check
	// Hooks enclose the time that machines are out of service. HooksUnknown is true while a plan does not know which
	// there are.
	Hooks        []hook.Hook
	HooksUnknown bool
	// Canary is the pool that changes first. CanaryUnknown is true while a plan does not know it.
	Canary        cluster.Canary
	CanaryUnknown bool
	// UpdateTimeout limits an update; zero while it is unknown.
	UpdateTimeout time.Duration
	// Window is when machines may go out of service. RefusesOutside is true when plans that need it at another time are
	// refused.
	Window         timetable.Window
	RefusesOutside bool
	// AppearWithin is how long machines of a create may refuse connections; zero uses the policy.
	AppearWithin time.Duration
}

// budgetPattern is a number or a percentage, without leading zeros.
var budgetPattern = regexp.MustCompile(`^([1-9][0-9]{0,4})(%?)$`)

// ReadBudget reads max_unavailable; ok is false when it is neither a number nor a percentage.
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
