package machineset

import (
	"errors"
	"slices"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// Forecast is what a plan reports about machines. It depends only on configuration and state, because the second
// planning pass, at apply time, must have the same result.
type Forecast struct {
	// Operations are what an apply does, line by line; nil when unknown.
	Operations []string
	// Impact is the effect on machines in service.
	Impact Impact
	// Machines are the changes of their records, by machine; nil when unknown.
	Machines map[string]MachineForecast
	// Idle is true when there is nothing to do and nothing to wait for.
	Idle bool
	// Resumes is true when the last run did not finish, so that the phase may change.
	Resumes bool
	// LeavesKubernetes is true when no step is about Kubernetes, so that its bootstrap manifests stay.
	LeavesKubernetes bool
	// UpgradesUnmanaged is true when machines without a resource are, or may be, upgraded.
	UpgradesUnmanaged bool
	// Makes is true when machines in containers may have to be created. Leaves is true when machines, or only their
	// names, leave.
	Makes, Leaves bool
	// Upgrade is the Kubernetes upgrade.
	Upgrade UpgradeOf
	// Schematics are the upgrades to schematics with unknown content.
	Schematics []SchematicChange
}

// ForecastCreate forecasts a create: every machine is expected to wait in maintenance mode. It needs only the list of
// machines, so the plan names the operations even before the secrets are generated.
func (p Set) ForecastCreate(policy cluster.Policy) (Forecast, finding.List) {
	files := p.filesOfCreate()
	f := Forecast{Makes: true, Resumes: true}

	var diags finding.List

	if !p.Unknown.Has(UnknownMachines) && !p.Unknown.Has(UnknownSnapshot) {
		want := p.Spec(PriorState{}, Rendered{})
		want.OtherControlPlanes = p.OtherControlPlanes()
		steps, _ := cluster.Forecast(want, cluster.Assume(want, nil), p.Policy(policy))
		f.Operations = p.operationsOf(generally(p.hostCreation()), steps, nil, nil)
		diags = p.warnOfWaiting(steps)
	}

	return f, slices.Concat(diags, p.refuseAhead(PriorState{}, files), p.refuseForeignSnapshot())
}

// ForecastUpdate forecasts an update, and refuses what cannot be done. prior is the set of the state, and stored its
// recorded machines.
func (p Set) ForecastUpdate(prior Set, stored Record, policy cluster.Policy) (Forecast, finding.List) {
	p, prior = p.WithRecorded(stored), prior.WithRecorded(stored)
	p.FormerSecrets = prior.Secrets
	f := Forecast{Resumes: stored.Phase != cluster.Ready, Makes: p.makes(stored),
		UpgradesUnmanaged: p.Unmanaged != nil || p.Unknown.Has(UnknownConfiguration)}

	recorded, conflicts := NewPriorState(stored, p, prior)
	p, prior = p.WithNames(recorded.Record), prior.WithNames(stored)

	f.Leaves = len(recorded.Removed)+len(recorded.Renamed) > 0 || len(conflicts) > 0

	var diags finding.List

	if !p.Unknown.Has(UnknownConfiguration) {
		diags.Append(conflicts...) // hardware that is not known yet may resolve them
		diags.Append(refuseTakenPlaces(p, prior, stored, recorded)...)
	}

	diags.Append(refuseChanges(p, prior, recorded)...)

	if !p.Unknown.Renders() {
		return f, diags
	}

	files, more := p.RenderForPlan()
	diags.Append(more...)
	diags.Append(refuseKubernetesVersion(p, recorded, files)...)
	diags.Append(refuseSettingsTooNew(p, recorded, files)...)
	diags.Append(p.refuseAhead(recorded, files)...)
	diags.Append(p.refuseUnreadableSecrets(recorded.Record, files)...)

	before := prior.renderOnce()
	diags.Append(refuseEtcdImage(p, before, recorded, files)...)

	if diags.HasError() {
		return f, diags
	}

	path, known := p.kubernetesPath(recorded, files)
	if known {
		f.Upgrade = UpgradeOf{Path: path, Machines: p.Members(recorded)}
	}

	recorded, more = recorded.withChanges(p, prior, before, files)
	diags.Append(more...)

	if diags.HasError() {
		return f, diags
	}

	steps, last := recorded.forecast(p, files, policy)

	diags.Append(obstructions(p, prior, stored, last, policy)...)
	diags.Append(recorded.warnOfUpdate(p, steps, last)...)

	if known {
		diags.Append(p.warnOfKubernetes(path, recorded, steps)...)
	}

	return f.with(p, prior, recorded, files, steps, last), diags
}

// warnOfUpdate warns about the steps of an update, and reminds of settings that stay in effect.
func (r PriorState) warnOfUpdate(p Set, steps []step.Step, last cluster.Decision) finding.List {
	return slices.Concat(r.remindOfRestore(p, last), warnOfSteps(p, steps), r.warnOfLostExtensions(p, steps),
		warnOfLeft(r.leavingToOthers()), p.remindOfRejoin(r), p.warnOfWaiting(steps))
}

// with is a forecast completed with what follows from the steps.
func (f Forecast) with(
	p, prior Set, recorded PriorState, files Rendered, steps []step.Step, last cluster.Decision,
) Forecast {
	f.Schematics = recorded.schematicChanges(p, steps)

	if p.Settings.KubernetesVersion != prior.Settings.KubernetesVersion && recorded.unseenImages(p) {
		return f // the run decides what the machines need for it
	}

	f.Machines = recorded.forecastMachines(p, files, steps)
	waits, host := recorded.waitsFor(p, steps), p.hostChanges(prior, recorded)

	if len(last.Refusals) > 0 && len(steps) == 0 {
		// Objects on the host cluster are repaired first.
		f.Operations = append([]string{refusedLine}, p.operationsOf(host, nil, nil, nil)...)
	} else {
		before := slices.Concat(recorded.bookkeeping(p), host, generally(waits), generally(p.unfinishedHooks()))
		f.Operations = append(p.operationsOf(before, steps, recorded.changes, recorded.Removed),
			keptLines(last.Kept, recorded.changes)...)
		f.Impact = ImpactOf(steps, recorded.Removed)
	}

	f.LeavesKubernetes = !step.TotalOf(steps).UpgradesKubernetes
	f.UpgradesUnmanaged = p.Unmanaged != nil && slices.ContainsFunc(steps, cluster.OfUnmanaged)
	f.Resumes = f.Resumes || len(waits) > 0
	f.Idle = len(f.Operations) == 0 && last.Done() && !f.Resumes && !recorded.Changed() &&
		!p.Restores(recorded.RestoredFrom) && !p.turnsKeysOver(prior) && !f.UpgradesUnmanaged

	if len(f.Operations) == 0 && !f.Idle {
		f.Operations = []string{lookAgain}
	}

	return f
}

// turnsKeysOver reports whether the keys of a cluster differ from state. What is possible depends on what other
// resources do with their machines meanwhile. Only the apply knows that, and it needs both sets of keys.
func (p Set) turnsKeysOver(prior Set) bool {
	planned, err := pki.Parse([]byte(p.Secrets))
	if err != nil || prior.Secrets == "" {
		return false
	}

	former, err := pki.Parse([]byte(prior.Secrets))

	return err != nil || planned.Digest() != former.Digest()
}

// unseenImages reports whether the Kubernetes images of a member were never observed.
func (r PriorState) unseenImages(p Set) bool {
	return slices.ContainsFunc(p.Members(r), func(m cluster.Machine) bool { return r.Machines[m.Name].Images == nil })
}

// Members lists the machines of a set that are known to run as members.
func (p Set) Members(recorded PriorState) []cluster.Machine {
	return slices.DeleteFunc(p.Spec(recorded, Rendered{}).Machines, func(m cluster.Machine) bool {
		return recorded.Machines[m.Name].Access != step.Member
	})
}

// forecast is what an apply would do to the machines of a set, and what it would then leave or wait for. files are
// the wanted configurations.
func (r PriorState) forecast(p Set, files Rendered, policy cluster.Policy) ([]step.Step, cluster.Decision) {
	want := p.Spec(r, files)
	want.OtherControlPlanes, want.OtherHolders = p.OtherControlPlanes(), p.Holders

	if p.TakesCluster() && want.RestoreFrom == "" {
		want.OtherControlPlanes = p.AskedBeforeEtcd(r)
	}

	want = p.WithUnmanaged(want, r.Record)

	for _, m := range r.Seen {
		if m.Drift.Has(record.OthersWork) && want.OtherControlPlanes == nil {
			want.OtherControlPlanes = unlisted(2)
		}
	}

	return cluster.Forecast(want, r.Assume(want), p.Policy(policy))
}

// withChanges is the state with the reasons why machines must reboot or be replaced when p replaces prior.
func (r PriorState) withChanges(p, prior Set, before renderedOnce, files Rendered) (PriorState, finding.List) {
	r, diags := r.withReboots(p, prior, before, files)
	r, more := r.withReplacements(p, prior)

	return r, append(diags, more...)
}

// RenderForPlan renders the configurations that a plan compares with the running ones.
func (p Set) RenderForPlan() (Rendered, finding.List) {
	bundle, err := p.Bundle()
	if err != nil {
		return Rendered{}, finding.List{finding.InvalidSecrets(p.secretsPath(), err)}
	}

	files, err := p.Render(bundle)

	return files, FieldDiagnostics(p, err)
}

func (p Set) renderOnce() renderedOnce {
	return sync.OnceValues(func() (Rendered, bool) {
		if !p.Unknown.Renders() {
			return Rendered{}, false
		}

		files, diags := p.RenderForPlan()

		return files, !diags.HasError()
	})
}

// MayHaveManifests reports whether there are, or may be, control planes, which have bootstrap manifests.
func (p Set) MayHaveManifests() bool { return p.OwnsControlPlane() || p.Unknown.Has(UnknownAddresses) }

// refuseChanges names every change that cannot be made, or not in one apply.
func refuseChanges(p, prior Set, recorded PriorState) finding.List {
	var diags finding.List

	diags.Append(refuseTalosVersion(p, recorded)...)
	diags.Append(refuseContract(p, prior, recorded)...)
	diags.Append(refuseIsolation(p, prior, recorded)...)
	diags.Append(refuseLostQuorum(p, prior, recorded)...)
	diags.Append(p.RefuseNewSecrets(prior, recorded.Record)...)
	diags.Append(refuseHostChanges(p, prior, recorded)...)
	diags.Append(p.refuseUnknownLinks(recorded)...)

	if p.Restore.Asked(recorded.RestoredFrom) != "" {
		diags.Append(p.refuseForeignSnapshot()...)
	}

	return diags
}

// FieldDiagnostics shows the errors of a rendering at their attributes. An error that machines share is shown once.
func FieldDiagnostics(p Set, err error) finding.List {
	type mistake struct{ at, found, converted string }

	var (
		diags    finding.List
		machines finding.Alike[mistake]
	)

	problems := map[mistake]*finding.FieldError{}

	for _, e := range finding.Flatten(err) {
		var problem *finding.FieldError
		if errors.As(e, &problem) {
			of := mistake{problem.At.String(), problem.Field.Found, problem.Field.Converted}
			if problems[of] == nil {
				problems[of] = problem
			}

			machines.Add(of, problem.Machine)

			continue
		}

		diags.Append(configurationFailed.With(finding.Args{"object": p.Object, "problem": e.Error()}))
	}

	for of, names := range machines.All() {
		diags.Append(finding.InvalidField(problems[of], finding.NonEmpty(names...)))
	}

	return diags
}
