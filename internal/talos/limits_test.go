package talos

import (
	"context"
	"strings"
	"testing"
	"time"

	cosi "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/resource/protobuf"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// hostileServer answers what it wants.
type hostileServer struct {
	cosi.UnimplementedStateServer

	get  func() *cosi.GetResponse
	item func() *cosi.ListResponse
	// times it answers to a list; for ever when negative.
	times int
}

func (l *hostileServer) Get(context.Context, *cosi.GetRequest) (*cosi.GetResponse, error) {
	if l.get == nil {
		return nil, status.Error(codes.NotFound, "no such resource")
	}

	return l.get(), nil
}

func (l *hostileServer) List(_ *cosi.ListRequest, stream grpc.ServerStreamingServer[cosi.ListResponse]) error {
	for n := 0; n != l.times; n++ {
		if err := stream.Send(l.item()); err != nil {
			return err
		}
	}

	return nil
}

// extension is a resource that can be read, with a text of a size.
func extension(size int) *cosi.Resource {
	described := runtime.NewExtensionStatus(runtime.NamespaceName, "a")
	described.TypedSpec().Metadata.Description = strings.Repeat("a", size)

	encoded, err := protobuf.FromResource(described)
	if err != nil {
		panic(err)
	}

	sent, err := encoded.Marshal()
	if err != nil {
		panic(err)
	}

	return sent
}

// Any client at the address of a machine may answer as in maintenance mode. It is read for a bounded time and with
// bounded memory, and no answer causes a crash.
func TestLimits_answersOfAnyServer(t *testing.T) {
	t.Parallel()

	item := func(size int) func() *cosi.ListResponse {
		return func() *cosi.ListResponse { return &cosi.ListResponse{Resource: extension(size)} }
	}
	get := func(r *cosi.Resource) func() *cosi.GetResponse {
		return func() *cosi.GetResponse { return &cosi.GetResponse{Resource: r} }
	}

	for name, machine := range map[string]*hostileServer{
		"endless":        {item: item(1 << 10), times: -1},
		"endless, large": {item: item(200 << 10), times: -1},
		"huge item":      {item: item(2 << 20), times: -1},
		"no items":       {item: func() *cosi.ListResponse { return &cosi.ListResponse{} }, times: 3},
		"huge":           {get: get(extension(3 << 20))},
		"nothing":        {get: get(nil)},
		"no metadata":    {get: get(&cosi.Resource{})},
		"no spec":        {get: get(&cosi.Resource{Metadata: extension(0).GetMetadata()})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			ca := newTestCA(t)
			g := serveTLS(t, maintenance(t, nil), func(s *grpc.Server) { cosi.RegisterStateServer(s, machine) })
			o := testOptions(g.port(), ca.credentials(t))

			f, err := NewFleet(o)
			if err != nil {
				t.Fatal(err)
			}

			defer f.Close()

			seen := f.Machine(cluster.Machine{Name: "cp-1", Wanted: cluster.Wanted{Address: "127.0.0.1"}}).Observe(t.Context())
			if seen.Access == step.Member {
				t.Errorf("a liar is %+v", seen)
			}

			s, _, err := connect(t, o, "")
			if err != nil {
				t.Fatal(err)
			}

			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()

			if machine.item == nil {
				_, _, _, err = s.machineStatus(ctx)
			} else {
				_, _, err = s.extensions(ctx)
			}

			if err == nil || ctx.Err() != nil {
				t.Errorf("a liar is believed: %v", err)
			}

			if strings.HasPrefix(name, "endless") && !strings.Contains(err.Error(), errTooMuch.Error()) {
				t.Errorf("the end of an endless answer: %v", err)
			}
		})
	}
}
