package timing

import (
	"time"
)

// Delays are the durations of what a machine does by itself. Each is a minimum: the
// simulator adds only its own computing time. A zero field means "at once", but for
// EtcdGiveUp.
type Delays struct {
	// Install is how long a metal machine stays in stage installing.
	Install time.Duration
	// Pull is how long a machine pulls an image that it does not have.
	Pull time.Duration
	// Upgrade is how long the installer of an upgrade runs.
	Upgrade time.Duration
	// Reboot is how long a machine is off the network between two boots.
	Reboot time.Duration
	// Mute is how long the configured API takes connections when it starts, before it answers any. It never answers
	// these.
	Mute time.Duration
	// Boot runs from the moment the configured API is served to cri and kubelet running.
	Boot time.Duration
	// Boots is where a boot waits before cri and the kubelet start, for as long as a test wants it.
	Boots *Gate
	// EtcdStart runs from an accepted Bootstrap (or a restart of a member) to etcd healthy.
	EtcdStart time.Duration
	// EtcdJoin runs from the moment another member can be asked to being its learner.
	EtcdJoin time.Duration
	// EtcdGiveUp is how long an etcd without data tries to join before its service is
	// Failed (Talos: 30 minutes). Zero means that it never gives up.
	EtcdGiveUp time.Duration
	// EtcdPromote is how long a learner catches up before it becomes a voter.
	EtcdPromote time.Duration
	// EtcdHealth is the period of the check of etcd's health that everything but etcd itself
	// goes by (Talos: 20 seconds). Zero means that every change is seen at once.
	EtcdHealth time.Duration
	// EtcdVersion is how long etcd takes to follow the versions of its members, or a requested downgrade (four
	// seconds).
	EtcdVersion time.Duration
	// EtcdMember is how long a member that is to leave waits for etcd to be healthy (Talos:
	// three minutes).
	EtcdMember time.Duration
	// EtcdLeave is how long a member that is to leave keeps trying while etcd refuses
	// because it is not healthy right now (Talos: five minutes).
	EtcdLeave time.Duration
	// APIServer runs from a healthy etcd, or from the replacement of its static pod, to a
	// kube-apiserver that answers.
	APIServer time.Duration
	// Render runs from a changed configuration to the resources and static pods that
	// follow from it.
	Render time.Duration
	// StaticPod runs from a changed static pod to the end of what ran in it: the kubelet
	// looks for changes now and then (Talos: every 20 seconds).
	StaticPod time.Duration
	// StaticPodStart runs from the start of a controller manager or scheduler to its readiness.
	StaticPodStart time.Duration
	// KubeletStart runs from the stop of a kubelet whose configuration changed to its restart.
	KubeletStart time.Duration
	// NodeRegister runs from a reachable Kubernetes API to the machine's Node object.
	NodeRegister time.Duration
	// NodeReady runs from the Node object to its Ready condition (never with CNI none).
	NodeReady time.Duration
	// NodeLost runs from a machine going away to its Ready condition becoming Unknown.
	NodeLost time.Duration
	// Reset is how long a reset works before the machine reboots.
	Reset time.Duration
	// Cordon is how long an upgrade, a reset or a shutdown waits for the node to be cordoned
	// (Talos: one minute).
	Cordon time.Duration
	// TimeSync is how long Bootstrap waits for the time (Talos: five seconds).
	TimeSync time.Duration
	// Shutdown is how long the orderly stop before a reboot or a shutdown takes.
	Shutdown time.Duration
}

// TestDelays are the defaults: long enough that every stage can be observed, short
// enough that a cluster is created in well under a second.
func TestDelays() Delays {
	return Delays{
		Install:     30 * time.Millisecond,
		Pull:        10 * time.Millisecond,
		Upgrade:     30 * time.Millisecond,
		Reboot:      30 * time.Millisecond,
		Boot:        20 * time.Millisecond,
		EtcdStart:   20 * time.Millisecond,
		EtcdJoin:    20 * time.Millisecond,
		EtcdPromote: 30 * time.Millisecond,
		EtcdHealth:  50 * time.Millisecond,
		EtcdVersion: 50 * time.Millisecond,
		EtcdMember:  500 * time.Millisecond,
		EtcdLeave:   2 * time.Second,
		APIServer:   20 * time.Millisecond,

		Render:         5 * time.Millisecond,
		StaticPod:      10 * time.Millisecond,
		StaticPodStart: 10 * time.Millisecond,
		KubeletStart:   10 * time.Millisecond,

		NodeRegister: 10 * time.Millisecond,
		NodeReady:    20 * time.Millisecond,
		NodeLost:     20 * time.Millisecond,
		Cordon:       500 * time.Millisecond,
		TimeSync:     50 * time.Millisecond,
		Reset:        30 * time.Millisecond,
		Shutdown:     10 * time.Millisecond,
	}
}

// CriticalPath is the least time from applied configurations to Ready nodes for a cluster of that many metal
// control-plane machines and any number of workers whose configurations were all applied at once. It is the sum of
// the delays that cannot overlap. Learners are admitted one at a time (etcd's own limit), everything else runs
// concurrently.
func (d Delays) CriticalPath(controlPlanes int) time.Duration {
	first := d.Pull + d.Install + d.Shutdown + d.Reboot + d.Boot + d.Pull + d.EtcdStart
	nodes := d.APIServer + max(d.StaticPodStart, d.NodeRegister) + d.NodeReady

	joins := time.Duration(0)
	if controlPlanes > 1 {
		joins = d.EtcdJoin + time.Duration(controlPlanes-1)*d.EtcdPromote + d.EtcdHealth
	}

	return first + max(joins, nodes)
}
