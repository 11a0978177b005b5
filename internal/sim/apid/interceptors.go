package apid

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// interceptors stand between the wire and the handlers of one listener, in the order
// of a real machine: apid finds the roles and forwards, machined authorizes. Calls
// are recorded, and faults strike, on the machine that serves them.
type interceptors struct {
	s           *Server
	personality fault.Personality
	streams     context.Context //nolint:containedctx // the time that streams have
}

func (i *interceptors) unary(
	ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler,
) (any, error) {
	ctx = withRoles(ctx, i.personality)

	if targets, one, err := i.route(ctx, info.FullMethod); err != nil {
		return nil, err
	} else if len(targets) > 0 {
		return i.s.forwardUnary(ctx, info.FullMethod, req, targets, one)
	}

	call := i.newCall(ctx, info.FullMethod)
	call.Detail = describe(req)

	ctx = context.WithValue(ctx, callKey{}, &call)

	var resp any

	err := i.serve(ctx, &call, info.FullMethod, func(fault.Fault) (err error) {
		resp, err = next(ctx, req)

		return err
	})
	if err != nil {
		return nil, err
	}

	return resp, nil
}

func (i *interceptors) stream(
	srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler,
) error {
	ctx, cancel := context.WithCancel(withRoles(ss.Context(), i.personality))
	defer cancel()
	defer context.AfterFunc(i.streams, cancel)()

	err := i.streamUntil(ctx, srv, ss, info, next)
	if ctx.Err() != nil && i.streams.Err() != nil {
		return errCut // some handlers take the end of their context for a good one
	}

	return err
}

// errCut is a client's error for a call whose connection was cut.
var errCut = status.Error(codes.Unavailable, "error reading from server: EOF")

func (i *interceptors) streamUntil(
	ctx context.Context, srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler,
) error {
	if targets, one, err := i.route(ctx, info.FullMethod); err != nil {
		return err
	} else if len(targets) > 0 {
		return i.s.forwardStream(ctx, info, ss, targets, one)
	}

	call := i.newCall(ctx, info.FullMethod)
	ctx = context.WithValue(ctx, callKey{}, &call)

	return i.serve(ctx, &call, info.FullMethod, func(f fault.Fault) error {
		stream := &contextStream{ServerStream: ss, ctx: ctx}
		if f.After == 0 {
			return next(srv, stream)
		}

		err := next(srv, &fault.StruckStream{ServerStream: stream, Left: f.After,
			Strike: func() error { return i.s.strike(ctx, f) }})
		if errors.Is(err, errEndEarly) {
			return nil
		}

		return err
	})
}

// serve records a call, applies faults, authorizes and runs the handler, which receives a fault that strikes in
// the middle.
func (i *interceptors) serve(
	ctx context.Context, call *fault.Call, fullMethod string, handler func(fault.Fault) error,
) (err error) {
	recorded, err := i.s.calls.Begin(*call)
	call.Seq, call.Time = recorded.Seq, recorded.Time

	defer func() {
		finished := *call
		finished.Code = codes.Unknown
		i.s.calls.End(finished, err)
	}()

	if err != nil {
		return err
	}

	struck, hit := i.s.faults.Hit(*call)
	if hit && struck.After == 0 {
		if err := i.s.strike(ctx, struck); err != nil {
			return err
		}
	}

	if err := i.unknownService(fullMethod); err != nil {
		return err
	}

	if err := i.legacyRefusal(fullMethod); err != nil {
		return err
	}

	if err := authorize(ctx, fullMethod); err != nil {
		return err
	}

	err = handler(struck)

	if hit && struck.DropResponse {
		i.s.cut(ctx)

		return errCut
	}

	return err
}

func (i *interceptors) newCall(ctx context.Context, fullMethod string) fault.Call {
	call := fault.Call{
		Roles:       strings.Join(RolesOf(ctx).Strings(), ", "),
		Machine:     i.s.Name(),
		Service:     strings.TrimPrefix(path.Dir(fullMethod), "/"),
		Method:      path.Base(fullMethod),
		Personality: i.personality,
	}

	if client := clientOf(ctx); client != nil {
		call.Client, call.ClientEnds = client.SerialNumber.Text(16), client.NotAfter
	}

	return call
}

// describe is the part of a request that is worth recording and holds no secret.
func describe(req any) string {
	switch r := req.(type) {
	case *machine.ApplyConfigurationRequest:
		if r.GetDryRun() {
			return strings.ToLower(r.GetMode().String()) + " dry-run"
		}

		return strings.ToLower(r.GetMode().String())
	case *machine.ResetRequest:
		labels := make([]string, 0, len(r.GetSystemPartitionsToWipe()))
		for _, p := range r.GetSystemPartitionsToWipe() {
			labels = append(labels, p.GetLabel())
		}

		detail := strings.Join(labels, "+")
		if r.GetGraceful() {
			detail += " graceful"
		}

		if r.GetReboot() {
			detail += " reboot"
		}

		return strings.TrimSpace(detail)
	case *machine.BootstrapRequest:
		if r.GetRecoverEtcd() {
			return "recover"
		}

		return ""
	case *machine.EtcdRemoveMemberByIDRequest:
		return etcd.MemberID(r.GetMemberId())
	case *machine.UpgradeRequest:
		return r.GetImage()
	default:
		return ""
	}
}

// contextStream is a server stream with another context.
type contextStream struct {
	grpc.ServerStream

	ctx context.Context //nolint:containedctx // what the type is for
}

// Context implements grpc.ServerStream.
func (s *contextStream) Context() context.Context { return s.ctx }

// since113 are the services that came with Talos 1.13.
var since113 = []string{"/machine.ImageService", "/machine.LifecycleService", "/machine.DebugService"}

// unknownService answers for services that the machine's release does not have. They
// are registered nevertheless, so that apid passes them on to machines that do.
func (i *interceptors) unknownService(fullMethod string) error {
	if service := path.Dir(fullMethod); i.s.Before113() && slices.Contains(since113, service) {
		return status.Errorf(codes.Unimplemented, "unknown service %s", service[1:])
	}

	return nil
}

// legacyMaintenance reports whether this listener is the small maintenance server that
// Talos had before 1.13.
func (i *interceptors) legacyMaintenance() bool {
	return i.personality == fault.Maintenance && i.s.Before113()
}

// legacyServed are the MachineService methods of that server; of these, all but
// ApplyConfiguration were reserved to SideroLink peers.
var legacyServed = []string{
	"ApplyConfiguration", "Version", "Upgrade", "Reset", "MetaWrite", "MetaDelete", "GenerateConfiguration",
}

func (i *interceptors) legacyRefusal(fullMethod string) error {
	if !i.legacyMaintenance() || path.Dir(fullMethod) != "/machine.MachineService" {
		return nil
	}

	method := path.Base(fullMethod)

	switch {
	case method == "ApplyConfiguration":
		return nil
	case slices.Contains(legacyServed, method):
		return status.Error(codes.Unimplemented, "API is not implemented in maintenance mode")
	default:
		return status.Errorf(codes.Unimplemented, "method %s not implemented", method)
	}
}

type callKey struct{}

// Annotate lets a handler add to the detail of the call it serves.
func Annotate(ctx context.Context, detail string) {
	if c, ok := ctx.Value(callKey{}).(*fault.Call); ok {
		c.Detail = detail
	}
}

// strike applies the part of a fault that comes before the call is served. A nil
// error means that the call is to be served.
func (s *Server) strike(ctx context.Context, f fault.Fault) error {
	if err := timing.Pause(ctx, f.Latency); err != nil {
		return status.FromContextError(err).Err()
	}

	switch {
	case f.Crash:
		s.host.Crash()
		s.cut(ctx)

		return errCut
	case f.Cut:
		s.cut(ctx)

		return errCut
	case f.EndEarly:
		return errEndEarly
	case f.Code != codes.OK:
		msg := cmp.Or(f.Message, "injected fault")

		return status.Error(f.Code, msg)
	default:
		return nil
	}
}

// errEndEarly ends the handler of a stream that is to end early.
var errEndEarly = errors.New("the stream ends early")
