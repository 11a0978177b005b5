package setting

import (
	"maps"
	"regexp"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// Sysctls are parameters of the kernel below /proc/sys. Talos applies changes while it runs, and resets a removed
// one to its former value (Talos 1.14, runtime/kernel_param_spec.go). The kernel of a container is that of its
// host.
var Sysctls = define(definition[map[string]string]{
	name:   "sysctls",
	metal:  true,
	empty:  isEmptyMap,
	levels: byKey{},

	put: func(c *Config, value map[string]string) {
		_, own := places.Document[*runtime.SysctlConfigV1Alpha1](c.Documents)
		if !own && c.Contract.MultidocSysctlConfigSupported() {
			c.Documents = append(c.Documents, runtime.NewSysctlConfigV1Alpha1())
		}

		c.add(places.Sysctls, value)
	},

	read: func(c Config) map[string]string {
		if !c.Contract.MultidocSysctlConfigSupported() {
			c.Documents = []config.Document{c.Main}
		} else if _, own := places.Document[*runtime.SysctlConfigV1Alpha1](c.Documents); !own {
			return nil
		}

		return beyond(c.entries(places.Sysctls), nil)
	},

	check: func(value map[string]string, found *problems, _ Target) {
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if !sysctlName.MatchString(key) {
				found.add(under("sysctls", key), quoted(key), "the name of a parameter in /proc/sys, such as "+
					"vm.max_map_count, or net/ipv6/conf/eth0.100/disable_ipv6 if a part contains a dot", "correct the name")
			}
		}
	},
})

var sysctlName = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_:@*-]+)+$|^[A-Za-z0-9_-]+(/[A-Za-z0-9_.:@*-]+)+$`)
