package apid

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/talosop/terraform-provider-talosop/internal/sim/certs"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

// manyServices may be called with nodes metadata, which fans out and aggregates.
var manyServices = []string{
	"/machine.MachineService", "/cluster.ClusterService", "/inspect.InspectService",
	"/storage.StorageService", "/time.TimeService",
}

// route decides as apid's director does: no targets means the call is served here;
// one says that it goes to a single machine whose answer is passed on as it is.
func (i *interceptors) route(ctx context.Context, fullMethod string) (targets []string, one bool, err error) {
	md, ok := metadata.FromIncomingContext(ctx)
	if i.personality == fault.Maintenance || !ok || len(md["proxyfrom"]) > 0 {
		return nil, false, nil
	}

	nodes, node := md["nodes"], md["node"]

	if _, set := md["node"]; set && len(node) != 1 {
		return nil, false, status.Error(codes.InvalidArgument, "node metadata must be single-valued")
	}

	// Workers hold no client certificate: they serve what names them and refuse the rest.
	if !i.s.ControlPlane() {
		if len(node) == 1 && i.s.isLocal(node[0]) {
			node = nil
		}

		if len(nodes) == 1 && i.s.isLocal(nodes[0]) {
			nodes = nil
		}
	}

	switch {
	case len(nodes) > 0 && !slices.Contains(manyServices, path.Dir(fullMethod)):
		return nil, false, status.Errorf(codes.InvalidArgument, "one-2-many proxying is not supported for method %s",
			fullMethod)
	case len(nodes) > 0:
		targets = nodes
	case len(node) == 1:
		targets, one = node, true
	default:
		return nil, false, nil
	}

	if !i.s.ControlPlane() {
		return nil, false, status.Error(codes.PermissionDenied, "no request forwarding")
	}

	return targets, one, nil
}

func (s *Server) isLocal(target string) bool {
	return target == s.Address().String() || target == "127.0.0.1" || strings.EqualFold(target, s.Hostname())
}

// dialTarget connects to another machine as apid does, with a certificate that may
// speak for others.
func (s *Server) dialTarget(ctx context.Context, target string) (context.Context, *grpc.ClientConn, error) {
	ca, err := certs.LoadAuthority(s.OSAuthority())
	if err != nil {
		return ctx, nil, err
	}

	cert, err := ca.Issue(certs.Leaf{
		Organization: []string{string(role.Impersonator)}, Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return ctx, nil, err
	}

	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)

	for _, accepted := range s.Config().Machine().Security().AcceptedCAs() {
		roots.AppendCertsFromPEM(accepted.Crt)
	}

	backoffs := backoff.DefaultConfig
	backoffs.MaxDelay = 15 * time.Second

	conn, err := grpc.NewClient(
		"passthrough:///"+net.JoinHostPort(s.host.Resolve(target), strconv.Itoa(s.port)),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			MinVersion: tls.VersionTLS13, RootCAs: roots, Certificates: []tls.Certificate{cert},
		})),
		grpc.WithContextDialer(s.dialOut),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoffs, MinConnectTimeout: 20 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(constants.GRPCMaxMessageSize)),
	)
	if err != nil {
		return ctx, nil, fmt.Errorf("dial %s: %w", target, err)
	}

	md, _ := metadata.FromIncomingContext(ctx)
	md = md.Copy()
	md.Set(roleMetadata, RolesOf(ctx).Strings()...)
	md.Set("proxyfrom", s.Endpoint())

	for _, key := range []string{":authority", "nodes", "node", "content-type", "user-agent"} {
		delete(md, key)
	}

	return metadata.NewOutgoingContext(ctx, md), conn, nil
}

// dialOut connects from the machine's own address, by which a firewall identifies it.
func (s *Server) dialOut(ctx context.Context, to string) (net.Conn, error) {
	from := &net.TCPAddr{IP: s.Address().AsSlice()}

	return (&net.Dialer{LocalAddr: from}).DialContext(ctx, "tcp", to)
}

// methodTypes finds the messages of a method.
func methodTypes(fullMethod string) (in, out protoreflect.MessageType, err error) {
	service := protoreflect.FullName(strings.TrimPrefix(path.Dir(fullMethod), "/"))

	desc, err := protoregistry.GlobalFiles.FindDescriptorByName(service.Append(protoreflect.Name(path.Base(fullMethod))))
	if err != nil {
		return nil, nil, fmt.Errorf("find method %s: %w", fullMethod, err)
	}

	method, ok := desc.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, nil, fmt.Errorf("%s is not a method", fullMethod)
	}

	if in, err = protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName()); err != nil {
		return nil, nil, fmt.Errorf("find request of %s: %w", fullMethod, err)
	}

	if out, err = protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName()); err != nil {
		return nil, nil, fmt.Errorf("find response of %s: %w", fullMethod, err)
	}

	return in, out, nil
}

// forwardUnary sends a call on. To one machine, its answer or error is the answer; to
// many, every machine's messages or error become messages marked with its name.
func (s *Server) forwardUnary(ctx context.Context, method string, req any, targets []string, one bool) (any, error) {
	_, out, err := methodTypes(method)
	if err != nil {
		return nil, status.Error(codes.Unimplemented, err.Error())
	}

	answers := make([]proto.Message, len(targets))
	errs := make([]error, len(targets))
	done := make(chan struct{})

	for i, target := range targets {
		go func() {
			defer func() { done <- struct{}{} }()

			answers[i] = out.New().Interface()
			errs[i] = s.invoke(ctx, target, method, req, answers[i])
		}()
	}

	for range targets {
		<-done
	}

	if one {
		return answers[0], errs[0]
	}

	merged := out.New()
	field := merged.Descriptor().Fields().ByName("messages")
	list := merged.Mutable(field).List()

	for i, target := range targets {
		if errs[i] != nil {
			element := list.NewElement()
			mark(element.Message(), target, errs[i])
			list.Append(element)

			continue
		}

		messages := answers[i].ProtoReflect().Get(field).List()
		for n := range messages.Len() {
			mark(messages.Get(n).Message(), target, nil)
			list.Append(messages.Get(n))
		}
	}

	return merged.Interface(), nil
}

func (s *Server) invoke(ctx context.Context, target, method string, req any, out proto.Message) error {
	ctx, conn, err := s.dialTarget(ctx, target)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	defer conn.Close() //nolint:errcheck // the answer is in

	return conn.Invoke(ctx, method, req, out)
}

// mark sets a message's metadata to the machine it comes from, and its error.
func mark(msg protoreflect.Message, target string, err error) {
	field := msg.Descriptor().Fields().ByName("metadata")
	if field == nil {
		return
	}

	meta := &common.Metadata{Hostname: target}
	if err != nil {
		meta.Error = err.Error()
		meta.Status = status.Convert(err).Proto()
	}

	msg.Set(field, protoreflect.ValueOfMessage(meta.ProtoReflect()))
}

// forwardStream sends a stream on, message by message. With many targets the streams
// are passed on one after the other, errors in-band, as clients cannot rely on an order.
func (s *Server) forwardStream(
	ctx context.Context, info *grpc.StreamServerInfo, ss grpc.ServerStream, targets []string, one bool,
) error {
	in, out, err := methodTypes(info.FullMethod)
	if err != nil {
		return status.Error(codes.Unimplemented, err.Error())
	}

	requests, err := receiveAll(ss, in, info.IsClientStream)
	if err != nil {
		return err
	}

	for _, target := range targets {
		err := s.pipe(ctx, info, ss, out, requests, target, !one)

		switch {
		case err == nil:
		case one:
			return err
		default:
			failed := out.New()
			mark(failed, target, err)

			if err := ss.SendMsg(failed.Interface()); err != nil {
				return err
			}
		}
	}

	return nil
}

// receiveAll reads the request of a server stream, or all requests of a client stream.
func receiveAll(ss grpc.ServerStream, in protoreflect.MessageType, many bool) ([]proto.Message, error) {
	var requests []proto.Message

	for {
		req := in.New().Interface()

		switch err := ss.RecvMsg(req); {
		case errors.Is(err, io.EOF):
			return requests, nil
		case err != nil:
			return nil, err
		}

		requests = append(requests, req)
		if !many {
			return requests, nil
		}
	}
}

func (s *Server) pipe(
	ctx context.Context, info *grpc.StreamServerInfo, ss grpc.ServerStream,
	out protoreflect.MessageType, requests []proto.Message, target string, marked bool,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	ctx, conn, err := s.dialTarget(ctx, target)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	defer conn.Close() //nolint:errcheck // the stream is over

	desc := &grpc.StreamDesc{ServerStreams: info.IsServerStream, ClientStreams: info.IsClientStream}

	cs, err := conn.NewStream(ctx, desc, info.FullMethod)
	if err != nil {
		return err
	}

	for _, req := range requests {
		// A refused request shows as the stream's error below.
		if err := cs.SendMsg(req); err != nil {
			break
		}
	}

	if err := cs.CloseSend(); err != nil {
		return err
	}

	for {
		msg := out.New()

		switch err := cs.RecvMsg(msg.Interface()); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}

		if marked {
			mark(msg, target, nil)
		}

		if err := ss.SendMsg(msg.Interface()); err != nil {
			return err
		}
	}
}
