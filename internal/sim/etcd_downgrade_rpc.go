package sim

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// The calls of a downgrade of etcd, with Talos's own texts, the one about the status in all of them included (Talos
// 1.14, v1alpha1_server.go).

// EtcdDowngradeValidate asks etcd whether it could go back, which changes nothing.
func (a *api) EtcdDowngradeValidate(
	ctx context.Context, req *machine.EtcdDowngradeValidateRequest,
) (*machine.EtcdDowngradeValidateResponse, error) {
	of, err := a.downgradeEtcd(ctx, "validate", req.GetVersion())
	if err != nil {
		return nil, err
	}

	return &machine.EtcdDowngradeValidateResponse{Messages: []*machine.EtcdDowngradeValidate{{ClusterDowngrade: of}}}, nil
}

// EtcdDowngradeEnable starts a downgrade of etcd.
func (a *api) EtcdDowngradeEnable(
	ctx context.Context, req *machine.EtcdDowngradeEnableRequest,
) (*machine.EtcdDowngradeEnableResponse, error) {
	of, err := a.downgradeEtcd(ctx, "enable", req.GetVersion())
	if err != nil {
		return nil, err
	}

	return &machine.EtcdDowngradeEnableResponse{Messages: []*machine.EtcdDowngradeEnable{{ClusterDowngrade: of}}}, nil
}

// EtcdDowngradeCancel takes that back.
func (a *api) EtcdDowngradeCancel(ctx context.Context, _ *emptypb.Empty) (*machine.EtcdDowngradeCancelResponse, error) {
	of, err := a.downgradeEtcd(ctx, "cancel", "")
	if err != nil {
		return nil, err
	}

	return &machine.EtcdDowngradeCancelResponse{Messages: []*machine.EtcdDowngradeCancel{{ClusterDowngrade: of}}}, nil
}

func (a *api) downgradeEtcd(ctx context.Context, action, version string) (*machine.EtcdClusterDowngrade, error) {
	if err := a.b.onControlPlane("etcd downgrade " + action); err != nil {
		return nil, err
	}

	if action != "cancel" {
		if err := validateDowngrade(version); err != nil {
			return nil, err
		}
	}

	node, err := a.b.etcd.LocalMember()
	if err != nil {
		return nil, fmt.Errorf("failed to create etcd client: %w", err)
	}

	of, err := node.Downgrade(ctx, strings.ToUpper(action), version)
	if err != nil {
		return nil, fmt.Errorf("failed to query etcd status: %w", err)
	}

	return &machine.EtcdClusterDowngrade{ClusterVersion: of}, nil
}

func validateDowngrade(version string) error {
	if version == "" {
		return status.Error(codes.InvalidArgument, "version is required for etcd downgrade")
	}

	parts := strings.Split(version, ".")
	if len(parts) != 2 {
		return status.Error(codes.InvalidArgument, "version should be in MAJOR.MINOR format")
	}

	major, err := strconv.ParseUint(parts[0], 10, 63)
	if err != nil {
		return status.Error(codes.InvalidArgument, "major version should be a number")
	}

	minor, err := strconv.ParseUint(parts[1], 10, 63)
	if err != nil {
		return status.Error(codes.InvalidArgument, "minor version should be a number")
	}

	if major < 3 || major == 3 && minor < 5 {
		return status.Error(codes.InvalidArgument, "etcd downgrade is only supported to 3.5 and later versions")
	}

	return nil
}
