package etcd

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"time"

	talosx509 "github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	etcdres "github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Host is what a member knows of the machine that it is on.
type Host struct {
	Machine   string     // its name in logs and files
	Hostname  string     // the member's name
	Address   netip.Addr // where it listens
	Announced netip.Addr // what it says of itself
	CA        *talosx509.PEMEncodedCertificateAndKey
	Version   string // that its image has, such as 3.6.12
	// SplitHTTP is whether everything but gRPC, such as JSON and metrics, has a separate port, 2383 (Talos 1.14,
	// services/etcd.go).
	SplitHTTP bool
}

// Backend makes etcd members: in this process, or as real etcd processes.
type Backend interface {
	// create makes the data directory of the first member of a new etcd cluster.
	Create(h Host) (Node, error)
	// restore is create with the data of a snapshot file. After an error there may be a
	// node nevertheless: what was left in the data directory.
	Restore(ctx context.Context, h Host, snapshot string, skipHashCheck bool) (Node, error)
	// join adds the machine to via's etcd cluster as a learner and makes its data
	// directory. A stale member of the same name is removed first, as Talos does.
	Join(ctx context.Context, h Host, via Node) (Node, error)
	// close stops everything the backend started and removes its files.
	Close() error
}

// Node is the etcd data directory of one machine and, between run and halt, the
// process on it. Errors carry etcd's own texts.
type Node interface {
	// move tells the member, while it does not run, which address its machine has now.
	Move(h Host) error
	Run(ctx context.Context) error
	Halt()
	// wipe halts and deletes the data. The cluster still lists the member.
	Wipe()
	ID() uint64
	// group is equal for members of the same etcd cluster.
	Group() any
	// healthy is a linearizable read: it fails without quorum and on learners.
	Healthy(ctx context.Context) error
	Members(ctx context.Context) ([]*machine.EtcdMember, error)
	Status(ctx context.Context) (*machine.EtcdMemberStatus, error)
	Remove(ctx context.Context, id uint64) error
	// promote asks another member to make this learner a voter.
	Promote(ctx context.Context, via Node) error
	// advertise makes the cluster list the member's peer URL as it is now.
	Advertise(ctx context.Context) error
	// moveLeader hands leadership over; it returns "" when this is not the leader.
	MoveLeader(ctx context.Context) (string, error)
	Snapshot(ctx context.Context, w io.Writer) error
	// raftSnapshots are the files below member/snap, by name, and when they were made.
	RaftSnapshots() (map[string]time.Time, error)
	// Put writes keys; Keys reads those with a prefix.
	Put(ctx context.Context, values map[string]string) error
	Keys(ctx context.Context, prefix string) (map[string]string, error)
	// Alarms are those of all members; Disarm ends them and returns the ended ones.
	Alarms(ctx context.Context) ([]*machine.EtcdMemberAlarm, error)
	Disarm(ctx context.Context) ([]*machine.EtcdMemberAlarm, error)
	// raise raises an alarm of this member.
	Raise(ctx context.Context, alarm Alarm) error
	Defragment(ctx context.Context) error
	// downgrade is VALIDATE, ENABLE or CANCEL of a downgrade to a minor version; it returns that of the cluster.
	Downgrade(ctx context.Context, action, version string) (string, error)
}

// Error texts of etcd that callers distinguish.
var (
	ErrMemberNotFound  = errors.New("etcdserver: member not found")
	ErrUnhealthy       = errors.New("etcdserver: unhealthy cluster")
	errNotEnough       = errors.New("etcdserver: re-configuration failed due to not enough started members")
	errTooManyLearners = errors.New("etcdserver: too many learner members in cluster")
	errNotReady        = errors.New("etcdserver: can only promote a learner member which is in sync with leader")
	errNoLeader        = errors.New("etcdserver: no leader")
	ErrTimedOut        = errors.New("etcdserver: request timed out")
	errLearner         = errors.New("etcdserver: rpc not supported for learner")
	ErrStopped         = errors.New("etcdserver: server stopped")
	ErrNoSpace         = errors.New("etcdserver: mvcc: database space exceeded")
	errCorrupt         = errors.New("etcdserver: corrupt cluster")
	errBadTransferee   = errors.New("etcdserver: bad leader transferee")
	errPeerExists      = errors.New("etcdserver: Peer URLs already exists")
	errInvalidTarget   = errors.New("etcdserver: invalid downgrade target version")
	errDowngradeActive = errors.New("etcdserver: cluster has a downgrade job in progress")
	// errTransferTimedOut is one that clients never see: their request ends with it.
	errTransferTimedOut = errors.New("etcdserver: request timed out, leader transfer took too long")
)

// Alarm is a kind of alarm that an etcd member raises.
type Alarm = machine.EtcdMemberAlarm_AlarmType

// MemberID is a member's id as it is written everywhere.
func MemberID(id uint64) string { return etcdres.FormatMemberID(id) }

// Refused is the error of a client whose etcd does not listen.
func Refused(addr string) error {
	return status.Errorf(codes.Unavailable,
		`connection error: desc = "transport: Error while dialing: dial tcp %s:2379: connect: connection refused"`, addr)
}

// ruinedMember is the data directory that a failed restoration left: the copy of a database
// and no log. An etcd on it runs and never serves (etcd 3.6, tried).
type ruinedMember struct{ Node }

func (*ruinedMember) Run(context.Context) error { return nil }
