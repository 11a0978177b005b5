package sim

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

// etcdHost is what a member knows of the machine that it is on.
type etcdHost struct {
	machine   string     // its name in logs and files
	hostname  string     // the member's name
	address   netip.Addr // where it listens
	announced netip.Addr // what it says of itself
	ca        *talosx509.PEMEncodedCertificateAndKey
}

// etcdBackend makes etcd members: in this process, or as real etcd processes.
type etcdBackend interface {
	// create makes the data directory of the first member of a new etcd cluster.
	create(h etcdHost) (etcdNode, error)
	// restore is create with the data of a snapshot file. After an error there may be a
	// node all the same: what was left in the data directory.
	restore(ctx context.Context, h etcdHost, snapshot string, skipHashCheck bool) (etcdNode, error)
	// join adds the machine to via's etcd cluster as a learner and makes its data
	// directory. A stale member of the same name is removed first, as Talos does.
	join(ctx context.Context, h etcdHost, via etcdNode) (etcdNode, error)
	// close stops everything the backend started and removes its files.
	close() error
}

// etcdNode is the etcd data directory of one machine and, between run and halt, the
// process on it. Errors carry etcd's own texts.
type etcdNode interface {
	// move tells the member, while it does not run, which address its machine has now.
	move(h etcdHost) error
	run(ctx context.Context) error
	halt()
	// wipe halts and deletes the data. The cluster still lists the member.
	wipe()
	id() uint64
	// group is equal for members of the same etcd cluster.
	group() any
	// healthy is a linearizable read: it fails without quorum and on learners.
	healthy(ctx context.Context) error
	members(ctx context.Context) ([]*machine.EtcdMember, error)
	status(ctx context.Context) (*machine.EtcdMemberStatus, error)
	remove(ctx context.Context, id uint64) error
	// promote asks another member to make this learner a voter.
	promote(ctx context.Context, via etcdNode) error
	// advertise makes the cluster list the member's peer URL as it is now.
	advertise(ctx context.Context) error
	// moveLeader hands leadership over; it returns "" when this is not the leader.
	moveLeader(ctx context.Context) (string, error)
	snapshot(ctx context.Context, w io.Writer) error
	// raftSnapshots are the files below member/snap, by name, and when they were made.
	raftSnapshots() (map[string]time.Time, error)
	// put writes keys; keys reads those with a prefix.
	put(ctx context.Context, values map[string]string) error
	keys(ctx context.Context, prefix string) (map[string]string, error)
	// alarms are those of all members; disarm ends them and returns what it ended.
	alarms(ctx context.Context) ([]*machine.EtcdMemberAlarm, error)
	disarm(ctx context.Context) ([]*machine.EtcdMemberAlarm, error)
	// raise raises an alarm of this member.
	raise(ctx context.Context, alarm EtcdAlarm) error
	defragment(ctx context.Context) error
}

// etcd's texts that callers tell apart.
var (
	errMemberNotFound  = errors.New("etcdserver: member not found")
	errUnhealthy       = errors.New("etcdserver: unhealthy cluster")
	errNotEnough       = errors.New("etcdserver: re-configuration failed due to not enough started members")
	errTooManyLearners = errors.New("etcdserver: too many learner members in cluster")
	errNotReady        = errors.New("etcdserver: can only promote a learner member which is in sync with leader")
	errNoLeader        = errors.New("etcdserver: no leader")
	errTimedOut        = errors.New("etcdserver: request timed out")
	errLearner         = errors.New("etcdserver: rpc not supported for learner")
	errStopped         = errors.New("etcdserver: server stopped")
	errNoSpace         = errors.New("etcdserver: mvcc: database space exceeded")
	errCorrupt         = errors.New("etcdserver: corrupt cluster")
	errBadTransferee   = errors.New("etcdserver: bad leader transferee")
	errPeerExists      = errors.New("etcdserver: Peer URLs already exists")
	// errTransferTimedOut is one that clients never see: their request ends with it.
	errTransferTimedOut = errors.New("etcdserver: request timed out, leader transfer took too long")
)

// memberID is a member's id as it is written everywhere.
func memberID(id uint64) string { return etcdres.FormatMemberID(id) }

// etcdRefused is the error of a client whose etcd does not listen.
func etcdRefused(addr string) error {
	return status.Errorf(codes.Unavailable,
		`connection error: desc = "transport: Error while dialing: dial tcp %s:2379: connect: connection refused"`, addr)
}

// ruinedMember is the data directory that a failed restoration left: the copy of a database
// and no log. An etcd on it runs and never serves (etcd 3.6, tried).
type ruinedMember struct{ etcdNode }

func (*ruinedMember) run(context.Context) error { return nil }
