package machines

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// Model is what the shared operations of all resources with machines need from the model M of one of them.
type Model[M any] interface {
	*M

	// common is the part that all these models share, and setCommon stores it.
	common() CommonModel
	setCommon(common CommonModel)
	// MachineSet reads the model as machines of one cluster.
	MachineSet(ctx context.Context) (writtenSet, diag.Diagnostics)
	// align fills in the defaults of given, the configuration, and what is decided once: from state, or a choice now
	// if there is none. The receiver gets names in state that changed without a change of identity.
	align(given M, state *M)
	// derive fills in the computed attributes that follow from the others: the ID, and the handle of the cluster.
	derive(ctx context.Context) diag.Diagnostics
	// seenMeta replaces META values in state by those that the members hold.
	seenMeta(ctx context.Context, want cluster.Spec, have cluster.Snapshot) diag.Diagnostics
	// settleUpdate puts the outcome of an update into the stored model: that of plan after a success, otherwise that
	// of state.
	settleUpdate(ctx context.Context, done run, plan, state M) diag.Diagnostics
	// setPatches puts the patches of an import into the model.
	setPatches(ctx context.Context, patches clusterimport.Patches) diag.Diagnostics
}

// machinesResource is the operations of a resource with machines whose model is M. What differs between the
// resources is in their models, schemas and imports.
type machinesResource[M any, P Model[M]] struct {
	providerdata.ConfiguredResource

	// kind is the name of the type, and imports the kind of its imports.
	kind    string
	imports clusterimport.Kind
}

func (r *machinesResource[M, P]) Metadata(
	_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse,
) {
	resp.TypeName = r.kind
	resp.ResourceBehavior.MutableIdentity = true // addresses change in place
}

func (r *machinesResource[M, P]) ValidateConfig(
	ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse,
) {
	if tf.HasBlanks(ctx, req.Config) {
		return // tf.BlankTexts reports it
	}

	var config M

	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)

	if resp.Diagnostics.HasError() {
		return
	}

	given := config
	P(&config).align(config, nil)

	p, diags := P(&config).MachineSet(ctx)
	found := p.validate()

	// The contract may be in the state, which is not available here, of a cluster that was created with an older
	// Talos.
	if open, ok := any(P(&given)).(contractKeeper); ok && found.HasError() && open.leavesContract() {
		open.assumeContract(lastWithoutDocuments)
		P(&given).align(given, nil)

		q, others := P(&given).MachineSet(ctx)
		if older := q.validate(); len(older.Errors()) < len(found.Errors()) {
			diags, found = others, older
		}
	}

	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(tf.Diagnostics(found)...)
}

// contractKeeper is a model of a resource that creates a cluster. Its configuration may leave the contract to
// talosop.
type contractKeeper interface {
	leavesContract() bool
	assumeContract(contract string)
}

// refuseUnderContract reports mistakes under a contract that the configuration leaves open, which its validation
// could not check.
func (r *machinesResource[M, P]) refuseUnderContract(config M, p writtenSet) finding.List {
	open, ok := any(P(&config)).(contractKeeper)
	if !ok || !open.leavesContract() || p.Settings.Contract <= lastWithoutDocuments {
		return nil
	}

	return p.validate().Errors()
}

func (r *machinesResource[M, P]) ModifyPlan(
	ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) {
	var config, plan, state M

	if req.Plan.Raw.IsNull() {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

		if !resp.Diagnostics.HasError() {
			resp.Diagnostics.Append(r.planDestroy(ctx, &state, req.Private, resp.Private)...)
			resp.Diagnostics.Append(tf.PlannedDestroy(ctx, resp.Private)...)
		}

		return
	}

	if tf.OnlyRespelled(req) {
		req.Plan.Raw, resp.Plan.Raw = req.State.Raw, req.State.Raw
	}

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)

	if resp.Diagnostics.HasError() {
		return
	}

	change := editOf(P(&plan).common(), req.Config)

	if req.State.Raw.IsNull() {
		resp.Diagnostics.Append(r.planCreate(ctx, &plan, config, req)...)
	} else {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		resp.Diagnostics.Append(r.planUpdate(ctx, &plan, state, config, change, req, resp)...)
		resp.Diagnostics.Append(tf.ForgetLeft(ctx, resp.Private)...)
		r.Ledger().RememberRemoval(P(&state).common().OwnerID, r.removal(ctx, state, req.Private))
		resp.Diagnostics.Append(tf.StoreOwner(ctx, resp.Private, P(&state).common().OwnerID)...)
	}

	resp.Diagnostics.Append(tf.Diagnostics(refuseLocked(ctx, P(&plan).MachineSet, P(&state).common(), req.Config))...)
	resp.Diagnostics.Append(P(&plan).derive(ctx)...)

	if req.State.Raw.IsNull() {
		resp.Diagnostics.Append(r.planReplaced(ctx, &plan, req.Private, resp.Private)...)
	}

	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	}
}

// set reads a planned model as machines of one cluster that belong to this resource.
func (r *machinesResource[M, P]) set(ctx context.Context, model *M) (writtenSet, diag.Diagnostics) {
	p, diags := P(model).MachineSet(ctx)
	P(model).common().own(&p)
	p.Gateway = r.Gateway
	diags.Append(p.addProvided(ctx, r.ProviderData, providerdata.RecordedSecrets{})...)
	diags.Append(tf.Diagnostics(machineset.FieldDiagnostics(p.Set, p.CheckProvidedMeta()))...)
	p.Set = p.WithFacts()

	return p, diags
}

// recordedSet reads the model of a state as machines of one cluster that belong to this resource.
func (r *machinesResource[M, P]) recordedSet(
	ctx context.Context, model *M, secrets record.Secrets,
) (writtenSet, diag.Diagnostics) {
	p, diags := P(model).MachineSet(ctx)
	P(model).common().own(&p)
	diags.Append(p.recallSecrets(ctx, r.ProviderData, secrets)...)
	p.Set = p.WithFacts()

	return p, diags
}

// recalledSet is recordedSet with the surroundings in private state.
func (r *machinesResource[M, P]) recalledSet(
	ctx context.Context, model *M, private tf.PrivateState,
) (writtenSet, record.Surroundings, diag.Diagnostics) {
	remembered, diags := readSurroundings(ctx, private)
	p, more := r.recordedSet(ctx, model, remembered.Secrets)
	p.recall(remembered)

	return p, remembered, append(diags, more...)
}

// setsOfUpdate reads a planned model, with the surroundings in private state, and that of the state.
func (r *machinesResource[M, P]) setsOfUpdate(
	ctx context.Context, plan, state *M, private tf.PrivateState,
) (p, prior writtenSet, remembered record.Surroundings, diags diag.Diagnostics) {
	p, diags = r.set(ctx, plan)
	remembered, more := readSurroundings(ctx, private)
	diags.Append(more...)
	p.recall(remembered)

	prior, more = r.recordedSet(ctx, state, remembered.Secrets)

	return p, prior, remembered, append(diags, more...)
}

// planDestroy warns of the effects of a destroy. It refuses one that is protected or that would reset what the same
// plan creates. Machines that another resource has taken over are neither reset nor protected.
func (r *machinesResource[M, P]) planDestroy(
	ctx context.Context, state *M, private tf.PrivateState, planned tf.PrivateStore,
) diag.Diagnostics {
	p, _, diags := r.recalledSet(ctx, state, private)
	diags.Append(tf.Diagnostics(p.refuseSecretless(r.ProviderData))...)

	if diags.HasError() {
		return diags
	}

	common := P(state).common()
	r.Ledger().ForgetRemoval(common.OwnerID)

	record, found := recordedNow(ctx, r.ProviderData, common, p.Set)
	found.Append(p.RefuseDestroy(r.kind, common.ID.ValueString(), record)...)
	diags.Append(tf.StoreLeft(ctx, planned, record.LeftToOthersNames())...)

	if found.HasError() || diags.HasError() {
		return append(diags, tf.Diagnostics(found)...)
	}

	return append(diags, tf.Diagnostics(append(found, r.planRemoval(p.Set, common, record)...))...)
}

// planRemoval warns of what happens to machines that all leave, for good or to be created again.
func (r *machinesResource[M, P]) planRemoval(
	p machineset.Set, common CommonModel, record machineset.Record,
) finding.List {
	preserve := common.OnDestroy.ValueString() == onDestroyPreserve
	r.Ledger().KeepMachines(r.kind, common.ID.ValueString(), p, preserve)

	if preserve {
		return nil
	}

	return append(p.WarnOfRemoval(record, cluster.DefaultPolicy()), r.planWiped(p, common, record)...)
}

// planWiped notes which machines a destroy resets. It refuses the destroy when the same plan creates another object
// from them, or when a protected cluster ends with this plan.
func (r *machinesResource[M, P]) planWiped(
	p machineset.Set, common CommonModel, record machineset.Record,
) finding.List {
	if r.ProviderData == nil || record.LeftToOthers() {
		return nil
	}

	going := p.Spec(machineset.PriorStateOfDestroy(record, p), machineset.Rendered{}).Machines

	return append(r.Ledger().PlanWiped(p, r.object(common), going),
		r.Ledger().PlanEnd(p, r.object(common), finding.OperationDestroy)...)
}

// object names a resource in messages about others.
func (r *machinesResource[M, P]) object(common CommonModel) string {
	return r.kind + " " + finding.Quote(common.ID.ValueString())
}

// planOwners notes which machines a plan creates and which it resets, and refuses what contradicts another plan.
// common is that of the state; one without a record has none.
func (r *machinesResource[M, P]) planOwners(
	ctx context.Context, p, prior machineset.Set, common CommonModel,
) diag.Diagnostics {
	if r.ProviderData == nil || p.Unknown.Has(machineset.UnknownAddresses) {
		return nil
	}

	record, found := common.Recorded(ctx, prior)
	recorded, _ := machineset.NewPriorState(record, p, prior)

	found.Append(r.Ledger().PlanHeld(p, r.object(common), p.Spec(recorded, machineset.Rendered{}).Machines,
		machineset.AnsweredAt(p, prior, record, recorded))...)
	found.Append(r.Ledger().PlanMade(p, r.object(common), recorded.Added(p, prior))...)
	found.Append(r.Ledger().PlanJoins(p, r.object(common), recorded.Added(p, prior))...)
	found.Append(r.Ledger().PlanWiped(prior, r.object(common), recorded.Removed)...)

	return tf.Diagnostics(found)
}

// planCreate forecasts a create. The machines of a replacement are often those that leave.
func (r *machinesResource[M, P]) planCreate(
	ctx context.Context, plan *M, config M, req resource.ModifyPlanRequest,
) diag.Diagnostics {
	P(plan).align(config, nil)

	p, diags := r.set(ctx, plan)
	diags.Append(P(plan).derive(ctx)...)

	replaces := tf.Replaces(ctx, req.Private)
	if _, tainted, _ := r.Ledger().Replaced(ctx, req.Private, r.kind, P(plan).common().ID, p.Set); tainted {
		replaces = true
	}

	common := P(plan).common()
	common.belongAsPlanned(p)
	P(plan).setCommon(common)

	f, found := p.ForecastCreate(cluster.DefaultPolicy())
	diags.Append(tf.Diagnostics(append(found, r.refuseUnderContract(config, p)...))...)
	r.setForecast(plan, forecastCreate(p, f, replaces))

	if !replaces && !diags.HasError() {
		diags.Append(tf.Diagnostics(p.RefuseEndpoint())...)
		none := CommonModel{lifecycleModel: lifecycleModel{ID: P(plan).common().ID}}
		diags.Append(r.planOwners(ctx, p.Set, machineset.Set{}, none)...)
	}

	if !diags.HasError() && p.createsWithoutConsent(r.ProviderData, replaces) && !p.clusterInState(r.ProviderData) {
		diags.Append(tf.Diagnostics(p.refuseWithoutConsent(ctx, r.ProviderData))...)
	}

	diags.Append(p.reach(ctx, req.Config)...)

	if !diags.HasError() {
		diags.Append(r.advise(ctx, p, f)...)
	}

	return diags
}

// planUpdate forecasts an update. It keeps in private state what protects the machines, for the create of a
// replacement: a provider that was killed has left no private state.
func (r *machinesResource[M, P]) planUpdate(
	ctx context.Context, plan *M, state, config M, change edit, req resource.ModifyPlanRequest,
	resp *resource.ModifyPlanResponse,
) diag.Diagnostics {
	P(plan).align(config, &state)

	p, prior, _, diags := r.setsOfUpdate(ctx, plan, &state, req.Private)
	moved := prior.secretless

	diags.Append(P(&state).common().protect(ctx, resp.Private, prior.Set)...)
	diags.Append(tf.Diagnostics(prior.takeSecrets(p))...)

	p.Unknown.Note(machineset.UnknownNewSecrets, p.Unknown.Has(machineset.UnknownSecrets) && r.Ledger().SecretsPlanned())

	leaves := p.Replaces(prior.Set)
	diags.Append(tf.PlannedUpdate(ctx, resp.Private, leaves)...)

	diags.Append(replaceForNetworks(ctx, p.Set, prior.Set, req, resp)...)

	if !diags.HasError() && leaves {
		return append(diags, tf.Diagnostics(r.planReplacement(ctx, plan, P(&state).common(), p, prior, moved))...)
	}

	r.Ledger().KeepMachines(r.kind, P(&state).common().ID.ValueString(), prior.Set, true)
	p.noteExposed(r.ProviderData)

	f, found := planUpdate(ctx, p, prior, P(plan).common(), P(&state).common(), cluster.DefaultPolicy())
	diags.Append(tf.Diagnostics(append(found, r.refuseUnderContract(config, p)...))...)
	diags.Append(tf.Diagnostics(p.remindOfConsent(P(&state).common().recordedPhase()))...)
	diags.Append(tf.Diagnostics(r.Ledger().RefreshedOf(p.Owner).Contradictions(p.Set))...)

	if !p.Unknown.Renders() && !diags.HasError() {
		var more diag.Diagnostics

		f, found, more = r.assumed(ctx, f, p.Set, prior, state, config, req)
		diags.Append(append(tf.Diagnostics(found), more...)...) // Append drops duplicates
	}

	r.setForecast(plan, forecastUpdate(p, P(&state).common(), change, f))
	diags.Append(tf.Diagnostics(p.OutsideWindow(time.Now(), f))...)
	diags.Append(r.planOwners(ctx, p.Set, prior.Set, P(&state).common())...)

	diags.Append(p.reach(ctx, req.Config)...)

	if !diags.HasError() && !(f.Idle && p.keepsConnection(prior)) {
		diags.Append(tf.Diagnostics(r.RefuseOtherHost(ctx, p.Set))...)
	}

	if !diags.HasError() {
		diags.Append(r.advise(ctx, p, f)...)
	}

	return diags
}

// planReplacement forecasts an update that replaces the resource, and refuses what cannot be replaced. common is that
// of the state, and secretless is true if it had no secrets. A separate call plans the create, and reports what blocks
// it.
func (r *machinesResource[M, P]) planReplacement(
	ctx context.Context, plan *M, common CommonModel, p, prior writtenSet, secretless bool,
) finding.List {
	f, _ := p.ForecastCreate(cluster.DefaultPolicy())
	r.setForecast(plan, forecastCreate(p, f, true))

	record, found := recordedNow(ctx, r.ProviderData, common, prior.Set)
	found.Append(p.RefuseNewSecrets(prior.Set, record)...)
	found.Append(p.refuseSecretlessReplacement(secretless)...)
	found.Append(prior.RefuseReplace(r.kind, common.ID.ValueString(), record)...)

	return append(found, r.planRemoval(prior.Set, common, record)...)
}

// advise reports facts about a plan that only the network knows. No planned value depends on it.
func (r *machinesResource[M, P]) advise(
	ctx context.Context, p writtenSet, f machineset.Forecast,
) diag.Diagnostics {
	if r.ProviderData == nil {
		return nil
	}

	diags := tf.Diagnostics(r.Preview(ctx, p.Set, f.Makes))

	if !diags.HasError() {
		diags.Append(tf.Diagnostics(r.WarnOfRemovals(ctx, p.Set, f.Upgrade))...)
		diags.Append(tf.Diagnostics(r.WarnOfSchematics(ctx, f.Schematics))...)
	}

	return diags
}

// setForecast puts a forecast into a planned model.
func (r *machinesResource[M, P]) setForecast(plan *M, f forecast) {
	common := P(plan).common()
	common.apply(f)
	P(plan).setCommon(common)
}

func (r *machinesResource[M, P]) Create(
	ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse,
) {
	var plan M

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)

	common := P(&plan).common()
	common.withOwner()
	P(&plan).setCommon(common)

	ctx, cancel := common.deadline(ctx, tf.OpCreate, &resp.Diagnostics)
	defer cancel()

	p, diags := r.set(ctx, &plan)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(p.unlock(ctx, req.Config)...)

	remembered, diags := readSurroundings(ctx, resp.Private)
	resp.Diagnostics.Append(diags...)

	if p.NeedsConsent = p.createsWithoutConsent(r.ProviderData, false); p.NeedsConsent && !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(tf.Diagnostics(p.refuseWithoutConsent(ctx, r.ProviderData))...)
	}

	if resp.Diagnostics.HasError() {
		return
	}

	done := converge(tf.MaskSecrets(ctx, p.Secrets), r.ConfiguredResource.ProviderData, p, machineset.PriorState{})
	common.belong(p, done.host)
	found, begun := common.settleCreate(p.Set, done)
	resp.Diagnostics.Append(tf.Diagnostics(found)...)

	if !begun {
		return
	}

	P(&plan).setCommon(common)
	r.Ledger().Created(r.object(common))
	resp.Diagnostics.Append(P(&plan).derive(ctx)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(clusterimport.SetIdentity(ctx, resp.Identity, r.imports, p.Set)...)
	resp.Diagnostics.Append(common.protect(ctx, resp.Private, p.Set)...)

	remembered = p.surroundings(remembered, done.want, done.result.Snapshot)
	remembered.Host, remembered.NeedsConsent = record.Host(done.host), p.NeedsConsent
	resp.Diagnostics.Append(storeSurroundings(ctx, resp.Private, remembered)...)
}

func (r *machinesResource[M, P]) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state M

	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	common := P(&state).common()

	ctx, cancel := common.deadline(ctx, tf.OpRead, &resp.Diagnostics)
	defer cancel()

	p, remembered, diags := r.recalledSet(ctx, &state, req.Private)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(clusterimport.SetIdentity(ctx, resp.Identity, r.imports, p.Set)...)

	if resp.Diagnostics.HasError() {
		return
	}

	if p.Unknown.Has(machineset.UnknownSecrets) {
		resp.Diagnostics.Append(tf.Diagnostics(p.notRead())...)

		return
	}

	p.noteCluster(r.ProviderData)

	saw, found := refresh(tf.MaskSecrets(ctx, p.Secrets), r.ConfiguredResource.ProviderData, &common, p.Set)
	resp.Diagnostics.Append(tf.Diagnostics(found)...)
	common.belongAsSeen(p, saw.host)
	P(&state).setCommon(common)
	resp.Diagnostics.Append(P(&state).seenMeta(ctx, saw.want, saw.have)...)
	resp.Diagnostics.Append(P(&state).derive(ctx)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	resp.Diagnostics.Append(common.protect(ctx, resp.Private, p.Set)...)

	remembered = p.surroundings(remembered, saw.want, saw.have)
	remembered.Host = record.Host(saw.host)
	resp.Diagnostics.Append(storeSurroundings(ctx, resp.Private, remembered)...)
	r.Ledger().RememberRead(common.OwnerID, r.removal(ctx, state, resp.Private))
}

func (r *machinesResource[M, P]) Update(
	ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse,
) {
	var plan, state M

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	ctx, cancel := P(&plan).common().deadline(ctx, tf.OpUpdate, &resp.Diagnostics)
	defer cancel()

	P(&plan).align(plan, &state)

	p, prior, remembered, diags := r.setsOfUpdate(ctx, &plan, &state, req.Private)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(p.unlock(ctx, req.Config)...)
	resp.Diagnostics.Append(tf.Diagnostics(prior.takeSecrets(p))...)

	if resp.Diagnostics.HasError() {
		return
	}

	p.FormerSecrets = prior.Secrets
	p.NeedsConsent = p.updatesWithoutConsent(remembered, P(&state).common().recordedPhase())
	result, reached := plan, p.Set

	var done run

	if P(&plan).common().idle() {
		if !r.confirm(ctx, &result, p, prior, &resp.Diagnostics) {
			return
		}
	} else {
		var found finding.List

		done, found = updateMachines(tf.MaskSecrets(ctx, p.Secrets), r.ConfiguredResource.ProviderData, p, prior.Set,
			P(&state).common())
		found.Append(done.tellOfEndpoint(p.Set, P(&plan).common().Phase)...)
		resp.Diagnostics.Append(tf.Diagnostics(found)...)

		if done.err != nil {
			// What is unfinished stays a difference between state and configuration.
			result, reached = state, prior.Set
		}

		resp.Diagnostics.Append(P(&result).settleUpdate(ctx, done, plan, state)...)
		resp.Diagnostics.Append(tf.Diagnostics(warnOfPendingKeys(done.want, done.result.Snapshot))...)

		if done.host.UID != "" {
			remembered.Host = record.Host(done.host)
		}
	}

	resp.Diagnostics.Append(P(&result).derive(ctx)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &result)...)
	resp.Diagnostics.Append(clusterimport.SetIdentity(ctx, resp.Identity, r.imports, reached)...)
	resp.Diagnostics.Append(P(&result).common().protect(ctx, resp.Private, p.Set)...)
	resp.Diagnostics.Append(storeSurroundings(ctx, resp.Private,
		p.surroundings(remembered, done.want, done.result.Snapshot))...)
}

// confirm finishes an update that touches no machine: it checks whether they are still Ready. It returns false when
// nothing may be stored, because the connection leads to another host cluster.
func (r *machinesResource[M, P]) confirm(
	ctx context.Context, result *M, p, prior writtenSet, diags *diag.Diagnostics,
) bool {
	if !p.keepsConnection(prior) {
		diags.Append(tf.Diagnostics(r.RefuseOtherHost(ctx, p.Set))...)
	}

	if diags.HasError() {
		return false
	}

	common := P(result).common()
	found := common.confirmReady(tf.MaskSecrets(ctx, p.Secrets), r.ConfiguredResource.ProviderData, p.Set)
	diags.Append(tf.Diagnostics(found)...)
	P(result).setCommon(common)

	return true
}

func (r *machinesResource[M, P]) Delete(
	ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse,
) {
	var state M

	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	common := P(&state).common()

	ctx, cancel := common.deadline(ctx, tf.OpDelete, &resp.Diagnostics)
	defer cancel()

	p, _, diags := r.recalledSet(ctx, &state, req.Private)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(tf.Diagnostics(p.refuseSecretless(r.ProviderData))...)

	if resp.Diagnostics.HasError() {
		return
	}

	left := tf.PlannedLeft(ctx, req.Private, &resp.Diagnostics)

	if others, replaces := tf.DeletesToReplace(ctx, req.Private); replaces {
		p.Set = p.ToReplace(others)
	}

	resp.Diagnostics.Append(tf.Diagnostics(
		removeMachines(tf.MaskSecrets(ctx, p.Secrets), r.ConfiguredResource.ProviderData, r.kind, common, p.Set, left))...)

	if !resp.Diagnostics.HasError() {
		p.noteEnd(r.ProviderData)
	}
}

// UpgradeState reads states of former versions.
func (r *machinesResource[M, P]) UpgradeState(context.Context) map[int64]resource.StateUpgrader {
	return map[int64]resource.StateUpgrader{0: {StateUpgrader: upgradeFormerState}}
}
