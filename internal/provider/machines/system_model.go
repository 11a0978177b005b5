package machines

import (
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/system"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// SystemModel is the system settings of groups and single machines besides system_volumes.
type SystemModel struct {
	WorkloadIsolation types.Bool `tfsdk:"workload_isolation"`
	ImageVerification types.List `tfsdk:"image_verification"`
	SecureBoot        types.Bool `tfsdk:"secure_boot"`
}

// Read reads the settings of a machine with these volumes.
func (m SystemModel) Read(r *tf.Reader, volumes types.Map) (s system.Settings) {
	r.Into(m.WorkloadIsolation, &s.WorkloadIsolation)
	r.Into(m.ImageVerification, &s.ImageVerification)
	r.Into(volumes, &s.Volumes)

	return s
}

// noSystemVolumes is system_volumes without a value.
func noSystemVolumes() types.Map { return types.MapNull(systemVolumeType()) }

// systemModelOf is the model of settings, and the volumes next to it.
func systemModelOf(s system.Settings) (SystemModel, types.Map) {
	rules := types.ListType{ElemType: tf.ObjectOf(ruleAttributes())}

	return SystemModel{WorkloadIsolation: types.BoolPointerValue(s.WorkloadIsolation),
		ImageVerification: tf.ValueOf[types.List](rules, s.ImageVerification),
	}, tf.ValueOf[types.Map](types.MapType{ElemType: systemVolumeType()}, s.Volumes)
}

// sharedSystem is the system settings that an import finds equal on all machines. Volumes that differ belong to single
// machines.
func sharedSystem(machines map[string]machineconfig.Machine, names []string) (SystemModel, types.Map) {
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

	return systemModelOf(shared)
}
