package values

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
)

// Equal reports whether two releases have the same values. Integers are compared exactly, and as float64 with
// other numbers, which Helm's record of a release returns.
func Equal(a, b map[string]any) bool { return same(recorded(a), recorded(b)) }

// Restored are the values of Helm's record of a release with the integers of known ones that the record
// rounds.
func Restored(record, known map[string]any) map[string]any {
	restored, _ := restore(record, recorded(known)).(map[string]any)

	return restored
}

func restore(value, known any) any {
	switch value := value.(type) {
	case map[string]any:
		others, _ := known.(map[string]any)
		inner := make(map[string]any, len(value))

		for key := range value {
			inner[key] = restore(value[key], others[key])
		}

		return inner
	case []any:
		others, _ := known.([]any)
		inner := make([]any, len(value))

		for i := range value {
			inner[i] = restore(value[i], item(others, i))
		}

		return inner
	case float64:
		switch known.(type) {
		case int64, uint64:
			if rounded(known) == any(value) {
				return known
			}
		}
	}

	return value
}

// Digest is 64 hex digits of a SHA-256 over the values. Values that are [Equal] have the same one, but for
// integers beyond 2^53 and the float64 that they round to.
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
	if same(before, after) {
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

// isSwitch reports whether a value is too small to be a secret.
func isSwitch(value any) bool {
	_, isBool := value.(bool)

	return isBool || value == nil
}

// show is a value as JSON, without secrets and shortened for reading.
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
	case float64, int64, uint64:
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

// same compares values that are recorded.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		other, isMap := b.(map[string]any)

		return isMap && maps.EqualFunc(a, other, same)
	case []any:
		other, isList := b.([]any)

		return isList && slices.EqualFunc(a, other, same)
	}

	switch b.(type) {
	case map[string]any, []any:
		return false
	}

	_, float := a.(float64)
	if _, other := b.(float64); float != other {
		return rounded(a) == rounded(b)
	}

	return a == b
}

// recorded is a value as Helm's record of a release gives it back, in which all numbers are float64; but
// integers that a float64 may round are kept.
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
		return signed(value)
	case uint64:
		return unsigned(value)
	case json.Number:
		return recordedNumber(value)
	default:
		return recordedOther(value)
	}
}

// recordedOther is for what strvals or a caller may bring: other numbers, and named types.
func recordedOther(value any) any {
	switch reflected := reflect.ValueOf(value); {
	case reflected.CanInt():
		return signed(reflected.Int())
	case reflected.CanUint():
		return unsigned(reflected.Uint())
	case reflected.CanFloat():
		return reflected.Float() + 0
	}

	var plain any
	if err := json.Unmarshal([]byte(encode(value)), &plain); err != nil {
		return fmt.Sprint(value)
	}

	return plain
}

func recordedNumber(number json.Number) any {
	exact, err := exactNumber(number.String())
	if err != nil {
		return number.String()
	}

	return recorded(exact)
}
