package machines

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/healthcheck/probe"
	"github.com/talosop/terraform-provider-talosop/internal/hook/execute"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/lock"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/progress"
	"github.com/talosop/terraform-provider-talosop/internal/provider/ledger"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/restore"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/record"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// left is what an unfinished run leaves to the next apply.
type left struct {
	operations types.List
	impact     types.Object
}

// openSession prepares an operation on a set that is fully known. render reports whether configurations are needed.
// It does no I/O.
func openSession(
	ctx context.Context, m *providerdata.ProviderData, access pki.Access, p machineset.Set,
	recorded machineset.PriorState, render bool,
) (*session, error) {
	bundle, err := p.Bundle()
	if err != nil {
		return nil, err
	}

	p = p.WithRecorded(recorded.Record).WithNames(recorded.Record)
	bundle = bundle.KnowingFormer(recorded.Carried()...)

	var files machineset.Rendered
	if render {
		if files, err = p.Render(bundle); err != nil {
			return nil, err
		}
	}

	want := p.Spec(recorded, files)

	asking := m.WithConfigurations(files).LookingFor(want).FindingLinks(p.Unlinked())

	c, err := asking.ClientsOf(ctx, access, p, recorded, bundle,
		api.Options{
			StaticPods: !m.Talos.TrustNodeNames || p.OwnsControlPlane(), Poll: m.Interval, Name: runName(p),
			Progress: func(message string) { tf.LogInfo(ctx, message) },
		})
	if err != nil {
		return nil, err
	}

	s := &session{want: want, Set: p, mark: bundle.Mark(), recordKeys: bundle.RecordKeys(),
		follow:      m.Follow(ctx, p.Settings.Name, p.Object, runName(p)),
		replacement: m.Ledger().Replacement(p.Identity(bundle), runName(p), p.Addresses()), Close: c.Close}
	s.runner = s.newRunner(m, bundle, files.Configs, m.FleetFor(c), c.API)
	s.platform = platformOf(s, c.Route)

	return s, nil
}

// newRunner makes the runner of the session, without I/O.
func (s *session) newRunner(
	m *providerdata.ProviderData, bundle *pki.Bundle, configs map[string][]byte, fleet lifecycle.Fleet,
	api *kubernetes.Client,
) *lifecycle.Runner {
	p, shared := s.Set, m.Ledger()

	runner := &lifecycle.Runner{
		Fleet: fleet, Kubernetes: api, Configs: configs, Images: machineconfig.WithImages,
		Keys: func(config, active []byte, keys rotation.Keys) ([]byte, error) {
			return machineconfig.WithKeys(config, active, keys, bundle.Keyring())
		},
		Policy: p.Policy(m.Policy), Interval: m.Interval,
		Claimed:  shared.ClaimedByOthers(p),
		HasLeft:  shared.HasLeft(p.Secrets),
		Founding: shared.Founding(p.Identity(bundle)), Rejoining: s.replacement.Others,
		Peers: shared.Peers(p.Identity(bundle)), Observed: s.follow.Observed,
	}

	runner.Events = func(e lifecycle.Event) {
		if p.Replaced {
			s.replacement.Begun(e)
		}

		s.follow.Tell(e)
	}

	putChanges(runner, m, p, api, lockOf(p, bundle, api))

	return runner
}

// putChanges puts the lock and the settings for changes of running machines into a runner.
func putChanges(
	runner *lifecycle.Runner, m *providerdata.ProviderData, p machineset.Set, api execute.Cluster, lease *lock.Lock,
) {
	runner.Lock = lease

	if !p.Changes.Window.IsZero() {
		runner.Window = p.Changes.WindowAt
	}

	if p.Changes.Snapshots != "" {
		runner.Snapshots = backup.Folder{Path: p.Changes.Snapshots, Cluster: p.Settings.Name}
	}

	if len(p.Changes.HealthChecks) > 0 {
		runner.Checks = &probe.Prober{Checks: p.Changes.HealthChecks, Cluster: api, Interval: m.Interval}
	}

	if len(p.Changes.Hooks)+len(p.StartedHooks) > 0 {
		runner.Hooks = &execute.Executor{Hooks: p.Changes.Hooks, Cluster: api, Lease: lease, Owner: p.Owner,
			Interval: m.Interval}
	}
}

// observe asks every machine once. It only reports, so it identifies a machine by its certificate. The snapshot
// excludes machines that answer with another identity. Configurations are examined only on request.
func observe(
	ctx context.Context, m *providerdata.ProviderData, p machineset.Set, recorded machineset.PriorState,
	examined *examination,
) (cluster.Spec, cluster.Snapshot, error) {
	reading := *m
	reading.Talos.TrustNodeNames = true
	reading.Talos.Restores = p.TakesCluster()

	if examined != nil {
		reading.Talos.RebootFor = examined.Look
		hardware := p.Platform().Hardware
		reading.Talos.SecureBoot, reading.Talos.Links = hardware, hardware
	}

	s, err := openSession(ctx, &reading, pki.Observing, p, recorded, false)
	if err != nil {
		return cluster.Spec{}, cluster.Snapshot{}, err
	}

	defer s.Close()

	if examined != nil {
		examined.Expect(s.want.Machines, recorded.Record)
	}

	begun := time.Now()
	have := s.runner.Refresh(ctx, s.want).WithoutMismatches(s.want)

	if examined != nil {
		examined.ExpectImages(s.want.Machines, have, recorded.Record)

		m.Ledger().KeepCached(s.mark, s.want.Machines, have)

		if examined.onHost, err = s.platform.report(ctx, recorded, begun); err != nil {
			return cluster.Spec{}, cluster.Snapshot{}, err
		}

		if orphans := examined.onHost.orphans; len(orphans) > 0 {
			return observe(ctx, m, p, recorded.WithRemoved(orphans...), examined)
		}
	}

	return s.want, have, nil
}

// converge makes the machines match the set.
func converge(ctx context.Context, m *providerdata.ProviderData, p writtenSet, recorded machineset.PriorState) run {
	s, recorded, err := openToConverge(ctx, m, p.Set, recorded)
	if err != nil {
		return run{err: err}
	}

	s.restore(ctx, &restore.Restoration{Set: s.Set, Snapshot: p.snapshot, Mark: s.mark, RecordKeys: s.recordKeys,
		Fallback: m.Stores})

	defer s.Close()

	// The other control planes are only asked before a bootstrap of etcd.
	if s.want.OwnsBootstrap() {
		s.want.OtherControlPlanes = p.AskedBeforeEtcd(recorded)
	}

	if s.want.OtherControlPlanes == nil && s.want.RestoreFrom == "" && recorded.Machines == nil {
		s.want.OtherControlPlanes = s.replacement.Beside()
	}

	s.want = s.Set.WithUnmanaged(s.want, recorded.Record)

	if err := m.Ledger().ClaimPools(s.platform.spec(), recorded.Machines == nil); err != nil {
		return run{err: err}
	}

	m.Ledger().Claim(s.Set, s.want.Machines)

	if err := s.findLinks(ctx); err != nil {
		return run{err: err}
	}

	switch made, err := s.platform.ensure(ctx, recorded); {
	case err != nil && made: // the next run continues from there
		return s.ended(ctx, recorded, lifecycle.Result{Touched: true}, err)
	case err != nil:
		if recorded.Machines == nil {
			m.Ledger().UnclaimPools(s.platform.spec())
		}

		return run{err: err}
	}

	s.replacement.Joins()

	result, err := s.runner.Converge(ctx, s.want)

	s.replacement.Joined(err)

	return s.ended(ctx, recorded, result, err)
}

// openToConverge is open for machines that are to match the set. A create has not announced any removals.
func openToConverge(
	ctx context.Context, m *providerdata.ProviderData, p machineset.Set, recorded machineset.PriorState,
) (*session, machineset.PriorState, error) {
	if recorded.Machines != nil {
		return openAll(ctx, m, p, recorded, machineset.PriorState.WithRemoved, true)
	}

	s, err := openSession(ctx, m, pki.Changing, p, recorded, true)

	return s, recorded, err
}

// teardown resets the machines of the set.
func teardown(ctx context.Context, m *providerdata.ProviderData, p machineset.Set, record machineset.Record) run {
	if p.Single {
		return takeOut(ctx, m, p, record)
	}

	s, recorded, err := openAll(ctx, m, p.Unpinned(), machineset.PriorStateOfDestroy(record, p),
		machineset.PriorState.WithLeft, false)
	if err != nil {
		return run{err: err}
	}

	defer s.Close()

	s.want.Machines = append(s.want.Machines, recorded.Left...)
	s.want.OtherControlPlanes = p.Others

	s.replacement.Leaves(p.Others)

	// The whole cluster is removed with the control plane, including its Node objects.
	s.runner.Policy.KeepNodes = p.TakesCluster()

	if err := s.platform.answers(ctx, record); err != nil {
		return run{err: err}
	}

	var workers *workload.WorkersLeftError

	result, err := s.runner.Teardown(ctx, s.want)

	s.replacement.Removed(err)

	if err == nil && len(result.Relinquished) == 0 {
		workers, err = s.platform.clear(ctx)
	}

	if err == nil {
		m.Ledger().UnclaimPools(s.platform.spec())
		m.Ledger().Release(p.Owner)
	}

	done := s.ended(ctx, recorded, result, err)
	done.workers = workers

	return done
}

// session is one operation on the machines of a set.
type session struct {
	runner *lifecycle.Runner
	want   cluster.Spec
	Set    machineset.Set
	// mark is that of the secrets.
	mark string
	// recordKeys authenticate the records of its snapshots.
	recordKeys [][]byte
	platform   platform
	// follow gets the events of the run.
	follow *progress.Follow
	// replacement is what the runs of the process share about their replacements.
	replacement ledger.Replacement
	Close       func()
}

// examination compares machines with their record in state.
type examination struct {
	*machineset.Examination

	// onHost is what the host cluster of containers has; zero when it did not report.
	onHost hostReport
}

func newExamination(p machineset.Set, recorded machineset.Record) *examination {
	return &examination{Examination: machineset.NewExamination(p, recorded)}
}

// run is how an operation on machines ended. Its snapshot excludes machines that answer with another identity.
type run struct {
	// began is true once a session could observe and act.
	began  bool
	want   cluster.Spec
	result lifecycle.Result
	err    error
	// Renamed, Replaced and Seen are those of the record at the start of the run; Seen has the names of machines
	// during the run.
	Renamed, Replaced map[string]string
	Seen              record.Machines
	// Pods are the inputs of pods that are as wanted.
	Pods map[string]string
	// Peers are the etcd addresses of control planes in containers, from their configurations.
	Peers map[string]string
	// Links are those with the addresses of control planes on metal.
	Links map[string]string
	// workers are those that a host cluster still has after the end of their cluster; nil for none.
	workers *workload.WorkersLeftError
	// host is the host cluster of containers, as far as it can be known, and gone the recorded machines that it had
	// nothing of.
	host workload.Identity
	gone []string
	// anonymous is true when it restored a snapshot of an unknown cluster.
	anonymous bool
	// ranOut is the timeout that ended it, if one did.
	ranOut *tf.RanOutError
	// remains is what a failed update still has to do.
	remains *left
}

func (s *session) ended(
	ctx context.Context, recorded machineset.PriorState, result lifecycle.Result, err error,
) run {
	result.Snapshot = result.Snapshot.WithoutMismatches(s.want)

	s.follow.End(ctx, err)

	done := run{
		began: true, want: s.want, result: result, err: err, Renamed: recorded.Renamed, Replaced: recorded.Replaced,
		Seen:      recorded.Seen,
		anonymous: s.anonymous(), ranOut: tf.RanOut(ctx),
		Peers: s.Set.Peers(), Links: s.Set.Links(),
	}
	s.platform.end(&done)

	return done
}

// openAll is open for all machines that the host has of a pool: with adds the orphaned ones to the state. It asks
// the host cluster; on metal it asks nothing.
func openAll(
	ctx context.Context, m *providerdata.ProviderData, p machineset.Set, recorded machineset.PriorState,
	with func(machineset.PriorState, ...cluster.Machine) machineset.PriorState, render bool,
) (*session, machineset.PriorState, error) {
	s, err := openSession(ctx, m, pki.Changing, p, recorded, render)
	if err != nil {
		return nil, recorded, err
	}

	orphans := s.platform.orphans(ctx, recorded)
	if len(orphans) == 0 {
		return s, recorded, nil
	}

	s.Close()

	recorded = with(recorded, orphans...)
	s, err = openSession(ctx, m, pki.Changing, p, recorded, render)

	return s, recorded, err
}
