package talos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// Options of a [Fleet]. The zero value of every field but Digest, Images and RebootFor
// has a default. Without these three an observation reads no machine configuration, and the
// role os:reader is enough for it.
type Options struct {
	// Credentials of the cluster. Without them only maintenance mode can be
	// spoken to.
	Credentials Credentials
	// ForConfigurations are credentials with the role os:admin, to read machine
	// configurations with where Credentials have less: Talos shows these to no other role. They
	// are used for nothing else.
	ForConfigurations Credentials
	// Digest normalizes a machine configuration and hashes it. Without it [step.MachineState] has no ConfigDigest.
	Digest func(config []byte) (string, error)
	// Images reads the images of Kubernetes from a machine configuration. Without it
	// [step.MachineState] has no Images.
	Images func(config []byte) (kubenames.Images, error)
	// Keys reads which keys a machine configuration carries. Without it [step.MachineState] has no Keys.
	Keys func(config []byte) (rotation.Keys, error)
	// RebootFor lists the fields for which a machine, given by its name and its version of Talos, has to reboot to
	// change from its active configuration to the wanted one. It lists none when the machine applies the change at
	// once. It is called when the digests of the two differ. Without it [step.MachineState] has no RebootFor.
	RebootFor func(machine, talos string, active []byte) ([]string, error)
	// DiskProblem says why the wanted configuration of a machine, given by its name, cannot install Talos on one of its
	// disks; empty where it can. It is asked about machines in maintenance mode that Talos is not installed on. Without
	// it, [step.MachineState] has no DiskProblem.
	DiskProblem func(machine string, disks []*block.Disk) (string, error)
	// Takes returns why a member with one configuration cannot get another, which Talos would accept and not boot
	// with; nil if it can. Nothing is sent on an error. Without Takes there is no such check.
	Takes func(active, config []byte) error
	// Port of the Talos API, 50000 by default.
	Port int
	// Endpoints are where machines are reached, host:port by their addresses, where that is not Port of the address. Their
	// certificates are for their addresses nevertheless.
	Endpoints map[string]string
	// ControlPlanes are the addresses of the control planes that proxy to other machines
	// ([cluster.Machine].Through), in the order in which they are tried.
	ControlPlanes []string
	// Dial makes TCP connections; by default directly, without regard to proxies.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TrustNodeNames lets an observation take a member's certificate for its hardware: when it names the node that
	// was recorded for the machine, the observation reports the recorded UUID without a request. The CA of the
	// cluster signed the certificate for this address and this name, so only a machine of the cluster can show it.
	// At worst, a machine that took over another one's name and address is reported with the UUID of the former.
	// That is good enough to show what runs where, but not to decide what may be changed. So leave it off for a
	// fleet that feeds the planner. A call that changes a machine always compares the UUID that the machine itself
	// reports. For the same reason the id of the boot is left out then.
	TrustNodeNames bool
	// Restores lets an observation find out when the etcd of a control plane began as a restored
	// snapshot.
	Restores bool
	// SecureBoot lets an observation read whether the firmware verified the boot.
	SecureBoot bool
	// Links lets an observation read which link of a control plane has its address.
	Links bool
	// Timeouts bound every call beside its context.
	Timeouts Timeouts
}

// Timeouts bound what one attempt may take. A zero field has its default.
type Timeouts struct {
	// Connect bounds TCP, TLS and the server's first words; 5 s.
	Connect time.Duration
	// Silence is how long a server may be silent on new connections until one more is tried beside them; 1 s.
	Silence time.Duration
	// Call bounds one read; 5 s.
	Call time.Duration
	// Observe bounds the observation of one machine as a whole; 10 s.
	Observe time.Duration
	// Change bounds a call that changes a machine; 15 s. Bootstrap needs more than
	// 5 s, after which Talos answers that its time is not in sync.
	Change time.Duration
	// Pull bounds the download of one image; 10 min.
	Pull time.Duration
	// Upgrade bounds the run of an installer, and before Talos 1.13 the download of
	// its image too; 15 min.
	Upgrade time.Duration
	// Leave bounds what a machine takes to leave etcd; 9 min. Talos waits up to 3 min
	// for its own member, and 5 min for an etcd that is not well (Talos 1.13).
	Leave time.Duration
	// Kubelet bounds how long a kubelet takes to run with another image, including its download; 5 min.
	Kubelet time.Duration
	// Stall bounds how long a machine may take for the next piece of a snapshot of etcd, in either direction, and
	// to write the last one to its disk; 2 min.
	Stall time.Duration
	// Restore bounds what a machine takes to verify a snapshot of etcd, once it has it, and
	// to begin with its data; 10 min.
	Restore time.Duration
	// Settle is how long a call looks for its effect: the end of maintenance mode after a configuration, the trace
	// of a bootstrap whose answer was lost, the start of a reset or of a reboot; 15 s.
	Settle time.Duration
	// Poll is the pause between two checks for an effect; 250 ms.
	Poll time.Duration
}

// relays are the control planes that proxy calls, in the order in which they are tried. One that did not reach a
// machine is tried last the next time, so the wait for a silent one happens once.
type relays struct {
	mu    sync.Mutex
	order []string
}

func (o Options) withDefaults() Options {
	o.Port = cmp.Or(o.Port, constants.ApidPort)

	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}

	t := &o.Timeouts
	for field, fallback := range map[*time.Duration]time.Duration{
		&t.Connect: 5 * time.Second,
		&t.Silence: time.Second,
		&t.Call:    5 * time.Second,
		&t.Observe: 10 * time.Second,
		&t.Change:  15 * time.Second,
		&t.Pull:    10 * time.Minute,
		&t.Upgrade: 15 * time.Minute,
		&t.Leave:   9 * time.Minute,
		&t.Kubelet: 5 * time.Minute,
		&t.Stall:   2 * time.Minute,
		&t.Restore: 10 * time.Minute,
		&t.Settle:  15 * time.Second,
		&t.Poll:    250 * time.Millisecond,
	} {
		if *field == 0 {
			*field = fallback
		}
	}

	return o
}

// Fleet reaches the machines of one cluster. It is safe for concurrent use.
type Fleet struct {
	options  Options
	identity identity
	// forConfigurations is nil where identity reads configurations, too.
	forConfigurations *identity
	relays            relays

	mu       sync.Mutex
	machines map[string]*Machine
}

// NewFleet prepares the API of a cluster's machines; it does no I/O. The error is
// about credentials that cannot be read.
func NewFleet(o Options) (*Fleet, error) {
	id, err := o.Credentials.parse()
	if err != nil {
		return nil, err
	}

	f := &Fleet{options: o.withDefaults(), identity: id, machines: map[string]*Machine{}}
	f.relays.order = slices.Clone(o.ControlPlanes)

	if !o.ForConfigurations.empty() {
		id, err := o.ForConfigurations.parse()
		if err != nil {
			return nil, err
		}

		f.forConfigurations = &id
	}

	return f, nil
}

// Machine returns the API of a machine; it does no I/O. Machines of the same name and address share their
// connection.
//
// If nothing answers at the address of the machine, its PreviousAddress is tried, too. It counts as found there
// when it reports its known UUID; without a UUID only the address counts. Calls then go to where it is.
func (f *Fleet) Machine(m cluster.Machine) *Machine {
	f.mu.Lock()
	defer f.mu.Unlock()

	key := m.Name + "@" + m.Address

	api, ok := f.machines[key]
	if !ok {
		api = &Machine{fleet: f, name: m.Name, address: m.Address}
		f.machines[key] = api
	}

	api.mu.Lock()
	defer api.mu.Unlock()

	if m.UUID != "" {
		api.uuid = m.UUID
	}

	api.wanted = m

	return api
}

// Close ends all connections. Running calls fail; the fleet stays usable.
func (f *Fleet) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()

	for _, m := range f.machines {
		m.disconnect()
	}
}

// Machine is the Talos API of one machine. It is safe for concurrent use.
type Machine struct {
	fleet   *Fleet
	name    string
	address string

	mu      sync.Mutex
	session *session
	// uuid is the known UUID of the machine; empty when unknown.
	uuid string
	// nodeName is the last name of the machine's Kubernetes node.
	nodeName string
	// wanted is the last request for the machine.
	wanted cluster.Machine
	// wiped is the last wipe of volumes that this run requested.
	wiped  wipeMark
	parsed parsedConfig
}

// dial opens a new session in place of the one that is there.
func (m *Machine) dial(ctx context.Context) (*session, error) {
	s, err := m.reach(ctx)

	m.mu.Lock()
	defer m.mu.Unlock()

	if m.session != nil {
		m.session.close()
	}

	m.session = s

	return s, err
}

// reach opens a session, which the caller closes: at the machine's address or, when nothing answers there, at the
// former one.
func (m *Machine) reach(ctx context.Context) (*session, error) {
	s, err := m.open(ctx, m.address)

	former, uuid := m.asWanted().PreviousAddress, m.knownUUID()

	if unreachable(err) && former != "" && former != m.address && uuid != "" {
		found, elsewhere := m.openKnown(ctx, former, uuid)
		if elsewhere == nil {
			s, err = found, nil
		} else {
			// The server at the former address says nothing about the machine.
			err = fmt.Errorf("%w; also not reachable at its previous address %s: %s", err, former, elsewhere.Error())
		}
	}

	if waits := m.asWanted().WaitsAt; unreachable(err) && waits != "" {
		found, elsewhere := m.openWaiting(ctx, waits, uuid)
		if elsewhere == nil {
			s, err = found, nil
		} else {
			err = fmt.Errorf("%w; also not in maintenance mode at %s: %s", err, waits, elsewhere.Error())
		}
	}

	return s, err
}

// openWaiting opens a session to a machine in maintenance mode, which is the one that is known where one is. Who is in
// another state at that address says nothing about the machine.
func (m *Machine) openWaiting(ctx context.Context, address, known string) (*session, error) {
	s, err := m.openDirect(ctx, address)
	if err == nil && known != "" {
		err = m.keepKnown(ctx, s, known)
	}

	if err != nil {
		return nil, err
	}

	if s.peer.access != step.Maintenance {
		s.close()

		return nil, errors.New("the machine at this address is configured")
	}

	return s, nil
}

// open opens a session to the server at an address, by the route of the machine.
func (m *Machine) open(ctx context.Context, address string) (*session, error) {
	if m.asWanted().Through {
		return m.openThrough(ctx, address)
	}

	return m.openDirect(ctx, address)
}

func (m *Machine) openDirect(ctx context.Context, address string) (*session, error) {
	s, _, err := m.fleet.options.open(ctx, address, m.fleet.identity, m.asWanted().Fingerprint)

	return s, err
}

// openKnown opens a session at an address and keeps it when the machine there is the
// one that is known by its UUID.
func (m *Machine) openKnown(ctx context.Context, address, known string) (*session, error) {
	s, err := m.open(ctx, address)
	if err != nil {
		return nil, err
	}

	if err := m.keepKnown(ctx, s, known); err != nil {
		return nil, err
	}

	return s, nil
}

// keepKnown closes a session that does not lead to the machine that is known by its UUID, and says so.
func (m *Machine) keepKnown(ctx context.Context, s *session, known string) error {
	uuid, err := bounded(ctx, m, s.hardwareUUID)
	if err == nil && !m.known(known).MayReport(uuid) {
		err = fmt.Errorf("the machine at this address has the hardware UUID %q, expected %s", uuid, known)
	}

	if err != nil {
		s.close()
	}

	return err
}

// connected returns the existing session, or else a new one. reused is true for the existing one.
func (m *Machine) connected(ctx context.Context) (s *session, reused bool, err error) {
	m.mu.Lock()
	s = m.session
	m.mu.Unlock()

	if s != nil && s.alive() {
		return s, true, nil
	}

	s, err = m.dial(ctx)

	return s, false, err
}

func (m *Machine) disconnect() {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.session != nil {
		m.session.close()
		m.session = nil
	}
}

// drop ends a session unless another one took its place, which may be in use.
func (m *Machine) drop(s *session) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.session == s {
		s.close()
		m.session = nil
	}
}

// readMember is read on a machine that has to answer as a member of its cluster.
func (m *Machine) readMember(ctx context.Context, call func(context.Context, *session) error) error {
	return m.read(ctx, func(ctx context.Context, s *session) error {
		if err := s.expect(step.Member); err != nil {
			return err
		}

		return call(ctx, s)
	})
}

// read runs a read on the session that is there and, when that one turns out to be
// broken, once more on a new one.
func (m *Machine) read(ctx context.Context, call func(context.Context, *session) error) error {
	for {
		s, reused, err := m.connected(ctx)
		if err != nil {
			return err
		}

		err = call(ctx, s)
		if err == nil {
			return nil
		}

		if !unreachable(err) {
			return err
		}

		// The session may have lived through a reboot, or the machine may have
		// changed its ways: the next call has to ask again.
		m.drop(s)

		if !reused || ctx.Err() != nil {
			return err
		}
	}
}
