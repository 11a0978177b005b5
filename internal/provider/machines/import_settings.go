package machines

import (
	"maps"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/setting"
)

// alike is the settings that machines of an import have in common.
func alike(groups ...map[string]machineconfig.Machine) setting.Values {
	var all []setting.Values

	for _, machines := range groups {
		for _, m := range machines {
			all = append(all, m.Settings)
		}
	}

	return setting.Common(all...)
}

// beside are machines without the settings that a more general level gives them.
func beside(general setting.Values, machines map[string]machineconfig.Machine) map[string]machineconfig.Machine {
	own := maps.Clone(machines)

	for _, name := range slices.Collect(maps.Keys(own)) {
		m := own[name]
		m.Settings = m.Settings.Beside(general)
		own[name] = m
	}

	return own
}
