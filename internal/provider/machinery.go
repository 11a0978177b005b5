package provider

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// credentialsTTL is how long the credentials of one operation live. They are made
// for it and never leave the process.
const credentialsTTL = 24 * time.Hour

// The client that talosop is to the clusters it works on.
const (
	adminRole  = "os:admin"
	adminGroup = "system:masters"
	clientName = "talosop"
)

// machinery assembles what an operation on machines needs. It is the one place
// where the provider meets the adapters.
type machinery struct {
	policy   cluster.Policy
	interval time.Duration
	talos    talos.Options
	// stores are the provider's credentials for buckets.
	stores storeCredentials
	// host is the provider's connection to host clusters.
	host hostConnection
	// hosts are the connections to host clusters that operations share, and tunnels what leads
	// through them while ephemeral resources are open.
	hosts   *hosts
	tunnels *tunnels
	// patience is how long a Kubernetes API may take to answer before snapshots are taken
	// without it: a backup matters most when it does not.
	patience time.Duration
	// glance is how long a plan may look at a store.
	glance time.Duration
	// addons is what the addons of a process share.
	addons *addons
	// removals asks a cluster at plan time what an upgrade of Kubernetes removes; nil asks
	// nobody.
	removals func(ctx context.Context, m *machinery, p pool, u upgradeOf) (impediments, error)
}

func newMachinery() *machinery {
	return &machinery{
		policy:   cluster.DefaultPolicy(),
		talos:    talos.Options{Digest: machineconfig.Digest, Images: imagesIn},
		removals: askForRemovals,
		patience: 10 * time.Second,
		glance:   lookLimit,
		addons:   newAddons(),
		hosts:    newHosts(),
		tunnels:  &tunnels{},
	}
}

// fleet makes the adapter of one package fit the port of another.
type fleet struct{ *talos.Fleet }

func (f fleet) Machine(m cluster.Machine) lifecycle.Machine { return f.Fleet.Machine(m) }

// session is one operation on the machines of a pool.
type session struct {
	runner *lifecycle.Runner
	want   cluster.Spec
	pool   pool
	route  route
	// looked is whether the host cluster of containers was observed already, seen what it showed, and silent why it did not
	// answer; see firstLook.
	looked bool
	seen   workload.Observation
	silent error
	// furnished is whether the host cluster has anything of a container.
	furnished bool
	close     func()
}

// open prepares an operation on a pool that is fully known. render says whether
// configurations are needed. It does no I/O.
func (m *machinery) open(ctx context.Context, p pool, recorded recordedPool, render bool) (*session, error) {
	bundle, err := pki.Parse([]byte(p.secrets))
	if err != nil {
		return nil, err
	}

	p = p.withPeers(recorded)

	var files rendered
	if render {
		if files, err = p.render(bundle); err != nil {
			return nil, err
		}
	}

	want := p.spec(recorded, files)

	c, err := m.withConfigurations(files).lookingFor(want).clientsOf(ctx, p, recorded, bundle, kubernetes.Options{
		StaticPods: !m.talos.TrustNodeNames || p.ownsControlPlane(),
		Progress:   func(message string) { tflog.Info(ctx, message) },
	})
	if err != nil {
		return nil, err
	}

	runner := &lifecycle.Runner{
		Fleet: m.fleetFor(c), Kubernetes: c.api, Configs: files.configs, Images: withImages, Policy: p.policy(m.policy), Interval: m.interval,
		Lock:     lockOf(p, bundle, c.api),
		Progress: func(message string, fields map[string]any) { tflog.Info(ctx, message, fields) },
	}

	if p.changes.snapshots != "" {
		runner.Snapshots = backup.Folder{Path: p.changes.snapshots, Cluster: p.settings.Name}
	}

	s := &session{runner: runner, want: want, pool: p, route: c.route, close: c.close}
	s.restore(ctx, &restoring{pool: p, mark: bundle.Mark(), fallback: m.stores})

	return s, nil
}

// withConfigurations is machinery that knows what machines have to reboot for to get the
// configurations that were rendered.
func (m *machinery) withConfigurations(files rendered) *machinery {
	if files.configs == nil {
		return m
	}

	informed := *m
	informed.talos.RebootFor = func(machine string, active []byte) ([]string, error) {
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

// lookingFor is machinery that sees restores where one is wanted.
func (m *machinery) lookingFor(want cluster.Spec) *machinery {
	if want.RestoreFrom == "" {
		return m
	}

	looking := *m
	looking.talos.Restores = true

	return &looking
}

// unpinned is a pool whose machines are not told by their fingerprints in maintenance mode:
// a machine that was reset has a new one, nothing is sent to it there any more, and it
// must not look like somebody else's.
func (p pool) unpinned() pool {
	machines := map[string]poolMachine{}

	for name, machine := range p.machines {
		machine.fingerprint = ""
		machines[name] = machine
	}

	p.machines = machines

	return p
}

func (m *machinery) fleetOf(p pool, bundle *pki.Bundle) (*talos.Fleet, error) {
	credentials, err := bundle.TalosClient([]string{adminRole}, credentialsTTL)
	if err != nil {
		return nil, err
	}

	options := m.talos
	options.Credentials = talos.Credentials{CA: credentials.CA, Cert: credentials.Certificate, Key: credentials.Key}
	options.Fingerprints = map[string][]string{}

	for name, machine := range p.machines {
		if machine.fingerprint != "" {
			options.Fingerprints[name] = []string{machine.fingerprint}
		}
	}

	return talos.NewFleet(options)
}

// kubernetesOf completes the options of a client with what the pool says.
func kubernetesOf(p pool, bundle *pki.Bundle, options kubernetes.Options) (*kubernetes.Client, error) {
	credentials, err := bundle.KubernetesClient(clientName, []string{adminGroup}, credentialsTTL)
	if err != nil {
		return nil, err
	}

	options.Endpoint, options.Fallbacks = p.settings.Endpoint, p.endpoints
	options.CA, options.Cert, options.Key = credentials.CA, credentials.Certificate, credentials.Key

	return kubernetes.New(options)
}

// observe asks every machine once. It only reports, so a machine is taken for what its
// certificate says it is. The snapshot is without strangers. Configurations are examined
// unless nobody wants to know.
func (m *machinery) observe(ctx context.Context, p pool, recorded recordedPool, exam *examination) (cluster.Spec, cluster.Snapshot, error) {
	reading := *m
	reading.talos.TrustNodeNames = true
	reading.talos.Restores = p.takesCluster()

	if exam != nil {
		reading.talos.RebootFor = exam.look
	}

	s, err := reading.open(ctx, p, recorded, false)
	if err != nil {
		return cluster.Spec{}, cluster.Snapshot{}, err
	}

	defer s.close()

	if exam != nil {
		exam.expect(s.want.Machines, recorded)
	}

	begun := time.Now()
	have := s.runner.Observe(ctx, s.want).WithoutMismatches(s.want)

	if exam != nil {
		exam.expectImages(s.want.Machines, have, recorded)
		exam.onHost = s.hostReport(ctx, begun)

		if strays := exam.onHost.newStrays(p, recorded); len(strays) > 0 {
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
	// peers are the addresses at which the etcd of control planes in containers is found, by their configurations.
	peers map[string]string
	// workers are those that a host cluster still has when their cluster is gone; nil for none.
	workers *workload.WorkersLeftError
	// anonymous is true when it restored a snapshot that may be of any cluster.
	anonymous bool
	// remains is what an update that failed would still have to do.
	remains types.List
}

func (s *session) ended(recorded recordedPool, result lifecycle.Result, err error) run {
	result.Snapshot = result.Snapshot.WithoutMismatches(s.want)
	result.Touched = result.Touched || s.furnished

	return run{
		want: s.want, result: result, err: err, renamed: recorded.renamed, replaced: recorded.replaced, anonymous: s.anonymous(),
		pods: s.podsOf(result.Snapshot), peers: s.pool.peers(),
	}
}

// converge makes the machines what the pool says.
func (m *machinery) converge(ctx context.Context, p pool, recorded recordedPool) run {
	// A create has told nobody of machines that it would remove.
	open := func() (*session, error) { return m.open(ctx, p, recorded, true) }
	if recorded.machines != nil {
		open = func() (*session, error) { return m.openAll(ctx, p, &recorded, &recorded.removed, true) }
	}

	s, err := open()
	if err != nil {
		return run{err: err}
	}

	defer s.close()

	// What other control planes hold is asked before etcd begins, and not at any other time.
	if p.single != nil && s.want.Founds() {
		s.want.Beside = p.single.beside
	}

	if taken := m.hosts.claim(s.route, recorded.machines == nil); taken != "" {
		return run{err: &poolTakenError{taken}}
	}

	if made, err := s.furnish(ctx, recorded); err != nil {
		if !made && recorded.machines == nil {
			m.hosts.release(s.route)
		}

		return s.unfurnished(recorded, made, err)
	}

	result, err := s.runner.Converge(ctx, s.want)

	return s.ended(recorded, result, err)
}

// teardown resets the machines of the pool.
func (m *machinery) teardown(ctx context.Context, p pool, recorded recordedPool) run {
	if p.single != nil {
		return m.takeOut(ctx, p, recorded)
	}

	recorded.left = recorded.leftovers(p)

	s, err := m.openAll(ctx, p.unpinned(), &recorded, &recorded.left, false)
	if err != nil {
		return run{err: err}
	}

	defer s.close()

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
		m.hosts.release(s.route)
	}

	done := s.ended(recorded, result, err)
	done.workers = workers

	return done
}
