package machines

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// CredentialsTTL is how long the credentials of one operation live. They are made
// for it and never leave the process.
const CredentialsTTL = 24 * time.Hour

// The client that talosop is to the clusters it works on.
const (
	AdminRole  = "os:admin"
	AdminGroup = "system:masters"
	ClientName = "talosop"
)

// ProviderData assembles what an operation on machines needs. It is the one place
// where the provider meets the adapters.
type ProviderData struct {
	Policy   cluster.Policy
	Interval time.Duration
	Talos    talos.Options
	// Stores are the provider's credentials for buckets.
	Stores store.Credentials
	// Host is the provider's connection to host clusters.
	Host HostConnection
	// Hosts are the connections to host clusters that operations share, and tunnels what leads
	// through them while ephemeral resources are open.
	Hosts   *hosts
	tunnels *containers.Tunnels
	// KubernetesTimeout is how long a Kubernetes API may take to answer before snapshots are taken
	// without it: a backup matters most when it does not.
	KubernetesTimeout time.Duration
	// PlanTimeout is how long a plan may look at a store.
	PlanTimeout time.Duration
	// Addons is what the addons of a process share.
	Addons *Addons
	// Removals asks a cluster at plan time what an upgrade of Kubernetes removes; nil asks
	// nobody.
	Removals func(ctx context.Context, m *ProviderData, p MachineSet, u UpgradeOf) (Impediments, error)
}

// NewProviderData is the provider data of a process before its configuration is known.
func NewProviderData() *ProviderData {
	return &ProviderData{
		Policy:            cluster.DefaultPolicy(),
		Talos:             talos.Options{Digest: machineconfig.Digest, Images: ImagesIn},
		Removals:          askForRemovals,
		KubernetesTimeout: 10 * time.Second,
		PlanTimeout:       LookLimit,
		Addons:            newAddons(),
		Hosts:             NewHosts(),
		tunnels:           &containers.Tunnels{},
	}
}

// Fleet makes the adapter of one package fit the port of another.
type Fleet struct{ *talos.Fleet }

// Machine implements lifecycle.Fleet.
func (f Fleet) Machine(m cluster.Machine) lifecycle.Machine { return f.Fleet.Machine(m) }

// session is one operation on the machines of a pool.
type session struct {
	runner *lifecycle.Runner
	want   cluster.Spec
	Pool   MachineSet
	route  route
	// looked is whether the host cluster of containers was observed already, seen what it showed, and silent why it did not
	// answer; see firstLook.
	looked bool
	Seen   workload.Observation
	silent error
	// hostEnsured is whether the host cluster has anything of a container.
	hostEnsured bool
	Close       func()
}

// Open prepares an operation on a pool that is fully known. render says whether
// configurations are needed. It does no I/O.
func (m *ProviderData) Open(ctx context.Context, p MachineSet, recorded PriorState, render bool) (*session, error) {
	bundle, err := pki.Parse([]byte(p.Secrets))
	if err != nil {
		return nil, err
	}

	p = p.WithPeers(recorded)

	var files Rendered
	if render {
		if files, err = p.render(bundle); err != nil {
			return nil, err
		}
	}

	want := p.Spec(recorded, files)

	c, err := m.withConfigurations(files).lookingFor(want).ClientsOf(ctx, p, recorded, bundle, kubernetes.Options{
		StaticPods: !m.Talos.TrustNodeNames || p.ownsControlPlane(), Poll: m.Interval,
		Progress: func(message string) { tf.LogInfo(ctx, message) },
	})
	if err != nil {
		return nil, err
	}

	runner := &lifecycle.Runner{
		Fleet: m.fleetFor(c), Kubernetes: c.API, Configs: files.configs, Images: withImages, Policy: p.Policy(m.Policy), Interval: m.Interval,
		Lock:     lockOf(p, bundle, c.API),
		Progress: func(message string, fields map[string]any) { tf.LogInfo(ctx, message, fields) },
	}

	if p.changes.snapshots != "" {
		runner.Snapshots = backup.Folder{Path: p.changes.snapshots, Cluster: p.Settings.Name}
	}

	s := &session{runner: runner, want: want, Pool: p, route: c.route, Close: c.Close}
	s.restore(ctx, &restoring{Pool: p, Mark: bundle.Mark(), fallback: m.Stores})

	return s, nil
}

// withConfigurations is provider data that knows what machines have to reboot for to get the
// configurations that were rendered.
func (m *ProviderData) withConfigurations(files Rendered) *ProviderData {
	if files.configs == nil {
		return m
	}

	informed := *m
	informed.Talos.RebootFor = func(machine string, active []byte) ([]string, error) {
		_, fields, err := machineconfig.NeedsReboot(active, files.configs[machine])
		if errors.Is(err, machineconfig.ErrUnknownForm) {
			// It is then applied without a reboot, which Talos refuses where it takes one
			// (ApplyConfiguration in mode NO_REBOOT, Talos 1.13).
			return nil, nil
		}

		return fields, err
	}

	return &informed
}

// lookingFor is provider data that sees restores where one is wanted.
func (m *ProviderData) lookingFor(want cluster.Spec) *ProviderData {
	if want.RestoreFrom == "" {
		return m
	}

	looking := *m
	looking.Talos.Restores = true

	return &looking
}

// unpinned is a pool whose machines are not told by their fingerprints in maintenance mode:
// a machine that was reset has a new one, nothing is sent to it there any more, and it
// must not look like somebody else's.
func (p MachineSet) unpinned() MachineSet {
	machines := map[string]SetMachine{}

	for name, machine := range p.Machines {
		machine.fingerprint = ""
		machines[name] = machine
	}

	p.Machines = machines

	return p
}

// FleetOf is the Talos APIs of machines, with credentials for this operation; Close has to be called.
func (m *ProviderData) FleetOf(p MachineSet, bundle *pki.Bundle) (*talos.Fleet, error) {
	credentials, err := bundle.TalosClient([]string{AdminRole}, CredentialsTTL)
	if err != nil {
		return nil, err
	}

	options := m.Talos
	options.Credentials = talos.Credentials{CA: credentials.CA, Cert: credentials.Certificate, Key: credentials.Key}
	options.Fingerprints = map[string][]string{}

	for name, machine := range p.Machines {
		if machine.fingerprint != "" {
			options.Fingerprints[name] = []string{machine.fingerprint}
		}
	}

	return talos.NewFleet(options)
}

// KubernetesOf completes the options of a client with what the pool says.
func KubernetesOf(p MachineSet, bundle *pki.Bundle, options kubernetes.Options) (*kubernetes.Client, error) {
	credentials, err := bundle.KubernetesClient(ClientName, []string{AdminGroup}, CredentialsTTL)
	if err != nil {
		return nil, err
	}

	options.Endpoint, options.Fallbacks = p.Settings.Endpoint, p.Endpoints
	options.CA, options.Cert, options.Key = credentials.CA, credentials.Certificate, credentials.Key

	return kubernetes.New(options)
}

// observe asks every machine once. It only reports, so a machine is taken for what its
// certificate says it is. The snapshot is without strangers. Configurations are examined
// unless nobody wants to know.
func (m *ProviderData) observe(ctx context.Context, p MachineSet, recorded PriorState, exam *examination) (cluster.Spec, cluster.Snapshot, error) {
	reading := *m
	reading.Talos.TrustNodeNames = true
	reading.Talos.Restores = p.takesCluster()

	if exam != nil {
		reading.Talos.RebootFor = exam.Look
	}

	s, err := reading.Open(ctx, p, recorded, false)
	if err != nil {
		return cluster.Spec{}, cluster.Snapshot{}, err
	}

	defer s.Close()

	if exam != nil {
		exam.expect(s.want.Machines, recorded)
	}

	begun := time.Now()
	have := s.runner.Observe(ctx, s.want).WithoutMismatches(s.want)

	if exam != nil {
		exam.expectImages(s.want.Machines, have, recorded)
		exam.onHost = s.hostReport(ctx, begun)

		if strays := exam.onHost.newOrphans(p, recorded); len(strays) > 0 {
			recorded.removed = append(recorded.removed, strays...)

			return m.observe(ctx, p, recorded, exam)
		}
	}

	return s.want, have, nil
}

// run is how an operation on machines ended. Its snapshot is without strangers.
type run struct {
	want   cluster.Spec
	result lifecycle.Result
	err    error
	// renamed and replaced are those of the record the run began with.
	renamed, replaced map[string]string
	// pods is what the pods of containers are made of that are as wanted.
	pods map[string]string
	// Peers are the addresses at which the etcd of control planes in containers is found, by their configurations.
	Peers map[string]string
	// workers are those that a host cluster still has when their cluster is gone; nil for none.
	workers *workload.WorkersLeftError
	// anonymous is true when it restored a snapshot that may be of any cluster.
	anonymous bool
	// remains is what an update that failed would still have to do.
	remains types.List
}

func (s *session) ended(recorded PriorState, result lifecycle.Result, err error) run {
	result.Snapshot = result.Snapshot.WithoutMismatches(s.want)
	result.Touched = result.Touched || s.hostEnsured

	return run{
		want: s.want, result: result, err: err, renamed: recorded.renamed, replaced: recorded.replaced, anonymous: s.anonymous(),
		pods: s.podsOf(result.Snapshot), Peers: s.Pool.Peers(),
	}
}

// converge makes the machines what the pool says.
func (m *ProviderData) converge(ctx context.Context, p MachineSet, recorded PriorState) run {
	// A create has told nobody of machines that it would remove.
	open := func() (*session, error) { return m.Open(ctx, p, recorded, true) }
	if recorded.Machines != nil {
		open = func() (*session, error) { return m.openAll(ctx, p, &recorded, &recorded.removed, true) }
	}

	s, err := open()
	if err != nil {
		return run{err: err}
	}

	defer s.Close()

	// What other control planes hold is asked before etcd begins, and not at any other time.
	if p.single != nil && s.want.OwnsBootstrap() {
		s.want.OtherControlPlanes = p.single.beside
	}

	if taken := m.Hosts.Claim(s.route, recorded.Machines == nil); taken != "" {
		return run{err: &poolTakenError{taken}}
	}

	if made, err := s.ensureHost(ctx, recorded); err != nil {
		if !made && recorded.Machines == nil {
			m.Hosts.Release(s.route)
		}

		return s.hostNotEnsured(recorded, made, err)
	}

	result, err := s.runner.Converge(ctx, s.want)

	return s.ended(recorded, result, err)
}

// teardown resets the machines of the pool.
func (m *ProviderData) teardown(ctx context.Context, p MachineSet, recorded PriorState) run {
	if p.single != nil {
		return m.takeOut(ctx, p, recorded)
	}

	recorded.left = recorded.leftovers(p)

	s, err := m.openAll(ctx, p.unpinned(), &recorded, &recorded.left, false)
	if err != nil {
		return run{err: err}
	}

	defer s.Close()

	s.want.Machines = append(s.want.Machines, recorded.left...)

	// With the control plane the whole cluster goes, and its Node objects with it.
	s.runner.Policy.KeepNodes = p.takesCluster()

	if err := s.hostAnswers(ctx); err != nil {
		return run{err: err}
	}

	var workers *workload.WorkersLeftError

	result, err := s.runner.Teardown(ctx, s.want)
	if err == nil {
		workers, err = s.clearHost(ctx)
	}

	if err == nil {
		m.Hosts.Release(s.route)
	}

	done := s.ended(recorded, result, err)
	done.workers = workers

	return done
}

// LookLimit bounds a look at the store that nothing waits for.
const LookLimit = 20 * time.Second
