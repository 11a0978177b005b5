package lifecycle

import (
	"context"
	"io"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/hook"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

// Machine is the Talos API of one machine.
//
// Every method is bounded by its context and by a limit of the adapter. An error that a retry cannot fix is marked
// with wait.Permanent. After any other error, observe again and then decide.
type Machine interface {
	// Observe observes the machine. It has no error: Access and Cause describe a machine that does not answer, or
	// answers with another identity. It tries the authenticated connection first, and maintenance mode second.
	Observe(ctx context.Context) step.MachineState
	// ApplyConfig sends a configuration. access is how the machine answered when it was observed. In Maintenance the
	// configuration is sent without authentication (pinned to the certificate fingerprint when one is given), and the
	// call returns once the machine left maintenance mode. A Member gets it authenticated, without a reboot, and a
	// change that needs one is a permanent error. A non-empty uuid is compared with the machine's own on the same
	// connection before anything is sent. Safe to repeat.
	ApplyConfig(ctx context.Context, config []byte, access step.Access, uuid string) error
	// Bootstrap makes the machine the first member of a new etcd. It reads the machine's event log first and does
	// nothing when this boot already accepted a bootstrap. On Talos, a second call before etcd has data stops etcd
	// permanently. Existing data is not an error.
	Bootstrap(ctx context.Context) error
	// Restore is Bootstrap with the data of a snapshot. It uploads the snapshot first, which takes minutes for a large
	// one, and then calls confirm, whose error leaves etcd unchanged. It returns once etcd has started with the data. A
	// snapshot that Talos or etcd rejects is a permanent error with their message.
	Restore(ctx context.Context, snapshot io.Reader, confirm func(context.Context) error) error
	// EtcdMembers lists the members as this machine sees them. Control plane only.
	EtcdMembers(ctx context.Context) ([]etcdstate.Member, error)
	// TryConfig gives a Member a configuration that Talos reverts after the given time, unless an ApplyConfig keeps it
	// before.
	TryConfig(ctx context.Context, config []byte, uuid string, revert time.Duration) error
	// StageConfig stores a configuration for the next boot of a Member. It replaces a configuration that was staged
	// before. Safe to repeat.
	StageConfig(ctx context.Context, config []byte, uuid string) error
	// Reboot restarts a Member. It returns when the machine is down. Disruptive.
	Reboot(ctx context.Context, uuid string) error
	// Configuration reads the active configuration of a Member: the bytes that were applied.
	Configuration(ctx context.Context) ([]byte, error)
	// PullComponent makes a Member pull the image of a Kubernetes component into the store that the component runs from;
	// minutes on slow links. Safe to repeat. An image that the registry does not have is a permanent error.
	PullComponent(ctx context.Context, component kubenames.Component, image string) error
	// RestartKubelet restarts the kubelet of a Member, which then registers its node. Pods continue to run. Safe to
	// repeat.
	RestartKubelet(ctx context.Context) error
	// RestartService restarts a service of a Member by its ID. Talos permits that for the kubelet and for extension
	// services; any other service is a permanent error. Safe to repeat.
	RestartService(ctx context.Context, service string) error
	// CheckWipe reports whether Talos on a Member wipes volumes and user disks, and changes nothing. What it would refuse
	// is a permanent error.
	CheckWipe(ctx context.Context, selected wipe.Selection) error
	// WipeVolumes wipes volumes and user disks of a Member, and reboots it with its configuration. It returns when the
	// machine is down. Destructive. A control plane whose etcd data is wiped must be out of etcd.
	WipeVolumes(ctx context.Context, selected wipe.Selection, uuid string) error
	// Rollback boots a Member with the Talos from before its last upgrade. It returns when the machine is down.
	// Disruptive, and not safe to repeat: a second rollback undoes the first.
	Rollback(ctx context.Context, uuid string) error
	// DefragmentEtcd frees the disk space that the database of the machine's member does not use. It takes seconds to
	// minutes, in which the member does not answer. Safe to repeat.
	DefragmentEtcd(ctx context.Context) error
	// AwaitKubelet waits until a Member started its kubelet with the image and found it healthy, regardless of which
	// client set the image. The cluster does not distinguish two images of one version. It has a limit of its own. Safe
	// to repeat.
	AwaitKubelet(ctx context.Context, image string) error
	// Manifests are the bootstrap manifests that a control plane renders from its configuration, as decoded JSON
	// objects. kubeProxy is the image of kube-proxy. If configuration is given, an error reports that Talos has not
	// rendered its manifests yet.
	Manifests(ctx context.Context, kubeProxy string, configuration []byte) ([]map[string]any, error)
	// PullImage makes a Member pull an installer image; minutes on slow links. A Talos that cannot pull in advance does
	// nothing. Safe to repeat.
	PullImage(ctx context.Context, image string) error
	// Upgrade installs Talos from an image on a Member and reboots it. For a container it replaces the pod by the wanted
	// one, with the image, even if the pod does not answer. Where these are two calls, confirm is called between them,
	// and its error keeps the machine up. It returns when the machine is down; an observation shows whether the new
	// version runs. An installer that refuses is a permanent error. Disruptive.
	Upgrade(ctx context.Context, image, uuid string, confirm func(context.Context) error) error
	// EtcdView is etcd as this machine's member sees it. Control plane only.
	EtcdView(ctx context.Context) (etcdstate.View, error)
	// EtcdSnapshot streams the database of the machine's member, followed by its SHA-256. A stream that ends without an
	// error may still be incomplete: only the checksum proves it.
	EtcdSnapshot(ctx context.Context, to io.Writer) error
	// ForfeitLeadership makes the machine's member transfer the etcd leadership. It is not an error if the member does
	// not lead or is the only one.
	ForfeitLeadership(ctx context.Context) error
	// LeaveEtcd removes the machine's member from etcd and deletes its data; the machine stays configured. Destructive.
	// A member that already left is not an error.
	LeaveEtcd(ctx context.Context, uuid string) error
	// RemoveMember removes another machine's member, by its ID. Destructive. A missing member is not an error.
	RemoveMember(ctx context.Context, member string) error
	// DowngradeEtcd enables an etcd downgrade to a minor version such as 3.6, and returns once the data of the machine's
	// member has that version. Nothing restarts. Safe to repeat. Any version except the one before that of all members
	// is a permanent error.
	DowngradeEtcd(ctx context.Context, to string) error
	// CancelEtcdDowngrade cancels that; without an enabled downgrade it does nothing. Safe to repeat.
	CancelEtcdDowngrade(ctx context.Context) error
	// WriteMeta writes META values under their keys on a Member; other keys are left alone. Nothing reboots, but a
	// network configuration (0x0a) takes effect at once. Safe to repeat.
	WriteMeta(ctx context.Context, values map[uint8]string) error
	// Shutdown shuts a Member down without a drain, and wipes nothing. It returns when the machine is going down.
	// Disruptive.
	Shutdown(ctx context.Context, uuid string) error
	// Reset wipes the machine's state, or what is selected, and reboots it into maintenance mode, or switches it off.
	// Destructive. With graceful, it first cordons, drains and leaves etcd. It returns when Talos accepted the reset. A
	// container is deleted with its volumes, even if it does not answer; it is Gone then.
	Reset(ctx context.Context, graceful bool, how wipe.Reset) error
}

// Volumes are the volumes of a [Machine] that is a pod of a host cluster. A metal machine does not implement it.
type Volumes interface {
	// ReplaceVolumes deletes the machine's volumes and its pod, and makes new ones: it returns in maintenance mode.
	// Destructive. It returns when the old pod is gone. Volumes that the host cluster can use again are a permanent
	// error.
	ReplaceVolumes(ctx context.Context) error
}

// Fleet connects to machines.
type Fleet interface {
	// Machine returns the API of a machine; it does no I/O.
	Machine(m cluster.Machine) Machine
}

// Kubernetes is the API of the managed cluster.
type Kubernetes interface {
	// Observe lists the nodes. Reachable and Cause describe an API that does not answer.
	Observe(ctx context.Context) kubestate.State
	// AskEndpoint asks the endpoint of the cluster, and never a control plane instead. It does not ask an endpoint that
	// is unreachable from here. It has a limit of its own.
	AskEndpoint(ctx context.Context) kubestate.Endpoint
	// DeleteNode deletes a Node object. A missing node is not an error.
	DeleteNode(ctx context.Context, name string) error
	// Cordon makes a node unschedulable and marks it as cordoned by talosop. A node that another client cordoned stays
	// as it is, without the mark. Safe to repeat.
	Cordon(ctx context.Context, node string) error
	// Uncordon makes a node schedulable and removes the mark; without the mark it does nothing. A missing node is not an
	// error.
	Uncordon(ctx context.Context, node string) error
	// Own marks a node as owned by the resource with that ID, and replaces any other mark. The mark counts on this Node
	// object only. Safe to repeat.
	Own(ctx context.Context, node, owner string) error
	// NoteStaged records on a node whether its machine has a configuration for its next boot. Safe to repeat.
	NoteStaged(ctx context.Context, node string, waits bool) error
	// NoteReset records on a node that its machine is reset now. Safe to repeat.
	NoteReset(ctx context.Context, node string) error
	// NoteSoak records on a node of the canary pool how far its soak is; the zero value removes the record. Safe to
	// repeat.
	NoteSoak(ctx context.Context, node string, soak kubestate.Soak) error
	// Drain evicts the pods of a node, as kubectl drain does, and waits until their volumes are detached. If any are left
	// after the policy's time, the error names them and the PodDisruptionBudgets that block them. It is permanent, unless
	// the policy says to continue. report receives what it waits for and what it leaves. Safe to repeat.
	Drain(ctx context.Context, node string, policy cluster.DrainPolicy, report func(string)) error

	KubernetesUpgrade
}

// KubernetesUpgrade is the part of the Kubernetes API that a Kubernetes upgrade uses.
type KubernetesUpgrade interface {
	// AwaitComponent waits until a component runs on a node with an image. A static pod counts by its mirror pod, with
	// that image and Ready; kube-apiserver also by the version that it reports on the node's own address. The kubelet
	// counts by its node, with the version of the image and Ready. It has a limit of its own. The error names the pod,
	// the node, what is missing and the last event about it.
	AwaitComponent(ctx context.Context, node string, component kubenames.Component, image string) error
	// SyncManifests applies bootstrap manifests as the oldest Talos among the control planes does (talosVersion). From
	// Talos 1.13 on, that is server-side apply with an inventory, and objects that are no longer in the manifests are
	// pruned unless they must be kept. It waits until their workloads, changed or not, are rolled out on the ready
	// nodes, as long as they make progress. An unfinished rollout is an error that may be retried. Safe to repeat.
	SyncManifests(ctx context.Context, manifests []map[string]any, talosVersion string, keep bool) error
}

// Checks are the user's own checks, which decide whether the cluster can lose the next machine.
type Checks interface {
	// Pass returns once all checks pass, each within its own time, and reports what it waits for. The error names the
	// checks that did not pass in time, and why. It cleans up even when the context ends, or reports what it left.
	Pass(ctx context.Context, waiting func(reason string)) error
}

// Hooks are the user's hooks. They are recorded in the cluster, so that another run ends what a killed one began.
type Hooks interface {
	// Of are the hooks for a machine that goes out of service, and its node. It does no I/O.
	Of(m cluster.Machine, node string) []hook.Started
	// Recorded are the hooks of this resource that runs began and none ended.
	Recorded(ctx context.Context) ([]hook.Started, error)
	// Begin records a hook, and then runs its `before` until it succeeds, within its timeout. It needs the lock. Safe to
	// repeat.
	Begin(ctx context.Context, h hook.Started, waiting func(reason string)) error
	// End runs the `after` of a hook until it succeeds, within its timeout, and then removes the record. It needs the
	// lock. Safe to repeat.
	End(ctx context.Context, h hook.Started, waiting func(reason string)) error
}

// Founding is what the runs of a process know about the one bootstrap of a cluster. Talos does not prevent a second
// bootstrap on another machine.
type Founding interface {
	// Founder is the machine that claimed the bootstrap; ok is false when none has.
	Founder() (m cluster.Machine, ok bool)
	// Claim claims the bootstrap for a machine until the process ends. It reports false when another machine has the
	// claim. Safe to repeat.
	Claim(m cluster.Machine) bool
	// Release releases the claim of a machine that was reset: its etcd is gone.
	Release(m cluster.Machine)
}

// Restoration is the snapshot that etcd begins with.
type Restoration interface {
	// Fetch gets and verifies the snapshot. It is called before the first step of a run that needs it. An error that a
	// retry cannot fix is marked with wait.Permanent.
	Fetch(ctx context.Context) error
	// Reader reads the fetched snapshot from its beginning.
	Reader() io.Reader
	// Members are the hosts of the control planes in the fetched snapshot, as far as it names them.
	Members() []string
}

// Snapshots stores etcd snapshots.
type Snapshots interface {
	// Keep stores the stream of take once it is verified to be complete, and returns the location. An error that a retry
	// cannot fix is marked with wait.Permanent.
	Keep(ctx context.Context, at time.Time, take func(context.Context, io.Writer) error) (where string, err error)
}

// Lock is held by the one run that may disrupt machines of a cluster, across resources, processes and computers.
type Lock interface {
	// Acquire waits until the lock is free; waiting receives its holder. lost is closed when another holder is observed:
	// nothing may be disrupted from then on. It stays open when the lock cannot be renewed because the API is gone, as
	// while a single control plane reboots. release releases the lock and is called once.
	Acquire(ctx context.Context, waiting func(holder string)) (lost <-chan struct{}, release func(), err error)
	// FailingSince is since when no attempt of Acquire reached the API; zero while it waits for another holder.
	FailingSince() time.Time
	// Held is nil when the lock was renewed just now. It is called before every disruptive step that begins under a lock
	// acquired earlier. The error is permanent when another holder has the lock, or when it was never acquired. Any
	// other error means that the holder is unknown, so no step may begin yet.
	Held(ctx context.Context) error
}
