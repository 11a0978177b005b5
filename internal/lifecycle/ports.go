package lifecycle

import (
	"context"
	"io"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// Machine is the Talos API of one machine.
//
// Every method is bounded by its context and by a limit of the adapter's own. An
// error that repeating cannot cure is marked with wait.Permanent; every other
// error means: observe again, then decide.
type Machine interface {
	// Observe asks the machine what it is. It has no error: a machine that does
	// not answer, or answers with another identity, is described by Access and Cause.
	// The authenticated connection is tried first, maintenance mode second.
	Observe(ctx context.Context) step.MachineState
	// ApplyConfig sends a configuration. access says how the machine answered
	// when it was observed: in Maintenance the configuration is sent without
	// authentication (pinned to the certificate fingerprint when one is given)
	// and the call returns once the machine left maintenance mode; a Member gets
	// it authenticated, without a reboot, and a change that would need one is a
	// permanent error. uuid, when not empty, is compared with the machine's own on
	// the same connection before anything is sent. Safe to repeat.
	ApplyConfig(ctx context.Context, config []byte, access step.Access, uuid string) error
	// Bootstrap makes the machine the first member of a new etcd. It asks the
	// machine's event log first and does nothing when a bootstrap was already
	// accepted in this boot, because on Talos a second call before etcd has data
	// stops etcd for good. Data that is already there is not an error.
	Bootstrap(ctx context.Context) error
	// Restore is Bootstrap with the data of a snapshot, which is sent to the machine first;
	// minutes for a large one; confirm is asked after that, and its error leaves etcd as it was. It
	// returns once etcd has begun with it. A snapshot that Talos or etcd refuses is a permanent
	// error in their words.
	Restore(ctx context.Context, snapshot io.Reader, confirm func(context.Context) error) error
	// EtcdMembers lists the members as this machine sees them. Control plane only.
	EtcdMembers(ctx context.Context) ([]etcdstate.Member, error)
	// TryConfig gives a Member a configuration that reverts by itself after the given
	// time. It is kept by an ApplyConfig before that.
	TryConfig(ctx context.Context, config []byte, uuid string, revert time.Duration) error
	// StageConfig stores a configuration that a Member uses from its next boot on.
	// Safe to repeat; a configuration staged before is replaced.
	StageConfig(ctx context.Context, config []byte, uuid string) error
	// Reboot restarts a Member. Returns when the machine went down. Disruptive.
	Reboot(ctx context.Context, uuid string) error
	// Configuration reads the active configuration of a Member: the bytes that were applied.
	Configuration(ctx context.Context) ([]byte, error)
	// PullComponent makes a Member fetch the image of a component of Kubernetes into the store
	// that the component runs from; minutes on slow links. Safe to repeat. An image that the
	// registry does not have is a permanent error.
	PullComponent(ctx context.Context, component kubenames.Component, image string) error
	// RestartKubelet restarts the kubelet of a Member, which then registers its node. Pods go on.
	// Safe to repeat.
	RestartKubelet(ctx context.Context) error
	// RestartService restarts a service of a Member by its id. Talos lets the kubelet and the services of extensions be
	// restarted; that of another one is a permanent error. Safe to repeat.
	RestartService(ctx context.Context, service string) error
	// Rollback makes a Member start with the Talos that it had before its last upgrade. Returns when the machine went
	// down. Disruptive, and not safe to repeat: a second one goes forward again.
	Rollback(ctx context.Context, uuid string) error
	// DefragmentEtcd gives back the disk space that the database of the machine's member does not use; seconds to
	// minutes, in which the member answers nobody. Safe to repeat.
	DefragmentEtcd(ctx context.Context) error
	// AwaitKubelet waits until a Member has started its kubelet with that image, whoever set
	// it, and found it healthy: what the cluster shows of a kubelet tells one image of a version
	// from another one by nothing. It waits no longer than a limit of its own. Safe to repeat.
	AwaitKubelet(ctx context.Context, image string) error
	// Manifests are the bootstrap manifests that a control plane renders from its
	// configuration, as decoded JSON objects, for a Kubernetes whose kube-proxy has that
	// image, and from that configuration where it is given: while Talos has not rendered them anew yet the error says so.
	Manifests(ctx context.Context, kubeProxy string, configuration []byte) ([]map[string]any, error)
	// PullImage makes a Member fetch an installer image; minutes on slow links.
	// A Talos that cannot pull ahead does nothing. Safe to repeat.
	PullImage(ctx context.Context, image string) error
	// Upgrade installs Talos from an image on a Member and reboots it; of a container it
	// replaces the pod, with the image and all else that is wanted of it, also where the pod
	// does not answer. Where these are
	// two calls confirm is asked between them, and its error keeps the machine up. It returns
	// when the machine went down; whether it came back with the new version is for
	// an observation to say. An installer that refuses is a permanent error.
	// Disruptive.
	Upgrade(ctx context.Context, image, uuid string, confirm func(context.Context) error) error
	// EtcdView is etcd as this machine's member sees it. Control plane only.
	EtcdView(ctx context.Context) (etcdstate.View, error)
	// EtcdSnapshot streams the database of the machine's member, followed by its SHA-256.
	// A stream that ends without an error may be incomplete: only the sum tells.
	EtcdSnapshot(ctx context.Context, to io.Writer) error
	// ForfeitLeadership makes the machine's member hand over the leadership of etcd.
	// Not to lead, or to be the only member, is not an error.
	ForfeitLeadership(ctx context.Context) error
	// LeaveEtcd takes the machine's member out of etcd and deletes its data; the
	// machine stays configured. Destructive. To have left is not an error.
	LeaveEtcd(ctx context.Context, uuid string) error
	// RemoveMember removes another machine's member, by its ID. Destructive. A member
	// that is gone is not an error.
	RemoveMember(ctx context.Context, member string) error
	// DowngradeEtcd tells etcd to take its data back to a minor version such as 3.6, and returns once the data of the
	// machine's member is for it. Nothing restarts. Safe to repeat. Another version than the one before that of all
	// members is a permanent error.
	DowngradeEtcd(ctx context.Context, to string) error
	// CancelEtcdDowngrade takes that back; where etcd was not told to go back it does nothing. Safe to repeat.
	CancelEtcdDowngrade(ctx context.Context) error
	// WriteMeta makes values what META holds under their keys, on a Member; other
	// keys are left alone. Nothing reboots, but a network configuration (0x0a) takes
	// effect at once. Safe to repeat.
	WriteMeta(ctx context.Context, values map[uint8]string) error
	// Reset wipes the machine's state and reboots it into maintenance mode.
	// Destructive. graceful cordons, drains and leaves etcd first. Returns when
	// Talos accepted the reset. A container is deleted with its volumes, also when it does
	// not answer; it is Gone then.
	Reset(ctx context.Context, graceful bool) error
}

// Volumes is what a [Machine] has beside its Talos API when it is a pod of a host cluster. A
// machine of metal does not implement it.
type Volumes interface {
	// ReplaceVolumes deletes the machine's volumes and its pod, and makes new ones: it comes
	// back in maintenance mode. Destructive. It returns when the old pod is gone. Volumes that
	// are not lost, because the host cluster can use them again, are a permanent error.
	ReplaceVolumes(ctx context.Context) error
}

// Fleet reaches machines.
type Fleet interface {
	// Machine returns the API of a machine; it does no I/O.
	Machine(m cluster.Machine) Machine
}

// Kubernetes is the API of the managed cluster.
type Kubernetes interface {
	// Observe lists the nodes; an API that does not answer is described by
	// Reachable and Cause.
	Observe(ctx context.Context) kubestate.State
	// AskEndpoint asks the endpoint of the cluster, and no control plane in its place, unless it is out of reach from
	// here. It is bounded by a limit of its own.
	AskEndpoint(ctx context.Context) kubestate.Endpoint
	// DeleteNode removes a Node object. Removing one that is gone is not an error.
	DeleteNode(ctx context.Context, name string) error
	// Cordon makes a node unschedulable and marks it as cordoned by talosop. A node
	// that somebody else cordoned stays as it is, without the mark. Safe to repeat.
	Cordon(ctx context.Context, node string) error
	// Uncordon makes a node schedulable and takes off the mark; without the mark it
	// does nothing. A node that is gone is not an error.
	Uncordon(ctx context.Context, node string) error
	// Own marks a node as that of a machine of the resource with that id, in the place of any
	// other mark. The mark counts on this Node object only. Safe to repeat.
	Own(ctx context.Context, node, owner string) error
	// NoteStaged notes on a node whether its machine has a configuration for its next boot. Safe to repeat.
	NoteStaged(ctx context.Context, node string, waits bool) error
	// Drain evicts the pods of a node, as kubectl drain does. When pods are left
	// after the policy's time, the error names them and the PodDisruptionBudgets in
	// the way and is permanent, unless the policy says to go on. Safe to repeat.
	Drain(ctx context.Context, node string, policy cluster.DrainPolicy) error

	KubernetesUpgrade
}

// KubernetesUpgrade is the part of the API of the managed cluster that an upgrade of
// Kubernetes asks.
type KubernetesUpgrade interface {
	// AwaitComponent waits until a component runs on a node with an image: a static pod by
	// its mirror pod, with that image and Ready, and kube-apiserver by the version that it
	// tells on the node's own address, too; the kubelet by its node, with the version of the
	// image and Ready. It waits no longer than a limit of its own; the error names the pod, the
	// node, what is missing and the last event about it.
	AwaitComponent(ctx context.Context, node string, component kubenames.Component, image string) error
	// SyncManifests applies bootstrap manifests, in the way of the oldest Talos among the
	// control planes (talosVersion): by server-side apply with an inventory, after which
	// what is not among them any more is pruned unless it is to be kept, from Talos 1.13 on. It waits until the
	// workloads among them, changed or not, are rolled out on the nodes that are ready, as long
	// as they make progress; that they are not yet is an error that may be repeated. Safe to
	// repeat.
	SyncManifests(ctx context.Context, manifests []map[string]any, talosVersion string, keep bool) error
}

// Checks are the user's own, which say whether the cluster can do without the next machine.
type Checks interface {
	// Pass returns once all of them pass, each of them within its own time, and tells what it waits for until then. The
	// error names those that did not pass in time, and why. It leaves nothing behind, also where the context ends, or says
	// what.
	Pass(ctx context.Context, waiting func(reason string)) error
}

// Founding is what the runs of a process know of each other about the one bootstrap of a
// cluster. On Talos nothing stops a second one on another machine.
type Founding interface {
	// Founder is the machine that has the right to begin etcd; ok is false when none has.
	Founder() (m cluster.Machine, ok bool)
	// Claim takes that right for a machine, for as long as the process lives. It reports false
	// when another one has it. Safe to repeat.
	Claim(m cluster.Machine) bool
	// Release gives it back for a machine that was reset: its etcd is gone.
	Release(m cluster.Machine)
}

// Restoration is the snapshot that etcd begins with.
type Restoration interface {
	// Fetch gets the snapshot and verifies it. It is called before the first step of a
	// run that needs it. An error that repeating cannot cure is marked with wait.Permanent.
	Fetch(ctx context.Context) error
	// Reader reads the fetched snapshot from its beginning.
	Reader() io.Reader
	// Members are the hosts of the control planes that the fetched snapshot was taken of, as far as it says.
	Members() []string
}

// Snapshots keeps snapshots of etcd.
type Snapshots interface {
	// Keep stores what take streams, once it is verified to be whole, and says where. An
	// error that repeating cannot cure is marked with wait.Permanent.
	Keep(ctx context.Context, at time.Time, take func(context.Context, io.Writer) error) (where string, err error)
}

// Lock is held by the one run that may disrupt machines of a cluster, across resources,
// processes and computers.
type Lock interface {
	// Acquire waits until the lock is free; waiting is told what for. lost is closed
	// when somebody else is seen to hold it: nothing may be disrupted from then on.
	// That the lock cannot be renewed because the API is gone, as while a single control
	// plane reboots, does not close it. release gives it back and is called once.
	Acquire(ctx context.Context, waiting func(holder string)) (lost <-chan struct{}, release func(), err error)
	// FailingSince is since when no attempt of Acquire got through to the API; zero while one
	// waits for another holder.
	FailingSince() time.Time
	// Held is nil when the lock was renewed just now. It is asked before every
	// disruptive step that begins under a lock acquired earlier. The error is permanent
	// when somebody else holds the lock, or nobody acquired it; any other one means that
	// nobody can say now, so no step may begin yet.
	Held(ctx context.Context) error
}
