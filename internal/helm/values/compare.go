package values

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Equal says whether two releases have the same values. Numbers are compared as float64, which is what
// Helm's record of a release gives back.
func Equal(a, b map[string]any) bool { return reflect.DeepEqual(recorded(a), recorded(b)) }

// Digest is 64 hex digits of a SHA-256 over the values. Values that are [Equal] have the same one.
func Digest(values map[string]any) string {
	sum := sha256.Sum256([]byte(encode(recorded(values))))

	return hex.EncodeToString(sum[:])
}

// Differences are such as `image.tag: "1.0" -> "1.1"`, one for each path, sorted. Secrets are hidden,
// and so is what has a name that speaks of one, since the secrets of the old values may be unknown. Long
// values are cut.
func Differences(before, after map[string]any, secrets Secrets) []string {
	found := differences{secrets: secrets}
	found.compare("", recorded(before), recorded(after))

	return found.lines
}

type differences struct {
	secrets Secrets
	lines   []string
}

// absent is what is not there, which is not the same as null.
type absent struct{}

func (d *differences) compare(path string, before, after any) {
	if reflect.DeepEqual(before, after) {
		return
	}

	olds, wasMap := before.(map[string]any)
	news, isMap := after.(map[string]any)

	if wasMap && isMap {
		d.compareMaps(path, olds, news)

		return
	}

	old, wasList := before.([]any)
	list, isList := after.([]any)

	if wasList && isList {
		for i := range max(len(old), len(list)) {
			d.compare(fmt.Sprintf("%s[%d]", path, i), item(old, i), item(list, i))
		}

		return
	}

	d.lines = append(d.lines, d.line(path, before, after))
}

func (d *differences) compareMaps(path string, olds, news map[string]any) {
	keys := slices.Collect(maps.Keys(olds))
	keys = append(keys, slices.Collect(maps.Keys(news))...)
	slices.Sort(keys)

	for _, key := range slices.Compact(keys) {
		d.compare(join(path, key), entry(olds, key), entry(news, key))
	}
}

func (d *differences) line(path string, before, after any) string {
	if (before == absent{}) {
		return path + " added"
	}

	if (after == absent{}) {
		return path + " removed"
	}

	old, now := d.show(before), d.show(after)

	if old == hidden || now == hidden || telling.MatchString(path) && !(isSwitch(before) && isSwitch(after)) {
		return path + ": " + hidden + " -> " + hidden
	}

	return path + ": " + old + " -> " + now
}

// telling finds names of secrets.
var telling = regexp.MustCompile(`(?i)passw|passphrase|secret|token|credential|private_?key|api_?key|access_?key`)

// isSwitch is whether a value is too small to be a secret.
func isSwitch(value any) bool {
	_, isBool := value.(bool)

	return isBool || value == nil
}

// show is a value as JSON, without secrets, and not longer than somebody reads.
func (d *differences) show(value any) string {
	switch value := value.(type) {
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		if slices.Contains(d.secrets, value) {
			return hidden
		}
	case float64:
		if slices.Contains(d.secrets, encode(value)) {
			return hidden
		}
	}

	encoded := encode(value)
	if d.secrets.Redact(encoded) != encoded {
		return hidden
	}

	if runes := []rune(encoded); len(runes) > longestValue {
		return string(runes[:longestValue]) + "…"
	}

	return encoded
}

const longestValue = 80

func entry(values map[string]any, key string) any {
	if value, ok := values[key]; ok {
		return value
	}

	return absent{}
}

func item(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}

	return absent{}
}

// plainKey is a key that needs no quotes in a path.
var plainKey = regexp.MustCompile(`^[\w-]+$`)

func join(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

// recorded is a value as Helm's record of a release gives it back: all numbers are float64.
func recorded(value any) any {
	switch value := value.(type) {
	case map[string]any:
		inner := make(map[string]any, len(value))
		for key := range value {
			inner[key] = recorded(value[key])
		}

		return inner
	case []any:
		inner := make([]any, len(value))
		for i := range value {
			inner[i] = recorded(value[i])
		}

		return inner
	case nil, bool, string:
		return value
	case float64:
		return value + 0 // -0 is 0
	case int64:
		return float64(value)
	default:
		return recordedOther(value)
	}
}

// recordedOther is for what strvals or a caller may bring: other numbers, and named types.
func recordedOther(value any) any {
	switch reflected := reflect.ValueOf(value); {
	case reflected.CanInt():
		return float64(reflected.Int())
	case reflected.CanUint():
		return float64(reflected.Uint())
	case reflected.CanFloat():
		return reflected.Float() + 0
	}

	var plain any
	if err := json.Unmarshal([]byte(encode(value)), &plain); err != nil {
		return fmt.Sprint(value)
	}

	return plain
}

// encode is JSON, in which the keys are sorted.
func encode(value any) string {
	if float, ok := value.(float64); ok && (math.IsInf(float, 0) || math.IsNaN(float)) {
		return fmt.Sprint(float)
	}

	var encoded strings.Builder

	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)

	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}

	return strings.TrimSuffix(encoded.String(), "\n")
}
