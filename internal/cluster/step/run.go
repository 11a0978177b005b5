package step

import (
	"cmp"
	"time"
)

// Run is what a run did to a machine, and what it learned of it by more than one observation.
type Run struct {
	// Since is when Access or Stage last changed, as far as this run saw.
	Since time.Time
	// Fresh is true when this run saw the machine in maintenance, or running
	// without etcd data, and nobody else can have bootstrapped it since: it answered ever
	// after, or is in its FirstBoot.
	Fresh bool
	// FirstBoot is true once this run began to give the machine its first configuration, until
	// it answers with an etcd that waits. Before that it takes no bootstrap from anybody.
	FirstBoot bool
	// Busy names the step that is running on the machine right now.
	Busy string
	// InUpgrade is true while that step is one of an upgrade of Kubernetes.
	InUpgrade bool
	// WasMember is true once this run saw the machine as a member.
	WasMember bool
	// Resetting is true once this run asked the machine to reset, until it comes
	// back as a member because the reset did not happen.
	Resetting bool
	// KubeletRestarted is true once this run restarted the kubelet in this boot.
	KubeletRestarted bool
	// BeginsEtcd is true while a step of this run is under way with which etcd begins on the machine: it looks at all
	// others again, and then calls.
	BeginsEtcd bool
	// BootstrapSent is true once this run began to ask the machine to bootstrap
	// etcd, whatever became of the call. No other machine is asked then.
	BootstrapSent bool
	// RebootedFrom is the boot in which this run rebooted the machine; until it
	// answers from another one it is on its way down.
	RebootedFrom string
	// Operated is true once this run did the operation that was asked for.
	Operated bool
	// Upgraded is the last upgrade that this run completed on the machine. One that
	// rebooted since and does not run it was rolled back by Talos.
	Upgraded UpgradeMark
	// Pulled is the version of Kubernetes whose images this run fetched on the machine.
	Pulled string
	// StampsBefore are the StaticPods from before this run gave the machine other keys of Kubernetes: Talos makes others a
	// moment later. They are nil while it gave it none.
	StampsBefore map[string]string
}

// UpgradeMark names an upgrade, and the boot in which it was made.
type UpgradeMark struct {
	BootID, Version, Schematic string
	// Booted is true once the machine answered from another boot than that one.
	Booted bool
}

// Next is the state of a machine that was observed anew: what this run knows of it is carried on, and so is what the
// fresh observation could not tell. at is the time of the observation.
func (s MachineState) Next(fresh MachineState, at time.Time) MachineState {
	sameBoot := fresh.BootID == "" || fresh.BootID == s.BootID

	fresh.Run = Run{
		Since:         s.Since,
		WasMember:     s.WasMember || fresh.Access == Member,
		BootstrapSent: s.BootstrapSent, Pulled: s.Pulled, Operated: s.Operated,
		KubeletRestarted: s.KubeletRestarted && sameBoot,
		RebootedFrom:     s.RebootedFrom,
		Upgraded:         s.Upgraded,
		FirstBoot:        s.FirstBoot && !fresh.WithoutEtcd(),
		// One that went away and is a member again was not reset.
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

// Begin notes that a step runs on the machine.
func (s *MachineState) Begin(op Step) {
	s.Busy, s.BeginsEtcd, s.InUpgrade = "in progress: "+op.String(), BeginsEtcd(op), op.UpgradesKubernetes()
	op.begins(s)
}

// End notes that a step ended, and where it did well what follows from it before the machine is asked again.
func (s *MachineState) End(op Step, err error, at time.Time) {
	s.Busy, s.BeginsEtcd, s.InUpgrade = "", false, false

	if err == nil {
		op.ends(s, at)
	}
}

// reboot notes that the machine goes down from the boot in which it is.
func (s *MachineState) reboot(cause string, at time.Time) {
	s.RebootedFrom = s.BootID
	s.unsee(cause, at)
}

// unsee notes that what was observed of the machine no longer holds, and that nobody has to wait for its next words.
func (s *MachineState) unsee(cause string, at time.Time) {
	s.Access, s.Stage, s.Ready, s.Cause, s.Since = Unreachable, "", false, cause, at
	s.Stopped, s.VolumesLost = false, false
}
