package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	metakeys "github.com/siderolabs/talos/pkg/machinery/meta"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/sim/apid"
	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
)

// lifecycleServer is the installation API that came with Talos 1.13.
type lifecycleServer struct {
	machine.UnimplementedLifecycleServiceServer

	b *boot
}

// Upgrade implements machine.LifecycleServiceServer: the installer's output, then its
// exit code. It neither looks at etcd nor drains nor reboots, and a failed installer
// is no error of the call.
func (s *lifecycleServer) Upgrade(
	req *machine.LifecycleServiceUpgradeRequest, stream machine.LifecycleService_UpgradeServer,
) error {
	b, name := s.b, req.GetSource().GetImageName()
	apid.Annotate(stream.Context(), name)

	if err := b.notInContainer(); err != nil {
		return err
	}

	if !b.lifecycle.TryLock() {
		return status.Error(codes.FailedPrecondition, "another installation/upgrade is already in progress")
	}
	defer b.lifecycle.Unlock()

	switch {
	case !b.m.Installed():
		return status.Error(codes.FailedPrecondition, "machine is not installed")
	case name == "":
		return status.Error(codes.InvalidArgument, "installer image name is required")
	case len(b.m.Disks) == 0:
		return status.Error(codes.Internal, "system disk not found")
	}

	space, err := images.SpaceOf(req.GetContainerd())
	if err != nil {
		return status.Errorf(codes.Internal, "upgrade failed: %v", err)
	}

	img, ok := b.images.Find(space, name)
	if !ok {
		return status.Errorf(codes.Internal,
			"upgrade failed: installer image %q not found in containerd store: image %q: not found", name, name)
	}

	send := func(p *machine.LifecycleServiceInstallProgress) error {
		return stream.Send(&machine.LifecycleServiceUpgradeResponse{Progress: p})
	}

	code, err := b.runInstaller(stream.Context(), img.Key, func(format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		b.World.Logf("%s: installer: %s", b.m.Name(), line)

		// The installer continues when no client listens, as in Talos.
		_ = send(&machine.LifecycleServiceInstallProgress{
			Response: &machine.LifecycleServiceInstallProgress_Message{Message: line + "\n"},
		})
	})
	if err != nil {
		return status.Errorf(codes.Internal, "upgrade failed: %v", err)
	}

	return send(&machine.LifecycleServiceInstallProgress{
		Response: &machine.LifecycleServiceInstallProgress_ExitCode{ExitCode: code},
	})
}

// Install implements machine.LifecycleServiceServer as far as an authenticated client
// can get: machines that know it are installed, or are being installed right now.
func (s *lifecycleServer) Install(
	_ *machine.LifecycleServiceInstallRequest, _ machine.LifecycleService_InstallServer,
) error {
	if err := s.b.notInContainer(); err != nil {
		return err
	}

	if s.b.m.Installed() {
		return status.Error(codes.AlreadyExists, "machine is already installed")
	}

	return status.Error(codes.FailedPrecondition, "another installation/upgrade is already in progress")
}

// Upgrade is the legacy call: it pulls the image, checks etcd, answers, and upgrades
// and reboots in the background. That the installer failed, or that another sequence
// runs, shows only in the events and in the version after the reboot.
func (a *api) Upgrade(ctx context.Context, req *machine.UpgradeRequest) (*machine.UpgradeResponse, error) {
	b := a.b

	if err := b.notInContainer(); err != nil {
		return nil, err
	}

	if !b.m.Installed() {
		return nil, status.Error(codes.FailedPrecondition, "Talos is not installed")
	}

	key, err := b.pullInstaller(ctx, req.GetImage())
	if err == nil {
		if _, ok := b.sim.registries.Installs(key); !ok {
			err = errNotInstaller
		}
	}

	if err != nil {
		return nil, fmt.Errorf("error validating installer image %q: %w", req.GetImage(), err)
	}

	// Talos 1.13.0 asks etcd with and without preserve, 1.13.5 does not.
	if b.ControlPlane() && !req.GetForce() && (!req.GetPreserve() || !b.SincePatch(1, 13, 5)) {
		if err := b.checkEtcdForUpgrade(ctx); err != nil {
			return nil, err
		}
	}

	actor := uuid.NewString()
	kexec := req.GetRebootMode() == machine.UpgradeRequest_DEFAULT

	if req.GetStage() {
		if !b.m.SetMeta(metakeys.StagedUpgradeImageRef, req.GetImage()) {
			return nil, errors.New("error adding staged upgrade image ref tag: %!w(<nil>)")
		}

		if !b.m.SetMeta(metakeys.StagedUpgradeInstallOptions, `{"Pull":true,"Upgrade":true}`) {
			return nil, errors.New("error adding staged upgrade install options tag: %!w(<nil>)")
		}

		b.StartSequence("stageUpgrade", actor, false, b.stageUpgradeSequence(kexec))
	} else {
		b.StartSequence("upgrade", actor, false, b.upgradeSequence(key, kexec))
	}

	return &machine.UpgradeResponse{Messages: []*machine.Upgrade{{Ack: "Upgrade request received", ActorId: actor}}}, nil
}

// checkEtcdForUpgrade refuses an upgrade that could cost etcd its quorum. The lock
// keeps two checks apart, not two upgrades.
func (b *boot) checkEtcdForUpgrade(ctx context.Context) error {
	via, err := b.etcd.AnyMember(ctx)
	if err != nil {
		return fmt.Errorf("failed to create etcd client: %w", err)
	}

	// The lock is a key with a lease, which an etcd without space refuses to grant.
	if alarms, err := via.Alarms(ctx); err == nil {
		for _, alarm := range alarms {
			if alarm.GetAlarm() == etcd.NoSpace {
				return fmt.Errorf("failed to acquire upgrade mutex: error establishing etcd concurrency session: %w",
					etcd.ErrNoSpace)
			}
		}
	}

	lock := b.joined().upgradeLock(via.Group())
	if !lock.TryLock() {
		return errors.New("failed to acquire upgrade mutex: error trying to lock etcd upgrade mutex: mutex: Locked by " +
			"another session")
	}
	defer lock.Unlock()

	if err := b.validateEtcdForUpgrade(ctx, via); err != nil {
		// %v: these reach clients with code Unknown, whatever etcd's own code was.
		return fmt.Errorf("error validating etcd for upgrade: %v", err) //nolint:errorlint // see above
	}

	return nil
}

func (b *boot) validateEtcdForUpgrade(ctx context.Context, via etcd.Node) error {
	members, err := via.Members(ctx)
	if err != nil {
		return err
	}

	if len(members) == 2 {
		return fmt.Errorf("etcd member count(%d) is insufficient to maintain quorum if upgrade commences", len(members))
	}

	running := map[uint64]etcd.Node{}
	for _, node := range b.clusterMembers() {
		running[node.ID()] = node
	}

	for _, member := range members {
		if member.GetHostname() == "" {
			return fmt.Errorf("etcd member %016x is not started, all members must be running to perform an upgrade",
				member.GetId())
		}

		err := etcd.ErrTimedOut
		if node := running[member.GetId()]; node != nil {
			err = node.Healthy(ctx)
		}

		if err != nil {
			return fmt.Errorf("etcd member %016x is not healthy; all members must be healthy to perform an upgrade: %w",
				member.GetId(), err)
		}
	}

	return nil
}

// upgradeSequence installs the image and reboots into it.
func (b *boot) upgradeSequence(key string, kexec bool) func(*machined.SequenceRun) error {
	return func(r *machined.SequenceRun) error {
		b.kubelet.BeginCordon(r.Ctx)

		if !b.Config().K8sNodeConfig().SkipNodeRegistration() {
			if err := r.Phase("drain", "cordonAndDrainNode", b.kubelet.CordonAndDrain); err != nil {
				return err
			}
		}

		if err := r.Phases("cleanup", "stopAllPods", "dbus", "stopDBus"); err != nil {
			return err
		}

		if err := r.Phase("stopServices", "stopServicesForUpgrade", b.stopServices); err != nil {
			return err
		}

		err := r.Phases(
			"unmount", "unmountPodMounts", "unmountBind", "unmountSystemDiskBindMounts",
			"unmountSystem", "unmountEphemeralPartition", "volumeFinalize", "teardownLifecycle",
		)
		if err != nil {
			return err
		}

		if err := r.Phase("upgrade", "upgrade",
			func(ctx context.Context) error { return b.upgradeVia(ctx, key) }); err != nil {
			return err
		}

		phases := []string{"meta", "reloadMeta"}
		if kexec {
			phases = append(phases, "kexec", "kexecPrepare")
		}

		if err := r.Phases(append(phases, "stopEverything", "stopAllServices")...); err != nil {
			return err
		}

		return r.Reboot()
	}
}

// stageUpgradeSequence only reboots: the next boot finds in META what to install.
func (b *boot) stageUpgradeSequence(kexec bool) func(*machined.SequenceRun) error {
	return func(r *machined.SequenceRun) error {
		b.kubelet.BeginCordon(r.Ctx)

		if err := r.Phases("cleanup", "stopAllPods", "dbus", "stopDBus"); err != nil {
			return err
		}

		if err := b.stopSequence(r, kexec); err != nil {
			return err
		}

		return r.Reboot()
	}
}

// Rollback makes the other boot entry the default and reboots, taking over whatever
// sequence runs. Called again after the reboot it goes forward again.
func (a *api) Rollback(context.Context, *machine.RollbackRequest) (*machine.RollbackResponse, error) {
	b := a.b

	if err := b.notInContainer(); err != nil {
		return nil, err
	}

	if !b.m.Installed() || len(b.m.Disks) == 0 {
		return nil, status.Error(codes.FailedPrecondition, "system disk not found")
	}

	var err error

	b.World.Update(func() { err = b.m.Disk.Flip() })

	if err != nil {
		return nil, err
	}

	b.StartSequence("reboot", "", true, b.rebootSequence(false))

	return &machine.RollbackResponse{Messages: []*machine.Rollback{{}}}, nil
}
