// Package metakey has the keys of META, the small store beside a machine's boot partition, and how they are written.
// Pure.
package metakey

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The keys that talosop has to know (Talos 1.4 to 1.14, pkg/machinery/meta/constants.go).
const (
	// PreviousEntry is the boot entry that an upgraded machine goes back to when a sequence fails. Talos deletes it once
	// the machine was running and ready (Talos 1.14, runtime/drop_upgrade_fallback.go).
	PreviousEntry uint8 = 0x06
	// Network is the network configuration of the metal platform.
	Network uint8 = 0x0a
	// UUIDOverride is a UUID that the machine reports in place of the one of
	// its hardware, from the moment it is written.
	UUIDOverride uint8 = 0x0f
)

// Missing lists the keys of META without the wanted value, in order.
func Missing(want, held map[uint8]string) []uint8 {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(want)), func(key uint8) bool {
		value, ok := held[key]

		return ok && value == want[key]
	})
}

// Text writes a key as Talos does, such as "0x0a".
func Text(key uint8) string { return fmt.Sprintf("0x%02x", key) }

// Texts writes keys as Talos does, such as "0x0a, 0x0c".
func Texts(keys []uint8) string {
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = Text(key)
	}

	return strings.Join(texts, ", ")
}

// Keys are keys of META; as text they are written as Talos does, such as "0x0a, 0x0c".
type Keys []uint8

// MarshalText writes keys.
func (k Keys) MarshalText() ([]byte, error) { return []byte(Texts(k)), nil }

// UnmarshalText reads what MarshalText wrote.
func (k *Keys) UnmarshalText(text []byte) error {
	*k = nil

	for one := range strings.SplitSeq(string(text), ", ") {
		key, err := strconv.ParseUint(one, 0, 8)
		if err != nil {
			return fmt.Errorf("%q is not a list of META keys: %w", text, err)
		}

		*k = append(*k, uint8(key))
	}

	return nil
}
