package talos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
)

// etcdServiceID is the id of etcd in Talos's service list and events.
const etcdServiceID = "etcd"

// EtcdMembers lists the members as this machine sees them. The answer needs an
// etcd with a leader: without one the call ends with its deadline. On a worker it
// is ErrUnsupported. Where the machine's own etcd service failed, the error says why.
func (m *Machine) EtcdMembers(ctx context.Context) ([]etcdstate.Member, error) {
	var members []etcdstate.Member

	err := m.readMember(ctx, func(ctx context.Context, s *session) (err error) {
		if members, err = bounded(ctx, m, s.etcdMembers); err == nil || !s.alive() {
			return err
		}

		if failure, _ := bounded(ctx, m, s.etcdFailure); failure != "" {
			return fmt.Errorf("%w; etcd: %s", err, failure)
		}

		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list etcd members: %w", err)
	}

	return members, nil
}

// etcdMembers asks the etcd of any control plane that the machine picks.
func (s *session) etcdMembers(ctx context.Context) ([]etcdstate.Member, error) {
	return s.listEtcdMembers(ctx, false)
}

// ownEtcdMembers asks the machine's own etcd.
func (s *session) ownEtcdMembers(ctx context.Context) ([]etcdstate.Member, error) {
	return s.listEtcdMembers(ctx, true)
}

func (s *session) listEtcdMembers(ctx context.Context, own bool) ([]etcdstate.Member, error) {
	answer, err := s.machine.EtcdMemberList(ctx, &machineapi.EtcdMemberListRequest{QueryLocal: own})
	if err != nil {
		return nil, s.failed(err)
	}

	var out []etcdstate.Member

	for _, message := range answer.GetMessages() {
		for _, member := range message.GetMembers() {
			out = append(out, etcdstate.Member{
				ID:       etcd.FormatMemberID(member.GetId()),
				Name:     member.GetHostname(),
				Learner:  member.GetIsLearner(),
				PeerURLs: member.GetPeerUrls(),
			})
		}
	}

	if len(out) == 0 {
		return nil, errors.New("the member list is empty")
	}

	return out, nil
}

// etcdService returns the state of the etcd service; empty before Talos has loaded
// it, and on workers.
func (s *session) etcdService(ctx context.Context) (step.ServiceState, error) {
	service, err := s.service(ctx, etcdServiceID)

	return step.ServiceState(service.GetState()), err
}

// service returns Talos's status of one of its services; nil before it has loaded it,
// and where it never does.
func (s *session) service(ctx context.Context, id string) (*machineapi.ServiceInfo, error) {
	answer, err := s.machine.ServiceList(ctx, &emptypb.Empty{})
	if err != nil {
		return nil, fmt.Errorf("list services: %w", s.failed(err))
	}

	for _, message := range answer.GetMessages() {
		for _, service := range message.GetServices() {
			if service.GetId() == id {
				return service, nil
			}
		}
	}

	return nil, nil
}

// withData names a state in which an etcd may have data or not, for one that has.
var withData = map[step.ServiceState]step.ServiceState{
	step.ServicePreparing: preparingWithData,
	step.ServiceFailed:    failedWithData,
}

// etcdHasData reports whether etcd's data directory holds anything. Talos itself checks this when it gets a
// bootstrap request. Only an answer counts: every Talos lists directories for every role that may read the rest of
// what is observed here (List, Talos 1.10 to 1.13). So a refusal is an error, not an empty directory.
func (s *session) etcdHasData(ctx context.Context) (bool, error) {
	entry, err := s.findFile(ctx, constants.EtcdDataPath, func(*machineapi.FileInfo) bool { return true })

	return entry != nil, err
}

// restoredSnapshot is the first snapshot of raft in the data of an etcd that was made from a
// snapshot of the database: its index is the number of members, one, and its term is 1
// (etcd 3.6, etcdutl saveWALAndSnap; Talos 1.13 restores with itself as the only member). Any
// other etcd makes its first one after thousands of writes, and a member that joins gets that
// of its leader. etcd purges it after five more.
const restoredSnapshot = "0000000000000001-0000000000000001.snap"

// restoredAt is when the machine's etcd began as a restored snapshot; zero when it did not.
func (s *session) restoredAt(ctx context.Context) (time.Time, error) {
	entry, err := s.findFile(ctx, constants.EtcdDataPath+"/member/snap", func(f *machineapi.FileInfo) bool {
		return f.GetRelativeName() == restoredSnapshot
	})
	if entry == nil {
		return time.Time{}, err
	}

	return time.Unix(entry.GetModified(), 0).UTC(), nil
}

// findFile is the first file of a directory that is looked for, or nil. A directory that is
// not there is an empty one to Talos.
func (s *session) findFile(
	ctx context.Context, root string, wanted func(*machineapi.FileInfo) bool,
) (*machineapi.FileInfo, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	stream, err := s.machine.List(ctx, &machineapi.ListRequest{Root: root})
	if err != nil {
		return nil, s.unlisted(root, err)
	}

	for {
		entry, err := stream.Recv()

		switch {
		case errors.Is(err, io.EOF):
			return nil, nil //nolint:nilnil // there is no such file, which is an answer
		case err != nil:
			return nil, s.unlisted(root, err)
		case notThere(entry.GetError()):
			// It went while the directory was read.
			continue
		case entry.GetError() != "":
			return nil, fmt.Errorf("list %s: %s", root, entry.GetError())
		case entry.GetRelativeName() != "." && wanted(entry):
			return entry, nil
		}
	}
}

// unlisted is nil for a directory that is not there.
func (s *session) unlisted(root string, err error) error {
	if status.Code(err) == codes.Unknown && notThere(status.Convert(err).Message()) {
		return nil
	}

	return fmt.Errorf("list %s: %w", root, s.failed(err))
}

// notThere recognizes the text of ENOENT. Talos passes the error of lstat on as it is, with no code of its own.
func notThere(text string) bool { return strings.HasSuffix(text, syscall.ENOENT.Error()) }

// etcdProgress is how far the etcd of a control plane is, and whether this boot saw
// a bootstrap that is not over. Preparing and Failed are the states of an etcd without
// data; one with data is in a separate state.
func (m *Machine) etcdProgress(ctx context.Context, s *session) (etcd step.ServiceState, requested bool, err error) {
	if etcd, err = bounded(ctx, m, s.etcdService); err != nil || etcd == step.ServiceRunning {
		return etcd, false, err
	}

	if requested, err = bounded(ctx, m, s.bootstrapRequested); err != nil {
		return etcd, false, err
	}

	// A bootstrap first stops the etcd that waits, which makes that one Failed: only what is
	// read after the trace is the outcome (BootstrapEtcd, Talos 1.13).
	if requested && etcd == step.ServiceFailed {
		if etcd, err = bounded(ctx, m, s.etcdService); err != nil {
			return etcd, requested, err
		}
	}

	held, ambiguous := withData[etcd]
	if !ambiguous || requested && etcd != step.ServiceFailed {
		return etcd, requested, nil
	}

	data, err := bounded(ctx, m, s.etcdHasData)
	if err != nil {
		return "", false, err
	}

	if data {
		return held, requested, nil
	}

	// A service that Failed runs no more (Talos 1.13, system.go): without data it takes
	// another bootstrap as if there had been none.
	return etcd, false, nil
}

// etcdFailure is Talos's message about a failed etcd service; empty otherwise.
func (s *session) etcdFailure(ctx context.Context) (string, error) {
	service, err := s.service(ctx, etcdServiceID)
	if err != nil || step.ServiceState(service.GetState()) != step.ServiceFailed {
		return "", err
	}

	return lastMessage(service), nil
}

// lastMessage is the latest message about a service, which has the reason of a failure.
func lastMessage(service *machineapi.ServiceInfo) string {
	events := service.GetEvents().GetEvents()
	if len(events) == 0 {
		return "the etcd service is " + service.GetState()
	}

	return events[len(events)-1].GetMsg()
}
