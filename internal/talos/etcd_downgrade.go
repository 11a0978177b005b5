package talos

import (
	"context"
	"errors"
	"fmt"
	"strings"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// What etcd says of a downgrade (etcd 3.6 and 3.7, rpctypes/error.go). Talos passes it on as text with code Unknown.
const (
	downgradeActive  = "etcdserver: cluster has a downgrade job in progress"
	downgradeInvalid = "etcdserver: invalid downgrade target version"
)

// DowngradeEtcd asks etcd, through the machine's member, to downgrade its data to a minor version such as 3.6. It
// returns once the data of this member has that version. That takes about four seconds (etcd 3.7,
// monitorVersionInterval), and the other members do the same meanwhile. Nothing restarts. It is safe to repeat.
// ErrQuorum is an etcd without a leader. ErrRejected (only another version is possible), ErrUnsupported (a worker)
// and ErrNotAuthorized are permanent.
func (m *Machine) DowngradeEtcd(ctx context.Context, to string) error {
	return doing(m.downgradeEtcd(ctx, to), "downgrade etcd to %s through %s", to, m.address)
}

func (m *Machine) downgradeEtcd(ctx context.Context, to string) error {
	s, err := m.changing(ctx, step.Member, m.knownUUID())
	if err != nil {
		return err
	}

	wentBack := m.etcdDataIs(to)
	if wentBack(ctx, s) == nil {
		return nil
	}

	err = m.enableEtcdDowngrade(ctx, s, to)

	switch {
	case err != nil && strings.Contains(err.Error(), downgradeActive):
	case err != nil && strings.Contains(err.Error(), downgradeInvalid):
		return wait.Permanent(fmt.Errorf("%w: %w", ErrRejected, err))
	case err != nil:
		return m.orSettled(ctx, s, etcdRefused(err), wentBack)
	}

	return m.settle(ctx, func(ctx context.Context) error { return wentBack(ctx, s) })
}

// enableEtcdDowngrade asks whether it can be done first, which changes nothing.
func (m *Machine) enableEtcdDowngrade(ctx context.Context, s *session, to string) error {
	ctx, cancel := context.WithTimeout(ctx, m.fleet.options.Timeouts.Change)
	defer cancel()

	if _, err := s.machine.EtcdDowngradeValidate(ctx, &machineapi.EtcdDowngradeValidateRequest{Version: to}); err != nil {
		return s.failed(err)
	}

	_, err := s.machine.EtcdDowngradeEnable(ctx, &machineapi.EtcdDowngradeEnableRequest{Version: to})

	return s.failed(err)
}

// etcdDataIs reports whether the data of the machine's member is for a version.
func (m *Machine) etcdDataIs(version string) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		own, err := bounded(ctx, m, s.etcdStatus)
		if err != nil {
			return err
		}

		if data := etcdstate.MinorOf(own.GetStorageVersion()); data != version {
			return fmt.Errorf("the etcd data of this member has version %s", data)
		}

		return nil
	}
}

// CancelEtcdDowngrade takes a DowngradeEtcd back: members that are all newer bring the data up again by themselves.
// Without a DowngradeEtcd it does nothing. The errors are those of DowngradeEtcd.
func (m *Machine) CancelEtcdDowngrade(ctx context.Context) error {
	s, err := m.changing(ctx, step.Member, m.knownUUID())
	if err != nil {
		return fmt.Errorf("cancel the etcd downgrade through %s: %w", m.address, err)
	}

	ctx, cancel := context.WithTimeout(ctx, m.fleet.options.Timeouts.Change)
	defer cancel()

	// A second one is no error (etcd 3.7, EtcdServer.downgradeCancel).
	if _, err := s.machine.EtcdDowngradeCancel(ctx, &emptypb.Empty{}); err != nil {
		return fmt.Errorf("cancel the etcd downgrade through %s: %w", m.address, s.etcdFailed(err))
	}

	return nil
}

// etcdVersions are the versions of the machine's member. Whether a downgrade of etcd is enabled shows only in its
// answer to a request for an even older version. That request is sent where the data is older than the member.
func (m *Machine) etcdVersions(
	ctx context.Context, s *session, own *machineapi.EtcdMemberStatus,
) (etcdstate.Versions, error) {
	v := etcdstate.Versions{
		Server: etcdstate.MinorOf(own.GetProtocolVersion()), Data: etcdstate.MinorOf(own.GetStorageVersion()),
	}

	if !versions.Older(v.Data, v.Server) {
		return v, nil
	}

	var err error
	v.GoesBack, err = bounded(ctx, m, func(ctx context.Context) (bool, error) { return s.goesBack(ctx, v.Data) })

	return v, err
}

func (s *session) goesBack(ctx context.Context, data string) (bool, error) {
	_, err := s.machine.EtcdDowngradeValidate(ctx,
		&machineapi.EtcdDowngradeValidateRequest{Version: etcdstate.Before(data)})
	if err == nil {
		return false, nil
	}

	err = s.failed(err)

	switch {
	case strings.Contains(err.Error(), downgradeActive):
		return true, nil
	case strings.Contains(err.Error(), downgradeInvalid), errors.Is(err, ErrRejected), errors.Is(err, ErrNotAuthorized):
		// Its version changes right now, Talos does not request that version, or the caller only reads.
		return false, nil
	default:
		return false, fmt.Errorf("check for an etcd downgrade in progress: %w", err)
	}
}
