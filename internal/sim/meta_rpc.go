package sim

import (
	"context"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	metakeys "github.com/siderolabs/talos/pkg/machinery/meta"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/sim/apid"
)

// MetaWrite stores a value in META and applies it, as Talos does, before it answers. A machine that is not
// installed yet keeps META in memory until it is; here it keeps it as long as it exists.
func (a *api) MetaWrite(ctx context.Context, req *machine.MetaWriteRequest) (*machine.MetaWriteResponse, error) {
	key, err := a.b.metaKey(ctx, req.GetKey())
	if err != nil {
		return nil, err
	}

	if !a.b.m.SetMeta(key, string(req.GetValue())) {
		return nil, status.Error(codes.ResourceExhausted, "meta write failed")
	}

	return &machine.MetaWriteResponse{Messages: []*machine.MetaWrite{{}}}, nil
}

// MetaDelete removes a value from META.
func (a *api) MetaDelete(ctx context.Context, req *machine.MetaDeleteRequest) (*machine.MetaDeleteResponse, error) {
	key, err := a.b.metaKey(ctx, req.GetKey())
	if err != nil {
		return nil, err
	}

	if !a.b.m.DeleteMeta(key) {
		return nil, status.Error(codes.NotFound, "meta key not found")
	}

	return &machine.MetaDeleteResponse{Messages: []*machine.MetaDelete{{}}}, nil
}

// metaKey checks what both calls check, in Talos's order. From Talos 1.13.10 on its own keys are not for clients
// (v1alpha1_meta.go, meta/constants.go; Talos 1.13.9 has no such check).
func (b *boot) metaKey(ctx context.Context, number uint32) (uint8, error) {
	if err := b.notInContainer(); err != nil {
		return 0, err
	}

	key := uint8(number) //nolint:gosec // compared below
	if uint32(key) != number {
		return 0, status.Error(codes.InvalidArgument, "key must be a uint8")
	}

	if b.SincePatch(1, 13, 10) && !metakeys.IsAPIWriteable(key) {
		return 0, status.Error(codes.PermissionDenied, "meta key is not writeable via the API")
	}

	apid.Annotate(ctx, runtime.MetaKeyTagToID(key))

	return key, nil
}
