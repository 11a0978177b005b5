package talos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// talosAPI is the part of a machine that a bootstrap asks. It stands for states that
// last too short on a machine, real or simulated, to be met on purpose.
type talosAPI struct {
	machineapi.UnimplementedMachineServiceServer

	etcd string
	// then is the state of etcd from the second question on, where it is another one.
	then   string
	asked  atomic.Int32
	events []*machineapi.Event
	// ends lets the event stream end after what is in the log.
	ends bool
	// files in etcd's data directory; nil when there is no directory.
	files []string
	// list is the error that a listing ends with, entryError that of one entry.
	list       error
	entryError string
	bootstraps atomic.Int32
	bootstrap  error
}

func (a *talosAPI) ServiceList(context.Context, *emptypb.Empty) (*machineapi.ServiceListResponse, error) {
	services := []*machineapi.ServiceInfo{{Id: "machined", State: "Running"}}
	if a.etcd != "" {
		services = append(services, &machineapi.ServiceInfo{Id: "etcd", State: a.state()})
	}

	return &machineapi.ServiceListResponse{Messages: []*machineapi.ServiceList{{Services: services}}}, nil
}

func (a *talosAPI) state() string {
	if a.then != "" && a.asked.Add(1) > 1 {
		return a.then
	}

	return a.etcd
}

func (a *talosAPI) Events(req *machineapi.EventsRequest, stream machineapi.MachineService_EventsServer) error {
	if err := stream.Send(&machineapi.Event{Id: "hello", Data: &anypb.Any{}}); err != nil {
		return err
	}

	log := a.events
	if tail := int(req.GetTailEvents()); tail >= 0 {
		log = log[max(0, len(log)-tail):]
	}

	for _, event := range log {
		if err := stream.Send(event); err != nil {
			return err
		}
	}

	if !a.ends {
		<-stream.Context().Done()
	}

	return nil
}

func (a *talosAPI) List(req *machineapi.ListRequest, stream machineapi.MachineService_ListServer) error {
	if a.entryError != "" {
		if err := stream.Send(&machineapi.FileInfo{Name: req.GetRoot(), Error: a.entryError}); err != nil {
			return err
		}
	}

	if a.list != nil {
		return a.list
	}

	if a.files == nil {
		return fmt.Errorf("lstat %s: no such file or directory", req.GetRoot())
	}

	for _, name := range append([]string{"."}, a.files...) {
		if err := stream.Send(&machineapi.FileInfo{Name: req.GetRoot() + "/" + name, RelativeName: name}); err != nil {
			return err
		}
	}

	return nil
}

func (a *talosAPI) Bootstrap(context.Context, *machineapi.BootstrapRequest) (*machineapi.BootstrapResponse, error) {
	a.bootstraps.Add(1)

	return &machineapi.BootstrapResponse{}, a.bootstrap
}

// happened makes an event of a service.
func happened(id int, service string, action machineapi.ServiceStateEvent_Action, message string) *machineapi.Event {
	change := &machineapi.ServiceStateEvent{Service: service, Action: action, Message: message}

	value, err := proto.Marshal(change)
	if err != nil {
		panic(err)
	}

	return &machineapi.Event{
		Id:   fmt.Sprintf("%05d", id),
		Data: &anypb.Any{TypeUrl: "talos/runtime/" + string(change.ProtoReflect().Descriptor().FullName()), Value: value},
	}
}

// noise is a log of n events that say nothing about a bootstrap.
func noise(n int) []*machineapi.Event {
	var log []*machineapi.Event
	for i := range n {
		log = append(log, happened(i, "kubelet", machineapi.ServiceStateEvent_FINISHED, bootstrapTrace))
	}

	return log
}

func TestEtcdProgress_fromEventsAndFiles(t *testing.T) {
	t.Parallel()

	trace := happened(900, "etcd", machineapi.ServiceStateEvent_FINISHED, bootstrapTrace)
	waiting := happened(901, "etcd", machineapi.ServiceStateEvent_PREPARING, "Running pre state")
	unknown := &machineapi.Event{Id: "902",
		Data: &anypb.Any{TypeUrl: "talos/runtime/machine.FutureEvent", Value: []byte{1, 2, 3}}}

	tests := map[string]struct {
		api       *talosAPI
		etcd      step.ServiceState
		requested bool
		class     error
		// bootstraps that a Bootstrap makes, and the class of its error.
		bootstraps     int32
		bootstrapClass error
		// limit of a call; a minute where it is zero.
		limit time.Duration
	}{
		"waits": {
			api:  &talosAPI{etcd: "Preparing", events: append(noise(1000), waiting, unknown), files: []string{}},
			etcd: step.ServicePreparing, bootstraps: 1,
		},
		"waits, without a directory": {
			api:  &talosAPI{etcd: "Preparing", events: []*machineapi.Event{waiting}},
			etcd: step.ServicePreparing, bootstraps: 1,
		},
		"waits, with a file that just went": {
			api: &talosAPI{etcd: "Preparing", events: noise(1), files: []string{},
				entryError: "lstat /var/lib/etcd/x: no such file or directory"},
			etcd: step.ServicePreparing, bootstraps: 1,
		},
		"cannot read its directory": {
			api: &talosAPI{etcd: "Preparing", events: noise(1), files: []string{},
				entryError: "open /var/lib/etcd: input/output error"},
			class: errAny, bootstrapClass: errAny,
		},
		"cannot list": {
			api:   &talosAPI{etcd: "Preparing", events: noise(1), list: errors.New("lstat /var/lib/etcd: input/output error")},
			class: errAny, bootstrapClass: errAny,
		},
		"may not list": {
			api:   &talosAPI{etcd: "Failed", events: noise(1), list: status.Error(codes.PermissionDenied, "not authorized")},
			class: ErrNotAuthorized, bootstrapClass: ErrNotAuthorized,
		},
		"has no such call": {
			api: &talosAPI{etcd: "Preparing", events: noise(1),
				list: status.Error(codes.Unimplemented, "no such file or directory")},
			class: ErrUnsupported, bootstrapClass: ErrUnsupported,
		},
		"was asked, first in the log": {
			api:  &talosAPI{etcd: "Preparing", events: append([]*machineapi.Event{trace}, noise(800)...), files: []string{}},
			etcd: step.ServicePreparing, requested: true,
		},
		"was asked, last in the log": {
			api:  &talosAPI{etcd: "Preparing", events: append(noise(800), trace), files: []string{}},
			etcd: step.ServicePreparing, requested: true,
		},
		"starts with its data after a reboot": {
			api:  &talosAPI{etcd: "Preparing", events: noise(3), files: []string{"member", "member/snap"}},
			etcd: preparingWithData,
		},
		"runs": {api: &talosAPI{etcd: "Running"}, etcd: step.ServiceRunning},
		"gave up joining": {api: &talosAPI{etcd: "Failed", events: noise(3), files: []string{}},
			etcd: step.ServiceFailed, bootstraps: 1},
		"failed with its data": {api: &talosAPI{etcd: "Failed", events: noise(3), files: []string{"member"}},
			etcd: failedWithData},
		"was asked, and failed": {api: &talosAPI{etcd: "Failed", events: append(noise(3), trace)},
			etcd: step.ServiceFailed, bootstraps: 1},
		"was asked, and failed with data": {
			api:  &talosAPI{etcd: "Failed", events: append(noise(3), trace), files: []string{"member"}},
			etcd: failedWithData, requested: true,
		},
		"was stopped by a bootstrap this very moment": {
			api:  &talosAPI{etcd: "Failed", then: "Finished", events: append(noise(3), trace), files: []string{}},
			etcd: step.ServiceFinished, requested: true,
		},
		"waits for its network": {api: &talosAPI{etcd: "Waiting", events: noise(3)}, etcd: "Waiting",
			bootstrapClass: ErrInProgress},
		"an event stream that ends early": {
			api: &talosAPI{etcd: "Preparing", ends: true}, etcd: step.ServicePreparing, class: ErrUnreachable,
			bootstrapClass: ErrUnreachable,
		},
		"a log without an event": {
			api: &talosAPI{etcd: "Preparing"}, etcd: step.ServicePreparing, class: ErrUnreachable,
			bootstrapClass: ErrUnreachable, limit: time.Second,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			m := machineOf(t, test.api)
			m.fleet.options.Timeouts.Call = cmp.Or(test.limit, m.fleet.options.Timeouts.Call)

			s, err := m.dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			etcd, requested, err := m.etcdProgress(t.Context(), s)
			if etcd != test.etcd || requested != test.requested || !isClass(err, test.class) {
				t.Errorf("etcd %q, requested %t, error %v; want %q, %t, %v", etcd, requested, err, test.etcd, test.requested,
					test.class)
			}

			if err := m.Bootstrap(t.Context()); !isClass(err, test.bootstrapClass) ||
				test.api.bootstraps.Load() != test.bootstraps {
				t.Errorf("bootstrap: %v with %d calls, want %v with %d", err, test.api.bootstraps.Load(), test.bootstrapClass,
					test.bootstraps)
			}
		})
	}
}

// errAny stands for an error of no class.
var errAny = errors.New("an error of no class")

// isClass compares an error with the class that is wanted.
func isClass(err, class error) bool {
	if errors.Is(class, errAny) {
		return err != nil && Classify(err) == nil
	}

	return errors.Is(err, class)
}

// A second bootstrap that met a first one has stopped etcd: Talos answers with a
// plain error, and repeating makes it no better.
func TestBootstrap_thatStoppedEtcd(t *testing.T) {
	t.Parallel()

	api := &talosAPI{etcd: "Preparing", events: noise(1),
		bootstrap: status.Error(codes.Unknown, "etcd data directory is not empty")}

	err := machineOf(t, api).Bootstrap(t.Context())
	if err == nil || !strings.Contains(err.Error(), "etcd data directory is not empty; Talos stopped etcd") ||
		!strings.Contains(err.Error(), "reboot") {
		t.Errorf("err = %v", err)
	}
}
