// Package metavalues checks values of META that users write: which keys they may use, and which values are valid.
// Pure.
package metavalues

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/siderolabs/talos/pkg/machinery/meta"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/metakey"
)

// Keys of META, the small key-value store beside the system disk's boot partition, that users may write.
// The others belong to Talos: writing them makes a machine install or encrypt itself differently at the next
// boot. META is no part of a configuration. It is written through the machine's API, or carried by its boot
// medium; only the check is here.
var keys = map[string]uint8{
	"network":       meta.MetalNetworkPlatformConfig,
	"download_url":  meta.DownloadURLCode,
	"user_1":        meta.UserReserved1,
	"user_2":        meta.UserReserved2,
	"user_3":        meta.UserReserved3,
	"uuid_override": meta.UUIDOverride,
	"machine_token": meta.UniqueMachineToken,
}

// Parse reads META values by the name or number of their key ("network", "0x0a" or "10"). Errors are
// *machineconfig.FieldError of "machine.meta".
func Parse(values map[string]string) (map[uint8]string, error) {
	return parse("machine.meta", values, nil)
}

// CheckProvided checks META values of the provider's configuration, in addition to the machine's own.
func CheckProvided(values, beside map[string]string) error {
	_, err := parse("clusters.machines.meta", values, beside)

	return err
}

// parse reads values at a setting. The keys of beside are set elsewhere.
func parse(setting string, values, beside map[string]string) (map[uint8]string, error) {
	var problems []error

	add := func(name, found, allowed, fix string) {
		problems = append(problems, &machineconfig.FieldError{
			Field: fmt.Sprintf("%s[%q]", setting, name), Found: found, Allowed: allowed, Fix: fix,
		})
	}

	parsed := make(map[uint8]string, len(values))
	taken := map[uint8]bool{}

	for name := range beside {
		if key, ok := Key(name); ok {
			taken[key] = true
		}
	}

	for _, name := range slices.Sorted(maps.Keys(values)) {
		key, ok := Key(name)
		if !ok {
			add(name, fmt.Sprintf("%q", name), "one of "+names(), "the other keys belong to Talos")

			continue
		}

		if taken[key] {
			add(name, "key "+metakey.Text(key)+" again", "each key once", "remove one of the two names")

			continue
		}

		if key == meta.MetalNetworkPlatformConfig {
			var config map[string]any
			text := []byte(values[name])
			if expansion.CheckYAML(text) != nil || yaml.Unmarshal(text, &config) != nil || len(config) == 0 {
				add(name, "a value that is not a network configuration", "YAML with addresses, links, routes and so on",
					"see the META network configuration of Talos for metal")
			}
		}

		parsed[key], taken[key] = values[name], true
	}

	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}

	return parsed, nil
}

// Key reads the name or number of a key of META that users may write; ok is false for anything else.
func Key(name string) (key uint8, ok bool) {
	if key, ok := keys[name]; ok {
		return key, true
	}

	number, err := strconv.ParseUint(name, 0, 8)
	if err != nil {
		return 0, false
	}

	for _, key := range keys {
		if uint8(number) == key {
			return key, true
		}
	}

	return 0, false
}

func names() string {
	sorted := slices.SortedFunc(maps.Keys(keys), func(a, b string) int { return int(keys[a]) - int(keys[b]) })

	text := ""
	for i, name := range sorted {
		if i > 0 {
			text += ", "
		}

		text += fmt.Sprintf("%s (%s)", name, metakey.Text(keys[name]))
	}

	return text
}
