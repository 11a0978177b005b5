package talos

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
	"github.com/talosop/terraform-provider-talosop/internal/talosversion"
)

// The states of an etcd with the data of an earlier boot: Preparing to start with it, as after every reboot, or
// Failed to. The planner must not take them for one that waits for its bootstrap: the machine may hold the
// cluster's data.
const (
	preparingWithData step.ServiceState = "Preparing to start with existing data"
	failedWithData    step.ServiceState = "Failed to start with existing data"
)

// Observe asks the machine what it is. It has no error: a machine that does not
// answer, or answers with another identity, is described by Access and Cause.
//
// A member that is running and ready costs four calls, side by side: MachineStatus, MachineConfig, Version and
// ExtensionStatus; where nothing of configurations is wanted, MachineType and the node's name instead of MachineConfig.
// MetaKeys is one more where values in META are wanted, SecurityState where [Options].SecureBoot is set, AddressStatus
// where [Options].Links is.
// SystemInformation and the id of the boot are two more unless [Options].TrustNodeNames is set. Version,
// ExtensionStatus and the id of the boot are asked once in a connection. One that is on its way costs up to five more:
// its node's name, the services, the event log in two calls, and the content of etcd's data directory; one whose etcd
// failed, the services once or twice again. One whose volumes or disks this run wiped costs two more, and one in
// maintenance mode one.
func (m *Machine) Observe(ctx context.Context) step.MachineState {
	limit := m.fleet.options.Timeouts.Observe

	ctx, cancel := context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("%w: no complete response within %s", ErrUnreachable, limit))
	defer cancel()

	var seen step.MachineState

	err := m.read(ctx, func(ctx context.Context, s *session) (err error) {
		seen, err = m.observe(ctx, s)
		if err == nil {
			seen.FoundAt = m.elsewhere(ctx, s)
		}

		return err
	})
	if err == nil {
		return seen
	}

	if errors.Is(err, ErrForeign) {
		return step.MachineState{Access: step.Foreign, Cause: cause(err, ErrForeign)}
	}

	out := step.MachineState{Access: step.Unreachable, Cause: cause(err, ErrUnreachable), Refuses: refuses(err)}

	if invalid := (certificateError{}); errors.As(err, &invalid) {
		out.Certificate = invalid.certificate
	}

	return out
}

// elsewhere is the address of a session when it is not the machine's own and the machine is not reachable there.
// It disturbs no running call.
func (m *Machine) elsewhere(ctx context.Context, s *session) string {
	if s.address == m.address || s.address == m.asWanted().WaitsAt {
		return ""
	}

	home, err := m.openKnown(ctx, m.address, m.knownUUID())
	if err != nil {
		return s.address
	}

	home.close()

	return ""
}

// cause is the text of an error without the class, which Access already shows.
func cause(err, class error) string {
	return strings.Replace(err.Error(), class.Error()+": ", "", 1)
}

func (m *Machine) observe(ctx context.Context, s *session) (step.MachineState, error) {
	if s.peer.access == step.Maintenance {
		return m.observeMaintenance(ctx, s)
	}

	return m.observeMember(ctx, s)
}

// observeMaintenance describes a machine that waits for its configuration.
//
// The maintenance API is up for a moment before the machine waits and after it
// accepted a configuration; the stage is booting then, and the machine cannot be
// given one. That counts as unreachable, because it passes.
func (m *Machine) observeMaintenance(ctx context.Context, s *session) (step.MachineState, error) {
	out := step.MachineState{Access: step.Maintenance}

	calls, callCtx := panics.WithContext(ctx)
	calls.Go(func() (err error) {
		out.Stage, out.Ready, out.Unmet, err = m.status(callCtx, s)

		return err
	})
	calls.Go(func() (err error) {
		out.UUID, err = bounded(callCtx, m, s.hardwareUUID)

		return err
	})
	calls.Go(func() error { return m.version(callCtx, s, &out) })
	calls.Go(func() error { return m.observeLink(callCtx, s, &out) })
	calls.Go(func() (err error) {
		out.DiskProblem, err = bounded(callCtx, m, func(ctx context.Context) (string, error) { return m.diskProblem(ctx, s) })

		return err
	})

	if err := calls.Wait(); err != nil {
		return out, err
	}

	if out.Stage != step.StageMaintenance {
		return out, fmt.Errorf("%w: the machine is %s and entering or leaving maintenance mode", ErrUnreachable, out.Stage)
	}

	return out, m.observeReset(ctx, s, &out)
}

// diskProblem asks for the disks of a machine that Talos is not installed on, and compares them with the wanted
// configuration. Talos that is on a disk stays there: it asks for no disk then (Talos 1.13,
// v1alpha1_sequencer_tasks.go, Install).
func (m *Machine) diskProblem(ctx context.Context, s *session) (string, error) {
	if m.fleet.options.DiskProblem == nil {
		return "", nil
	}

	if installed, err := s.systemDisk(ctx); err != nil || installed != nil {
		return "", err
	}

	disks, err := s.blockDevices(ctx)
	if err != nil {
		return "", err
	}

	return m.fleet.options.DiskProblem(m.name, disks)
}

func (m *Machine) observeMember(ctx context.Context, s *session) (step.MachineState, error) {
	out := step.MachineState{Access: step.Member, Certificate: s.peer.certificate}

	var (
		section *machineSection
		raw     []byte
	)

	calls, callCtx := panics.WithContext(ctx)
	calls.Go(func() (err error) {
		out.Stage, out.Ready, out.Unmet, err = m.status(callCtx, s)

		return err
	})
	calls.Go(func() (err error) {
		section, raw, err = m.configuration(callCtx, s, &out)

		return err
	})
	calls.Go(func() error { return m.version(callCtx, s, &out) })
	calls.Go(func() error { return m.observeUUID(callCtx, s, &out) })
	calls.Go(func() error { return m.observeBoot(callCtx, s, &out) })
	calls.Go(func() error { return m.observeWipe(callCtx, s, &out) })
	calls.Go(func() error { return m.observeMeta(callCtx, s, &out) })
	calls.Go(func() error { return m.observeSecureBoot(callCtx, s, &out) })
	calls.Go(func() error { return m.observeLink(callCtx, s, &out) })
	calls.Go(func() error { return m.observeImage(callCtx, s, &out) })

	if err := calls.Wait(); err != nil {
		return out, err
	}

	if err := m.observeInstallation(ctx, s, &out); err != nil {
		return out, err
	}

	if err := m.observeStaged(ctx, s, &out); err != nil {
		return out, err
	}

	if err := m.observeReboot(raw, &out); err != nil {
		return out, err
	}

	if err := m.observeNodeName(ctx, s, section, &out); err != nil {
		return out, err
	}

	if err := m.observeStaticPods(ctx, s, &out); err != nil {
		return out, err
	}

	if settled(&out) { // so what it said is all that there is
		s.known.image.keep(s, &bootedImage{out.Schematic, out.Extensions})
	}

	return out, m.observeEtcd(ctx, s, &out)
}

// observeImage fills in the source of the booted image.
func (m *Machine) observeImage(ctx context.Context, s *session, out *step.MachineState) error {
	image, err := bounded(ctx, m, s.booted)
	if image != nil {
		out.Schematic, out.Extensions = image.schematic, image.extensions
	}

	return err
}

// observeSecureBoot fills in whether the firmware verified what it started, if requested. Containers have no
// firmware, and say that it did not.
func (m *Machine) observeSecureBoot(ctx context.Context, s *session, out *step.MachineState) error {
	if !m.fleet.options.SecureBoot {
		return nil
	}

	ctx, cancel := m.callContext(ctx)
	defer cancel()

	res, err := get[*runtime.SecurityState](ctx, s, runtime.NamespaceName, runtime.SecurityStateType,
		runtime.SecurityStateID)
	if err != nil {
		return optional(err)
	}

	out.SecureBoot = &res.TypedSpec().SecureBoot

	return nil
}

// observeLink fills in which link has the address of a control plane, if requested. Behind a NAT, no link has it.
func (m *Machine) observeLink(ctx context.Context, s *session, out *step.MachineState) error {
	own, err := netip.ParseAddr(m.address)
	if err != nil || !m.fleet.options.Links || m.wanted.Role != step.ControlPlane {
		return nil // a name is no address of a link
	}

	ctx, cancel := m.callContext(ctx)
	defer cancel()

	addresses, err := list[*network.AddressStatus](ctx, s)
	if err != nil {
		return err
	}

	for address := range addresses.All() {
		if spec := address.TypedSpec(); spec.Address.Addr().Unmap() == own.Unmap() {
			out.Link = spec.LinkName
		}
	}

	return nil
}

// observeInstallation distinguishes the installation of a document, in which the stage stays booting, from a boot
// (since Talos 1.14, runtime/unattended_install.go), and why it makes no progress.
func (m *Machine) observeInstallation(ctx context.Context, s *session, out *step.MachineState) error {
	if out.Stage != step.StageBooting || !talosversion.Of(out.TalosVersion).InstallsUnattended {
		return nil
	}

	under, problem, err := m.installation(ctx, s)

	out.Uninstalled = err == nil && (under || problem != "")

	switch {
	case err != nil:
		return err
	case problem != "":
		// Another configuration may mend it: it takes one as any machine that boots.
		out.Cause, out.Unmet = problem, append([]string{problem}, out.Unmet...)
	case under:
		out.Stage, out.Ready = step.StageInstalling, false
	}

	return nil
}

func (m *Machine) installation(ctx context.Context, s *session) (under bool, problem string, err error) {
	ctx, cancel := m.callContext(ctx)
	defer cancel()

	return s.installation(ctx)
}

// settled machines need no closer inspection.
func settled(have *step.MachineState) bool {
	return have.Stage == step.StageRunning && have.Ready
}

// observeEtcd asks a booting control plane about the progress of its etcd, and on request about its origin. The
// order matters, because a running member has its first snapshot.
func (m *Machine) observeEtcd(ctx context.Context, s *session, out *step.MachineState) (err error) {
	if out.Role != step.ControlPlane {
		return nil
	}

	if !settled(out) {
		if out.EtcdService, out.BootstrapRequested, err = m.etcdProgress(ctx, s); err != nil {
			return err
		}

		if err := m.observeEtcdFailure(ctx, s, out); err != nil {
			return err
		}
	}

	if m.fleet.options.Restores {
		out.RestoredAt, err = bounded(ctx, m, s.restoredAt)
	}

	return err
}

// observeEtcdFailure adds to what a machine lacks why its etcd service failed: Talos itself
// only says there that it does not run.
func (m *Machine) observeEtcdFailure(ctx context.Context, s *session, out *step.MachineState) error {
	if out.EtcdService != step.ServiceFailed && out.EtcdService != failedWithData {
		return nil
	}

	failure, err := bounded(ctx, m, s.etcdFailure)
	if err == nil && failure != "" {
		out.Unmet = append(out.Unmet, "etcd: "+failure)
	}

	return err
}

// observeNodeName finds the name of the Kubernetes node. For a settled machine it uses the last known name. If
// this run never asked and read the configuration, it uses the certificate. So reading a running cluster costs no
// call for it.
func (m *Machine) observeNodeName(
	ctx context.Context, s *session, section *machineSection, out *step.MachineState,
) error {
	m.mu.Lock()
	name := m.nodeName
	m.mu.Unlock()

	if name == "" && section != nil {
		name = s.peer.nodeName(section.Kubelet.RegisterWithFQDN)
	}

	if !settled(out) || name == "" {
		var err error

		if name, err = bounded(ctx, m, s.nodename); err != nil {
			return err
		}

		m.mu.Lock()
		m.nodeName = name
		m.mu.Unlock()
	}

	out.NodeName = name

	return nil
}

func (m *Machine) status(ctx context.Context, s *session) (step.Stage, bool, []string, error) {
	ctx, cancel := m.callContext(ctx)
	defer cancel()

	return s.machineStatus(ctx)
}

// observeBoot fills in the id of the boot, by which only changes are followed.
func (m *Machine) observeBoot(ctx context.Context, s *session, out *step.MachineState) (err error) {
	if !m.fleet.options.TrustNodeNames {
		out.BootID, err = bounded(ctx, m, s.bootID)
	}

	return err
}

// configuration fills in role, digest and the images of Kubernetes, and returns the configuration they were read
// from.
//
// If none of that is requested, it does not read the configuration: the role has another source, and the section
// is nil.
func (m *Machine) configuration(
	ctx context.Context, s *session, out *step.MachineState,
) (section *machineSection, raw []byte, err error) {
	if !m.fleet.options.wantsConfigurations() {
		out.Role, err = bounded(ctx, m, s.machineType)

		return nil, nil, err
	}

	raw, err = m.observedConfig(ctx, s)
	if err != nil {
		return nil, nil, err
	}

	parsed, err := m.parse(raw)
	if err != nil {
		return nil, nil, err
	}

	section = &parsed.section
	out.Role, out.Images, out.ConfigDigest = section.role(), maps.Clone(parsed.images), parsed.digest
	out.Keys = parsed.keys

	return section, raw, nil
}

// observeReboot fills in what the change from a configuration to the wanted one needs a reboot for, by the Talos that
// the machine runs.
func (m *Machine) observeReboot(raw []byte, out *step.MachineState) (err error) {
	rebootFor, want := m.fleet.options.RebootFor, m.asWanted().ConfigDigest

	if rebootFor == nil || raw == nil || out.ConfigDigest == "" || want == "" || want == out.ConfigDigest {
		return nil
	}

	if out.RebootFor, err = rebootFor(m.name, out.TalosVersion, raw); err != nil {
		return fmt.Errorf("compare the machine configuration with the wanted one: %w", err)
	}

	return nil
}

// observeStaged fills in the digest of the configuration that the machine starts with the next time, where it may be
// another than the active one: where it was seen to be, and where the active one is not what is wanted.
func (m *Machine) observeStaged(ctx context.Context, s *session, out *step.MachineState) error {
	digest, wanted := m.fleet.options.Digest, m.asWanted()

	may := wanted.Staged || wanted.ConfigDigest != "" && wanted.ConfigDigest != out.ConfigDigest
	if digest == nil || out.ConfigDigest == "" || !may {
		return nil
	}

	next, err := m.readConfig(ctx, s, (*session).nextConfig)
	if err != nil {
		return err
	}

	staged, err := digest(next)
	if err != nil {
		return fmt.Errorf("digest the staged machine configuration: %w", err)
	}

	if staged != out.ConfigDigest {
		out.StagedDigest = staged
	}

	return nil
}

// wantsConfigurations reports whether any part of machine configurations is requested.
func (o Options) wantsConfigurations() bool {
	return o.Digest != nil || o.Images != nil || o.RebootFor != nil
}

// observedConfig reads the active configuration, with other credentials where there are such for it: on a connection
// of its own, which has to lead to the machine that the session leads to.
func (m *Machine) observedConfig(ctx context.Context, s *session) ([]byte, error) {
	return m.readConfig(ctx, s, (*session).activeConfig)
}

// readConfig is observedConfig of the active configuration, or of another one.
func (m *Machine) readConfig(
	ctx context.Context, s *session, which func(*session, context.Context) ([]byte, error),
) ([]byte, error) {
	read := func(s *session) ([]byte, error) {
		return bounded(ctx, m, func(ctx context.Context) ([]byte, error) { return which(s, ctx) })
	}

	id := m.fleet.forConfigurations
	if id == nil {
		return read(s)
	}

	own, err := m.openAs(ctx, s.route, *id)
	if err != nil {
		return nil, fmt.Errorf("read the machine configuration: %w", err)
	}

	defer own.close()

	if err := own.expect(step.Member); err != nil {
		return nil, fmt.Errorf("read the machine configuration: %w", err)
	}

	if own.peer.fqdn != s.peer.fqdn {
		return nil, fmt.Errorf("read the machine configuration: %w: %s responded instead of %s",
			ErrUnreachable, own.peer.fqdn, s.peer.fqdn)
	}

	return read(own)
}

// parsedConfig is what observing needs of a configuration. The same one is read again with
// every observation, and decoding it is what costs most of one.
type parsedConfig struct {
	sum     [sha256.Size]byte
	section machineSection
	images  kubenames.Images
	keys    rotation.Keys
	digest  string
}

// parse reads a configuration, unless it is the one that was read last.
func (m *Machine) parse(raw []byte) (parsedConfig, error) {
	sum := sha256.Sum256(raw)

	m.mu.Lock()
	last := m.parsed
	m.mu.Unlock()

	if last.sum == sum {
		return last, nil
	}

	section, err := machineSectionOf(raw)
	parsed := parsedConfig{sum: sum, section: section}

	if err != nil {
		return parsed, err
	}

	if images := m.fleet.options.Images; images != nil {
		if parsed.images, err = images(raw); err != nil {
			return parsed, fmt.Errorf("find the images of Kubernetes in the machine configuration: %w", err)
		}
	}

	if keys := m.fleet.options.Keys; keys != nil {
		if parsed.keys, err = keys(raw); err != nil {
			return parsed, fmt.Errorf("find the keys in the machine configuration: %w", err)
		}
	}

	if digest := m.fleet.options.Digest; digest != nil {
		if parsed.digest, err = digest(raw); err != nil {
			return parsed, fmt.Errorf("digest the machine configuration: %w", err)
		}
	}

	m.mu.Lock()
	m.parsed = parsed
	m.mu.Unlock()

	return parsed, nil
}

// version fills in version and platform. Maintenance mode before Talos 1.13 does
// not tell them.
func (m *Machine) version(ctx context.Context, s *session, out *step.MachineState) error {
	v, err := bounded(ctx, m, s.version)
	if err != nil {
		return err
	}

	out.TalosVersion, out.Platform = v.GetVersion().GetTag(), v.GetPlatform().GetName()

	return nil
}

// version asks for version and platform; nil where the call is not available.
func (s *session) version(ctx context.Context) (*machineapi.Version, error) {
	return once(ctx, s, &s.known.version, s.askVersion)
}

func (s *session) askVersion(ctx context.Context) (*machineapi.Version, error) {
	answer, err := s.machine.Version(ctx, &emptypb.Empty{})
	if err = s.failed(err); err != nil {
		if s.peer.access == step.Maintenance && errors.Is(err, ErrUnsupported) {
			return nil, nil
		}

		return nil, fmt.Errorf("read the Talos version: %w", err)
	}

	if len(answer.GetMessages()) == 0 {
		return nil, errors.New("read the Talos version: the response is empty")
	}

	return answer.GetMessages()[0], nil
}

// callContext bounds one read.
func (m *Machine) callContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, m.fleet.options.Timeouts.Call)
}

// bounded runs one read with its own deadline.
func bounded[T any](ctx context.Context, m *Machine, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := m.callContext(ctx)
	defer cancel()

	return call(ctx)
}
