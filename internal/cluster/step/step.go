// Package step is what an apply does to machines: one effect on one machine each, as small values that are compared
// and that a person approves, and the words for machines that they need. Package cluster decides which of them are
// taken, and when; everybody else knows them by their names there. It is pure.
package step

import (
	"fmt"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/metakey"
	"github.com/talosop/terraform-provider-talosop/internal/operation"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// Step is one effect on one machine. Steps are small comparable values, so that
// two plans can be compared, and their String is what a person approves.
type Step interface {
	fmt.Stringer
	// On names the machine the step acts on.
	On() string
}

// Evacuation is what a machine goes through before it is taken out of service.
type Evacuation struct {
	// Node that is cordoned; empty where there is none, or no API to cordon it.
	Node string
	// Drain is true when the node is drained too.
	Drain bool
	// HandOver is true for the leader of etcd, which hands the leadership over.
	HandOver bool
}

// ApplyConfig gives a machine its configuration: to a machine in maintenance
// mode, which installs and joins by itself, or to a member, without a reboot.
type ApplyConfig struct {
	Machine string
	Address string
	Role    Role
	// Digest of the configuration that is sent.
	Digest string
	// Access is how the machine answers, and so the way the configuration takes.
	Access Access
	// Install is the disk that Talos installs itself to; empty where it does not.
	Install string
	// TalosVersion that is installed.
	TalosVersion string
	// Kubernetes is the version that a machine joins with, or that a member keeps where its
	// configuration names none, when the cluster does not run the wanted one yet; else empty.
	Kubernetes string
	// Reboot names the fields for which a member has to reboot; empty when Talos applies the configuration at once.
	Reboot string
	// Staged names the fields for which the configuration waits for the next boot of a member, whoever makes it boot;
	// empty when it does not wait.
	Staged string
	// Try keeps the configuration only when the machine is reached again under it.
	Try bool
	// Container is set for a machine that is a pod.
	Container bool
	// Keys are those that the configuration carries, and Moves says what becomes of the former ones of a member.
	Keys  rotation.Keys
	Moves string
	// Evacuation before a reboot.
	Evacuation
}

// On names the machine.
func (s ApplyConfig) On() string { return s.Machine }

func (s ApplyConfig) String() string {
	moves := s.Moves
	if moves != "" {
		moves = ": " + moves
	}

	switch {
	case s.Access == Member && s.Reboot != "":
		return fmt.Sprintf("apply configuration to %s (%s for %s)%s", s.Machine, s.and(s.restart()), s.Reboot, moves)
	case s.Access == Member && s.Staged != "":
		return fmt.Sprintf("apply configuration to %s (at its next reboot, for %s)%s", s.Machine, s.Staged, moves)
	case s.Access == Member && s.Try:
		return fmt.Sprintf("apply configuration to %s (no reboot, on trial first)%s", s.Machine, moves)
	case s.Access == Member:
		return fmt.Sprintf("apply configuration to %s (no reboot)%s", s.Machine, moves)
	}

	joins := "joins as " + s.Role.String()
	if s.Kubernetes != "" {
		joins += " with Kubernetes " + s.Kubernetes
	}

	if s.Container {
		return fmt.Sprintf("create pod of %s with Talos %s, apply configuration: %s", s.Machine, s.TalosVersion, joins)
	}

	if s.Install == "" {
		return fmt.Sprintf("apply configuration to %s: %s", s.Machine, joins)
	}

	return fmt.Sprintf("apply configuration to %s: installs Talos %s on %s, reboots, %s",
		s.Machine, s.TalosVersion, s.Install, joins)
}

// restart is how the machine begins anew.
func (s ApplyConfig) restart() string {
	if s.Container {
		return "restart"
	}

	return "reboot"
}

// Bootstrap makes a control plane the first member of a new etcd. It happens once in the life of a cluster.
type Bootstrap struct {
	Machine string
}

// On names the machine.
func (s Bootstrap) On() string { return s.Machine }

func (s Bootstrap) String() string { return "bootstrap etcd on " + s.Machine }

// Restore makes a control plane the first member of a new etcd that begins with the data of
// a snapshot. Like [Bootstrap], it happens while no control plane holds data of etcd.
type Restore struct {
	Machine string
	// From is the snapshot, as a person would name it.
	From string
}

// On names the machine.
func (s Restore) On() string { return s.Machine }

func (s Restore) String() string { return fmt.Sprintf("restore etcd on %s from %s", s.Machine, s.From) }

// WriteMeta writes values to a machine's META, the small store beside its system
// disk's boot partition that survives resets and upgrades. Nothing reboots; a network
// configuration takes effect at once.
type WriteMeta struct {
	Machine string
	// Keys that are written, such as "0x0a, 0x0c". The values may be private.
	Keys string
}

// On names the machine.
func (s WriteMeta) On() string { return s.Machine }

func (s WriteMeta) String() string {
	if s.ChangesNetwork() {
		return fmt.Sprintf("write META %s of %s (its network changes at once)", s.Keys, s.Machine)
	}

	return fmt.Sprintf("write META %s of %s", s.Keys, s.Machine)
}

// ChangesNetwork reports whether a network configuration is among the values.
func (s WriteMeta) ChangesNetwork() bool {
	return strings.Contains(s.Keys, metakey.Text(metakey.Network))
}

// dataGoes is said of a pod that has all data of its machine.
const dataGoes = "its data goes with it"

// Upgrade installs another Talos on a machine, or the same with another schematic,
// and reboots it. The image is pulled before the node is cordoned and drained, and a
// leader of etcd hands over first.
//
// The pod of a container is replaced by one with the image, and with all else that is wanted
// of it. Its volumes stay, where it has any.
type Upgrade struct {
	Machine string
	Role    Role
	// From and To are versions; equal when only the schematic changes.
	From, To string
	// Schematic that is wanted; empty when it stays what it is.
	Schematic string
	// Installer is the image.
	Installer string
	// Reinstall is set when nothing changes but the image.
	Reinstall bool
	// Container is set for a machine that is a pod, and Replace when that is replaced for
	// something else than another version of Talos, with the reason.
	Container bool
	Replace   string
	// Loses is set when its data goes with the pod, so that the machine joins anew.
	Loses bool
	Evacuation
}

// On names the machine.
func (s Upgrade) On() string { return s.Machine }

func (s Upgrade) String() string {
	if s.Replace != "" {
		return fmt.Sprintf("replace pod of %s%s: %s", s.Machine, s.asides(), s.Replace)
	}

	how := s.and("reboot")

	switch {
	case s.Loses:
		how = s.and("replace pod, " + dataGoes)
	case s.Container:
		how = s.and("replace pod")
	}

	if s.Reinstall {
		return fmt.Sprintf("upgrade Talos on %s: image %s (%s)", s.Machine, s.Installer, how)
	}

	if s.From == s.To {
		return fmt.Sprintf("upgrade Talos on %s: schematic %s (%s)", s.Machine, ShortID(s.Schematic), how)
	}

	return fmt.Sprintf("upgrade Talos on %s: %s -> %s (%s)", s.Machine, s.From, s.To, how)
}

// asides is what the replacement of a pod comes with.
func (s Upgrade) asides() string {
	switch {
	case s.Loses:
		return " (" + s.and(dataGoes) + ")"
	case s.Drain:
		return " (drain)"
	default:
		return ""
	}
}

// ShortID shortens an id that is a hash, such as that of a schematic, to what tells two apart.
func ShortID(id string) string {
	const enough = 12
	if len(id) <= enough {
		return id
	}

	return id[:enough] + "…"
}

// and lists what a machine goes through, with what follows.
func (e Evacuation) and(end string) string {
	if e.Drain {
		return "drain, " + end
	}

	return end
}

// DowngradeEtcd tells etcd to take its data back to the minor version before, which the members of that one read, too,
// and waits until the machine's member did. Nothing restarts; it is what an older Talos needs first.
type DowngradeEtcd struct {
	Machine string
	// From and To are minor versions such as 3.7.
	From, To string
	// Shared is whether resources with other control planes may do it first.
	Shared bool
}

// On names the machine.
func (s DowngradeEtcd) On() string { return s.Machine }

func (s DowngradeEtcd) String() string {
	line := fmt.Sprintf("downgrade etcd: %s -> %s (its data, told to %s; no restart)", s.From, s.To, s.Machine)
	if s.Shared {
		line += ", unless another resource does it first"
	}

	return line
}

// CancelEtcdDowngrade takes a [DowngradeEtcd] back.
type CancelEtcdDowngrade struct {
	Machine string
	// To is the version that etcd was told to go back to.
	To string
}

// On names the machine.
func (s CancelEtcdDowngrade) On() string { return s.Machine }

func (s CancelEtcdDowngrade) String() string {
	return fmt.Sprintf("cancel the downgrade of etcd to %s (told to %s; no restart)", s.To, s.Machine)
}

// Uncordon makes a node schedulable again that talosop cordoned.
type Uncordon struct {
	Machine string
	Node    string
}

// On names the machine.
func (s Uncordon) On() string { return s.Machine }

func (s Uncordon) String() string { return fmt.Sprintf("uncordon node %s of %s", s.Node, s.Machine) }

// TakeOwnership marks the node of a machine as this resource's. No other resource removes the machine from then on.
type TakeOwnership struct {
	Machine string
	Node    string
	// From is the owner that the node's mark names; empty for none.
	From string
	// Unproven is true where the node has a mark that no key of the cluster authenticates.
	Unproven bool
}

// On names the machine.
func (s TakeOwnership) On() string { return s.Machine }

func (s TakeOwnership) String() string {
	switch {
	case s.Unproven:
		return fmt.Sprintf("mark node %s of %s as owned by this resource: its owner mark is not authentic", s.Node, s.Machine)
	case s.From == "":
		return fmt.Sprintf("mark node %s of %s as owned by this resource", s.Node, s.Machine)
	}

	return fmt.Sprintf("take %s over from another resource: mark its node %s", s.Machine, s.Node)
}

// NoteStaged notes on the node of a machine whether a configuration waits for the machine's next boot, for those who
// look at a cluster and not at configurations.
type NoteStaged struct {
	Machine string
	Node    string
	Waits   bool
}

// On names the machine.
func (s NoteStaged) On() string { return s.Machine }

func (s NoteStaged) String() string {
	if s.Waits {
		return fmt.Sprintf("note on node %s of %s that a configuration waits for its next boot", s.Node, s.Machine)
	}

	return fmt.Sprintf("take off node %s of %s that a configuration waits for its next boot", s.Node, s.Machine)
}

// LeaveEtcd makes a control plane that is to be removed leave etcd. It deletes the machine's copy of the data.
type LeaveEtcd struct {
	Machine string
	// Member is the ID of its member.
	Member string
	Evacuation
}

// On names the machine.
func (s LeaveEtcd) On() string { return s.Machine }

func (s LeaveEtcd) String() string {
	if s.Drain {
		return "take control plane " + s.Machine + " out of etcd (drains it)"
	}

	return "take control plane " + s.Machine + " out of etcd"
}

// RemoveMember removes the etcd member of a machine that lost its data or is gone, through another control plane.
type RemoveMember struct {
	Machine string
	// Member is the ID of the member.
	Member string
	// Via is the machine that is asked.
	Via string
}

// On names the machine.
func (s RemoveMember) On() string { return s.Machine }

func (s RemoveMember) String() string {
	return fmt.Sprintf("remove etcd member %s of %s through %s", s.Member, s.Machine, s.Via)
}

// Reset wipes a machine's state and reboots it into maintenance mode.
type Reset struct {
	Machine string
	Role    Role
	// Graceful resets cordon and drain first, which needs a living cluster.
	Graceful bool
	// Evacuation of a machine that leaves a cluster which lives on.
	Evacuation
	// Last is set on the reset that ends the control plane.
	Last bool
	// Shared is set when other runs may be at work on the same cluster, which ends with
	// this reset: those that have begun finish first.
	Shared bool
	// Container is set for a machine that is a pod: that is deleted, and its volumes, and
	// nothing is left of the machine.
	Container bool
}

// On names the machine.
func (s Reset) On() string { return s.Machine }

func (s Reset) String() string {
	switch {
	case s.Container && s.Last:
		return fmt.Sprintf("delete pod and volumes of %s, the last %s", s.Machine, s.Role)
	case s.Container && s.Drain:
		return fmt.Sprintf("delete pod and volumes of %s %s (drains it)", s.Role, s.Machine)
	case s.Container:
		return fmt.Sprintf("delete pod and volumes of %s %s", s.Role, s.Machine)
	case s.Last:
		return fmt.Sprintf("reset %s, the last %s (wipes its state, reboots to maintenance mode)", s.Machine, s.Role)
	case s.Graceful, s.Drain:
		return fmt.Sprintf("reset %s %s (drains it, wipes its state, reboots to maintenance mode)", s.Role, s.Machine)
	default:
		return fmt.Sprintf("reset %s %s (wipes its state, reboots to maintenance mode)", s.Role, s.Machine)
	}
}

// ReplaceVolumes gives a container new volumes in the place of those that are lost for good,
// so that it comes back without data and joins anew. Destructive.
type ReplaceVolumes struct {
	Machine string
	Role    Role
	// Cause says what became of the old ones.
	Cause string
}

// On names the machine.
func (s ReplaceVolumes) On() string { return s.Machine }

func (s ReplaceVolumes) String() string {
	return fmt.Sprintf("replace volumes of %s %s (its data is lost%s)", s.Role, s.Machine, colon(s.Cause))
}

// RestartKubelet restarts the kubelet of a member that has no node in Kubernetes: a kubelet
// registers when it starts, and at no other time. Pods go on.
type RestartKubelet struct {
	Machine string
}

// On names the machine.
func (s RestartKubelet) On() string { return s.Machine }

func (s RestartKubelet) String() string {
	return "restart the kubelet of " + s.Machine + ", which registers its missing node"
}

// Operate does on a member what somebody asked for.
type Operate struct {
	Machine string
	operation.Operation
	Evacuation
}

// On names the machine.
func (s Operate) On() string { return s.Machine }

func (s Operate) String() string { return s.Operation.On(s.Machine, s.Drain) }

// DeleteNode removes the Kubernetes Node object of a machine that was reset; Talos never removes it.
type DeleteNode struct {
	Machine string
	Node    string
}

// On names the machine.
func (s DeleteNode) On() string { return s.Machine }

func (s DeleteNode) String() string {
	return fmt.Sprintf("delete node %s of %s from Kubernetes", s.Node, s.Machine)
}

func colon(text string) string {
	if text == "" {
		return ""
	}

	return ": " + text
}
