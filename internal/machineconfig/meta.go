package machineconfig

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/siderolabs/talos/pkg/machinery/meta"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/metakey"
)

// Keys of META, the small key-value store beside the system disk's boot partition, that users may write.
// The others belong to Talos: writing them makes a machine install or encrypt itself differently at the next
// boot. META is no part of a configuration. It is written through the machine's API, or carried by its boot
// medium; only the check is here.
var metaKeys = map[string]uint8{
	"network":       meta.MetalNetworkPlatformConfig,
	"download_url":  meta.DownloadURLCode,
	"user_1":        meta.UserReserved1,
	"user_2":        meta.UserReserved2,
	"user_3":        meta.UserReserved3,
	"uuid_override": meta.UUIDOverride,
	"machine_token": meta.UniqueMachineToken,
}

// ParseMeta reads META values by the name or number of their key ("network", "0x0a" or "10"). Errors are
// FieldErrors of "machine.meta".
func ParseMeta(values map[string]string) (map[uint8]string, error) {
	return parseMeta("machine.meta", values, nil)
}

// CheckProvidedMeta checks META values of the provider's configuration, beside those that the machine has itself.
func CheckProvidedMeta(values, beside map[string]string) error {
	_, err := parseMeta(providedMetaKeys, values, beside)

	return err
}

// parseMeta reads values at a setting. The keys of beside are set elsewhere.
func parseMeta(setting string, values, beside map[string]string) (map[uint8]string, error) {
	var found problems

	parsed := make(map[uint8]string, len(values))
	taken := map[uint8]bool{}

	for name := range beside {
		if key, ok := MetaKey(name); ok {
			taken[key] = true
		}
	}

	for _, name := range slices.Sorted(maps.Keys(values)) {
		field := under(setting, name)

		key, ok := MetaKey(name)
		if !ok {
			found.add(field, quoted(name), "one of "+metaNames(), "the other keys belong to Talos")

			continue
		}

		if taken[key] {
			found.add(field, "key "+metakey.Text(key)+" again", "each key once", "remove one of the two names")

			continue
		}

		if key == meta.MetalNetworkPlatformConfig {
			var config map[string]any
			if yaml.Unmarshal([]byte(values[name]), &config) != nil || len(config) == 0 {
				found.add(field, "a value that is not a network configuration", "YAML with addresses, links, routes and so on",
					"see the META network configuration of Talos for metal")
			}
		}

		parsed[key], taken[key] = values[name], true
	}

	if err := found.err(); err != nil {
		return nil, err
	}

	return parsed, nil
}

// MetaKey reads the name or number of a key of META that users may write; ok is false for anything else.
func MetaKey(name string) (key uint8, ok bool) {
	if key, ok := metaKeys[name]; ok {
		return key, true
	}

	number, err := strconv.ParseUint(name, 0, 8)
	if err != nil {
		return 0, false
	}

	for _, key := range metaKeys {
		if uint8(number) == key {
			return key, true
		}
	}

	return 0, false
}

func metaNames() string {
	names := slices.SortedFunc(maps.Keys(metaKeys), func(a, b string) int { return int(metaKeys[a]) - int(metaKeys[b]) })

	text := ""
	for i, name := range names {
		if i > 0 {
			text += ", "
		}

		text += fmt.Sprintf("%s (%s)", name, metakey.Text(metaKeys[name]))
	}

	return text
}
