package machines

import (
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/setting"
)

// commonSettings is the settings that machines of an import share.
func commonSettings(groups ...map[string]machineconfig.Machine) setting.Values {
	var all []setting.Values

	for _, machines := range groups {
		for _, m := range machines {
			all = append(all, m.Settings)
		}
	}

	return setting.Common(all...)
}

// withoutSettings are machines without the settings that a more general level gives them.
func withoutSettings(
	general setting.Values, machines map[string]machineconfig.Machine,
) map[string]machineconfig.Machine {
	own := map[string]machineconfig.Machine{}

	for name, m := range machines {
		m.Settings = m.Settings.Own(general)
		own[name] = m
	}

	return own
}
