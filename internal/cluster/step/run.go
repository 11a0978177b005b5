package step

import (
	"cmp"
	"time"
)

// Run is what a run did to a machine, and what it learned from several observations.
type Run struct {
	// Since is when Access or Stage last changed, as observed by this run.
	Since time.Time
	// Fresh is true when this run observed the machine in maintenance mode, or running without etcd data, and no other
	// client can have bootstrapped it since: it has answered ever since, or is in its FirstBoot.
	Fresh bool
	// FirstBoot is true once this run began to give the machine its first configuration, until it answers with an etcd
	// that waits. Before that it accepts no bootstrap.
	FirstBoot bool
	// Busy names the running step on the machine.
	Busy string
	// InUpgrade is true while that step is part of a Kubernetes upgrade.
	InUpgrade bool
	// WasMember is true once this run observed the machine as a member.
	WasMember bool
	// Started is true once this run observed that Talos had started on the machine as a member: an installation answers
	// as a member, too.
	Started bool
	// Resetting is true once this run requested the machine's reset, until it returns as a member because the reset did
	// not happen.
	Resetting bool
	// KubeletRestarted is true once this run restarted the kubelet in this boot.
	KubeletRestarted bool
	// BeginsEtcd is true while a step of this run begins etcd on the machine: it observes all others again, and then
	// makes the call.
	BeginsEtcd bool
	// BootstrapSent is true once this run began to request a bootstrap of the machine, whatever the result of the call.
	// No other machine is asked then.
	BootstrapSent bool
	// RebootedFrom is the boot in which this run rebooted the machine. Until it answers from another one, it is going
	// down.
	RebootedFrom string
	// Operated is true once this run did the requested operation.
	Operated bool
	// Upgraded is the last upgrade that this run completed on the machine. If it rebooted since and does not run that
	// version, Talos rolled it back.
	Upgraded UpgradeMark
	// Pulled is the Kubernetes version whose images this run pulled on the machine.
	Pulled string
	// StampsBefore are the StaticPods from before this run gave the machine other Kubernetes keys: Talos changes them a
	// moment later. They are nil while it gave it none.
	StampsBefore map[string]string
}

// UpgradeMark identifies an upgrade, and the boot in which it was made.
type UpgradeMark struct {
	BootID, Version, Schematic string
	// Booted is true once the machine answered from another boot than that one.
	Booted bool
}

// Next is the state of a machine after a new observation. It carries over what this run knows and what the new
// observation does not show. at is the time of the observation.
func (s MachineState) Next(fresh MachineState, at time.Time) MachineState {
	sameBoot := fresh.BootID == "" || fresh.BootID == s.BootID

	fresh.Run = Run{
		Since:         s.Since,
		WasMember:     s.WasMember || fresh.Access == Member,
		Started:       s.Started || fresh.Access == Member && (fresh.Stage == StageRunning || fresh.EtcdService != ""),
		BootstrapSent: s.BootstrapSent, Pulled: s.Pulled, Operated: s.Operated,
		KubeletRestarted: s.KubeletRestarted && sameBoot,
		RebootedFrom:     s.RebootedFrom,
		Upgraded:         s.Upgraded,
		FirstBoot:        s.FirstBoot && !fresh.WithoutEtcd(),
		// A machine that went away and is a member again was not reset.
		Resetting: s.Resetting && (fresh.Access != Member || s.Access == Member),
	}

	if s.Access != fresh.Access || s.Stage != fresh.Stage || s.Since.IsZero() {
		fresh.Since = at
	}

	if sameBoot {
		fresh.StampsBefore = s.StampsBefore
	}

	fresh.Upgraded.Booted = s.Upgraded.Booted ||
		s.Upgraded.Version != "" && fresh.BootID != "" && fresh.BootID != s.Upgraded.BootID

	unbroken := s.Fresh && (fresh.Answers() || fresh.FirstBoot)
	fresh.Fresh = (unbroken || fresh.WithoutEtcd()) && !fresh.BootstrapSent && !fresh.BootstrapRequested &&
		!fresh.EtcdService.ProvesData()

	fresh.NodeName = cmp.Or(fresh.NodeName, s.NodeName)

	// Silence does not make it another machine.
	if fresh.Access == Unreachable {
		fresh.UUID = s.UUID
	}

	if fresh.Stopped {
		fresh.TalosVersion = cmp.Or(fresh.TalosVersion, s.TalosVersion)
	}

	return fresh
}

// Begin records that a step runs on the machine.
func (s *MachineState) Begin(op Step) {
	s.Busy, s.BeginsEtcd, s.InUpgrade = "in progress: "+op.String(), BeginsEtcd(op), op.UpgradesKubernetes()
	op.begins(s)
}

// End records that a step ended and, after a success, its known effects until the machine is asked again.
func (s *MachineState) End(op Step, err error, at time.Time) {
	s.Busy, s.BeginsEtcd, s.InUpgrade = "", false, false

	if err == nil {
		op.ends(s, at)
	}
}

// reboot records that the machine goes down from its current boot.
func (s *MachineState) reboot(cause string, at time.Time) {
	s.RebootedFrom = s.BootID
	s.unsee(cause, at)
}

// unsee records that the observation of the machine is outdated, and that no observation has to wait for its next
// answer.
func (s *MachineState) unsee(cause string, at time.Time) {
	s.Access, s.Stage, s.Ready, s.Cause, s.Since = Unreachable, "", false, cause, at
	s.Stopped, s.VolumesLost = false, false
}
