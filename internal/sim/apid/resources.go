package apid

import (
	"context"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	clusterres "github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// servedState is what clients read: the boot's resources, with cluster members from
// the cluster's shared list, encoded once, behind the access policy.
func (s *Server) servedState() state.CoreState {
	return state.Filter(&encodedView{CoreState: &memberView{CoreState: s.Resources, b: s}}, s.accessPolicy)
}

// since114 are types that machines of Talos 1.14 have, and that all machines of a site share.
var since114 = []resource.Type{runtime.UnattendedInstallStatusType}

// accessPolicy is Talos's: nothing may be written, types and namespaces must be known,
// and sensitive types are for os:admin.
func (s *Server) accessPolicy(ctx context.Context, access state.Access) error {
	Annotate(ctx, strings.TrimSuffix(access.ResourceType+"/"+access.ResourceID, "/"))

	if !access.Verb.Readonly() {
		return status.Error(codes.PermissionDenied, "write access is not allowed")
	}

	rd, err := safe.StateGet[*meta.ResourceDefinition](ctx, s.Resources, resource.NewMetadata(
		meta.NamespaceName, meta.ResourceDefinitionType, strings.ToLower(access.ResourceType), resource.VersionUndefined))
	if state.IsNotFoundError(err) || !s.Since(1, 14) && slices.Contains(since114, access.ResourceType) {
		return status.Errorf(codes.PermissionDenied, "resource type %q is not supported", access.ResourceType)
	}

	if err != nil {
		return err
	}

	if rd.TypedSpec().Sensitivity == meta.Sensitive && !RolesOf(ctx).Includes(role.Admin) {
		return ErrNotAuthorized
	}

	_, err = s.Resources.Get(ctx, resource.NewMetadata(
		meta.NamespaceName, meta.NamespaceType, access.ResourceNamespace, resource.VersionUndefined))
	if state.IsNotFoundError(err) {
		return status.Errorf(codes.PermissionDenied, "namespace %q is not supported", access.ResourceNamespace)
	}

	return err
}

// memberView serves cluster members from the list all machines of a cluster share.
// A list per machine would grow with the square of the cluster's size.
type memberView struct {
	state.CoreState

	b *Server
}

func (v *memberView) core(ns resource.Namespace, typ resource.Type) state.CoreState {
	if ns == clusterres.NamespaceName && typ == clusterres.MemberType {
		if members := v.b.host.Members(); members != nil {
			return members
		}
	}

	return v.CoreState
}

// Get implements state.CoreState.
func (v *memberView) Get(ctx context.Context, p resource.Pointer, o ...state.GetOption) (resource.Resource, error) {
	return v.core(p.Namespace(), p.Type()).Get(ctx, p, o...)
}

// List implements state.CoreState.
func (v *memberView) List(ctx context.Context, k resource.Kind, o ...state.ListOption) (resource.List, error) {
	return v.core(k.Namespace(), k.Type()).List(ctx, k, o...)
}

// Watch implements state.CoreState.
func (v *memberView) Watch(
	ctx context.Context, p resource.Pointer, ch chan<- state.Event, o ...state.WatchOption,
) error {
	return v.core(p.Namespace(), p.Type()).Watch(ctx, p, ch, o...)
}

// WatchKind implements state.CoreState.
func (v *memberView) WatchKind(
	ctx context.Context, k resource.Kind, ch chan<- state.Event, o ...state.WatchKindOption,
) error {
	return v.core(k.Namespace(), k.Type()).WatchKind(ctx, k, ch, o...)
}

// WatchKindAggregated implements state.CoreState.
func (v *memberView) WatchKindAggregated(
	ctx context.Context, k resource.Kind, ch chan<- []state.Event, o ...state.WatchKindOption,
) error {
	return v.core(k.Namespace(), k.Type()).WatchKindAggregated(ctx, k, ch, o...)
}
