package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// The steps of plans, and the words that they share with the planner.
//
//nolint:revive // each is explained where it is declared
type (
	Role   = step.Role
	Access = step.Access

	Step                = step.Step
	Evacuation          = step.Evacuation
	ApplyConfig         = step.ApplyConfig
	Bootstrap           = step.Bootstrap
	Restore             = step.Restore
	WriteMeta           = step.WriteMeta
	Upgrade             = step.Upgrade
	DowngradeEtcd       = step.DowngradeEtcd
	CancelEtcdDowngrade = step.CancelEtcdDowngrade
	Uncordon            = step.Uncordon
	TakeOwnership       = step.TakeOwnership
	NoteStaged          = step.NoteStaged
	LeaveEtcd           = step.LeaveEtcd
	RemoveMember        = step.RemoveMember
	Reset               = step.Reset
	ReplaceVolumes      = step.ReplaceVolumes
	RestartKubelet      = step.RestartKubelet
	Operate             = step.Operate
	DeleteNode          = step.DeleteNode
	PullImages          = step.PullImages
	UpgradeComponent    = step.UpgradeComponent
	SyncManifests       = step.SyncManifests
)

// The roles, and the ways in which machines answer.
const (
	ControlPlane = step.ControlPlane
	Worker       = step.Worker

	Unobserved  = step.Unobserved
	Unreachable = step.Unreachable
	Maintenance = step.Maintenance
	Member      = step.Member
	Foreign     = step.Foreign
	Gone        = step.Gone
)

// BeginsEtcd reports whether a step makes a control plane the first member of a new etcd.
func BeginsEtcd(step Step) bool {
	switch step.(type) {
	case Bootstrap, Restore:
		return true
	default:
		return false
	}
}

// Restores reports whether any of the steps restores etcd.
func Restores(steps []Step) bool {
	return slices.ContainsFunc(steps, func(s Step) bool { _, is := s.(Restore); return is })
}

// Hold says why work must wait. Time, or the machine itself, may lift it.
type Hold struct {
	// Machine the hold is about; empty for the cluster as a whole.
	Machine string
	Reason  string
}

func (h Hold) String() string { return about(h.Machine, h.Reason) }

// Refusal says why nothing may be sent at all. Waiting does not lift it; the user has to change something.
type Refusal struct {
	Machine string
	Reason  string
	// Remedy is what the user can do.
	Remedy string
}

func (r Refusal) String() string { return about(r.Machine, r.Reason+". "+r.Remedy) }

// Disruptive steps take a machine out of service. Between runs and resources they happen under one lock.
func Disruptive(s Step) bool {
	switch s := s.(type) {
	case Upgrade, LeaveEtcd, RemoveMember, ReplaceVolumes:
		return true
	case ApplyConfig:
		return s.Reboot != ""
	case Operate:
		return s.Reboots()
	case UpgradeComponent:
		return s.Node != ""
	case Reset:
		return s.Node != "" || s.Shared
	default:
		return false
	}
}

// OneByOne reports whether a step, although it takes nothing out of service, reaches the
// machines of a cluster one at a time, so that a mistake in it does not reach them all:
// another configuration of a control plane, another network in META. Within a resource
// [Plan] sees to that, between resources it is the lock of the disruptive steps.
func OneByOne(s Step) bool {
	switch s := s.(type) {
	case ApplyConfig:
		return s.Access == Member && s.Role == ControlPlane
	case WriteMeta:
		return s.ChangesNetwork()
	case UpgradeComponent:
		return s.Role == ControlPlane
	case SyncManifests, DowngradeEtcd, CancelEtcdDowngrade, Operate:
		return true
	default:
		return false
	}
}

func about(machine, text string) string {
	if machine == "" {
		return text
	}

	return machine + ": " + text
}

// Decision is what the planner answers for one pair of wish and observation.
// With refusals there are no steps. Without steps, holds and refusals the work
// is done, but for what is kept.
type Decision struct {
	// Steps that may run now, in order, at most one on each machine. They are
	// independent of each other and may run side by side.
	Steps []Step
	// Holds is everything that has to wait, and why.
	Holds []Hold
	// Refusals end the run.
	Refusals []Refusal
	// Kept is what is not done because machines are locked. Nobody waits for it.
	Kept []Kept
	// Yields is true when what is left waits for machines of another resource, whose run needs the lock for that, or for
	// the maintenance window, which opens at Opens.
	Yields bool
	Opens  time.Time

	// named are the machines of steps and holds, while a plan is made.
	named map[string]bool
}

// Done reports whether nothing is left to do or to wait for.
func (d Decision) Done() bool {
	return len(d.Steps) == 0 && len(d.Holds) == 0 && len(d.Refusals) == 0
}

func (d *Decision) step(s Step) {
	d.Steps = append(d.Steps, s)
	d.name(s.On())
}

func (d *Decision) name(machine string) {
	if d.named != nil {
		d.named[machine] = true
	}
}

func (d *Decision) hold(machine, format string, args ...any) {
	d.Holds = append(d.Holds, Hold{Machine: machine, Reason: fmt.Sprintf(format, args...)})
	d.name(machine)
}

func (d *Decision) refuse(machine, reason, remedy string) {
	d.Refusals = append(d.Refusals, Refusal{Machine: machine, Reason: reason, Remedy: remedy})
}
