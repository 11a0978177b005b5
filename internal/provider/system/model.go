package system

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/system"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Model is what groups of machines, and single ones, say of their system beside system_volumes.
type Model struct {
	WorkloadIsolation types.Bool `tfsdk:"workload_isolation"`
	ImageVerification types.List `tfsdk:"image_verification"`
	SecureBoot        types.Bool `tfsdk:"secure_boot"`
}

type volumeModel struct {
	MinSize      types.String `tfsdk:"min_size"`
	MaxSize      types.String `tfsdk:"max_size"`
	Grow         types.Bool   `tfsdk:"grow"`
	DiskSelector types.String `tfsdk:"disk_selector"`
	Keys         types.Map    `tfsdk:"encryption_keys"`
}

type keyModel struct {
	TPM         types.Object `tfsdk:"tpm"`
	KMSEndpoint types.String `tfsdk:"kms_endpoint"`
	NodeID      types.Bool   `tfsdk:"node_id"`
	Passphrase  types.String `tfsdk:"passphrase"`
	LockToState types.Bool   `tfsdk:"lock_to_state"`
}

type tpmModel struct {
	PCRs            types.List `tfsdk:"pcrs"`
	CheckSecureBoot types.Bool `tfsdk:"check_secure_boot"`
}

type ruleModel struct {
	Image        types.String `tfsdk:"image"`
	Skip         types.Bool   `tfsdk:"skip"`
	Deny         types.Bool   `tfsdk:"deny"`
	Issuer       types.String `tfsdk:"issuer"`
	Subject      types.String `tfsdk:"subject"`
	SubjectRegex types.String `tfsdk:"subject_regex"`
	PublicKey    types.String `tfsdk:"public_key"`
}

// Read reads the settings of a machine with these volumes.
func (m Model) Read(ctx context.Context, r *tf.Reader, volumes types.Map) system.Settings {
	s := system.Settings{WorkloadIsolation: truth(r, m.WorkloadIsolation)}

	for name, v := range tf.Objects[volumeModel](ctx, r, volumes) {
		if s.Volumes == nil {
			s.Volumes = map[string]system.Volume{}
		}

		s.Volumes[name] = system.Volume{
			MinSize: r.Text(v.MinSize), MaxSize: r.Text(v.MaxSize), Grow: truth(r, v.Grow), DiskSelector: r.Text(v.DiskSelector),
			Keys: readKeys(ctx, r, v.Keys),
		}
	}

	for _, rule := range tf.Listed[ruleModel](ctx, r, m.ImageVerification) {
		s.ImageVerification = append(s.ImageVerification, system.ImageRule{
			Image: r.Text(rule.Image), Skip: r.Truth(rule.Skip, false), Deny: r.Truth(rule.Deny, false),
			Issuer: r.Text(rule.Issuer), Subject: r.Text(rule.Subject), SubjectRegex: r.Text(rule.SubjectRegex),
			PublicKey: r.Text(rule.PublicKey),
		})
	}

	return s
}

// truth is nil where nothing is said, or not known yet.
func truth(r *tf.Reader, v types.Bool) *bool {
	r.Unknown = r.Unknown || v.IsUnknown()

	return v.ValueBoolPointer()
}

// readKeys is nil where there are none, and empty where the attribute is.
func readKeys(ctx context.Context, r *tf.Reader, all types.Map) map[string]system.Key {
	if all.IsNull() || all.IsUnknown() {
		r.Unknown = r.Unknown || all.IsUnknown()

		return nil
	}

	keys := map[string]system.Key{}

	for slot, k := range tf.Objects[keyModel](ctx, r, all) {
		key := system.Key{NodeID: r.Truth(k.NodeID, false), Passphrase: r.Text(k.Passphrase),
			KMSEndpoint: r.Text(k.KMSEndpoint), LockToState: r.Truth(k.LockToState, false)}

		if tpm, ok := tf.Object[tpmModel](ctx, r, k.TPM); ok {
			key.TPM = &system.TPM{PCRs: numbers(r, tpm.PCRs), CheckSecureBoot: r.Truth(tpm.CheckSecureBoot, false)}
		}

		keys[slot] = key
	}

	return keys
}

// numbers is nil for a list that is not there.
func numbers(r *tf.Reader, list types.List) []int {
	if list.IsNull() || list.IsUnknown() {
		r.Unknown = r.Unknown || list.IsUnknown()

		return nil
	}

	read := []int{}

	for _, element := range list.Elements() {
		if number, ok := element.(types.Int64); ok {
			r.Unknown = r.Unknown || number.IsUnknown()
			read = append(read, int(number.ValueInt64()))
		}
	}

	return read
}

// None is the model of machines of which nothing is said.
func None() Model { return Model{ImageVerification: types.ListNull(ruleType())} }

// NoVolumes is system_volumes that is not given.
func NoVolumes() types.Map { return types.MapNull(VolumeType()) }

// Of is the model of settings, and the volumes beside it.
func Of(ctx context.Context, s system.Settings, secureBoot bool) (Model, types.Map, diag.Diagnostics) {
	model := None()
	model.WorkloadIsolation, model.SecureBoot = types.BoolPointerValue(s.WorkloadIsolation), tf.TrueOrNull(secureBoot)

	var diags diag.Diagnostics

	if len(s.ImageVerification) > 0 {
		var rules []ruleModel
		for _, r := range s.ImageVerification {
			rules = append(rules, ruleModel{
				Image: types.StringValue(r.Image), Skip: tf.TrueOrNull(r.Skip), Deny: tf.TrueOrNull(r.Deny),
				Issuer: tf.TextOrNull(r.Issuer), Subject: tf.TextOrNull(r.Subject), SubjectRegex: tf.TextOrNull(r.SubjectRegex),
				PublicKey: tf.TextOrNull(r.PublicKey),
			})
		}

		model.ImageVerification, diags = types.ListValueFrom(ctx, ruleType(), rules)
	}

	volumes, more := volumesOf(ctx, s.Volumes)

	return model, volumes, append(diags, more...)
}

func volumesOf(ctx context.Context, volumes map[string]system.Volume) (types.Map, diag.Diagnostics) {
	if len(volumes) == 0 {
		return NoVolumes(), nil
	}

	var diags diag.Diagnostics

	models := map[string]volumeModel{}

	for _, name := range slices.Sorted(maps.Keys(volumes)) {
		v := volumes[name]
		keys, more := keysOf(ctx, v.Keys)
		diags.Append(more...)

		models[name] = volumeModel{MinSize: tf.TextOrNull(v.MinSize), MaxSize: tf.TextOrNull(v.MaxSize),
			Grow: types.BoolPointerValue(v.Grow), DiskSelector: tf.TextOrNull(v.DiskSelector), Keys: keys}
	}

	all, more := types.MapValueFrom(ctx, VolumeType(), models)

	return all, append(diags, more...)
}

func keysOf(ctx context.Context, keys map[string]system.Key) (types.Map, diag.Diagnostics) {
	if len(keys) == 0 {
		return types.MapNull(keyType()), nil
	}

	values := map[string]attr.Value{}

	var diags diag.Diagnostics

	for slot, k := range keys {
		model := keyModel{TPM: types.ObjectNull(tpmType()), KMSEndpoint: tf.TextOrNull(k.KMSEndpoint),
			NodeID: tf.TrueOrNull(k.NodeID), Passphrase: tf.TextOrNull(k.Passphrase), LockToState: tf.TrueOrNull(k.LockToState)}

		if k.TPM != nil {
			pcrs := types.ListNull(types.Int64Type)
			if k.TPM.PCRs != nil {
				list, more := types.ListValueFrom(ctx, types.Int64Type, k.TPM.PCRs)
				diags.Append(more...)

				pcrs = list
			}

			tpm, more := types.ObjectValueFrom(ctx, tpmType(), tpmModel{PCRs: pcrs,
				CheckSecureBoot: tf.TrueOrNull(k.TPM.CheckSecureBoot)})
			diags.Append(more...)

			model.TPM = tpm
		}

		value, more := types.ObjectValueFrom(ctx, keyType().AttrTypes, model)
		diags.Append(more...)

		values[slot] = value
	}

	all, more := types.MapValue(keyType(), values)

	return all, append(diags, more...)
}

// Shared is what an import says of the system of machines that are all alike in it. Volumes that differ are those of
// single machines.
func Shared(
	ctx context.Context, machines map[string]machineconfig.Machine, names []string,
) (Model, types.Map, diag.Diagnostics) {
	shared := machines[names[0]].System

	for _, name := range names {
		own := machines[name].System
		if !reflect.DeepEqual(own.Volumes, shared.Volumes) {
			shared.Volumes = nil
		}

		if !reflect.DeepEqual(own.WorkloadIsolation, shared.WorkloadIsolation) {
			shared.WorkloadIsolation = nil
		}

		if !reflect.DeepEqual(own.ImageVerification, shared.ImageVerification) {
			shared.ImageVerification = nil
		}
	}

	return Of(ctx, shared, false)
}
