package values

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// keepNumbers keeps the texts of numbers, so that they can be read as Helm does or as they are written.
func keepNumbers(decoder *json.Decoder) *json.Decoder {
	decoder.UseNumber()

	return decoder
}

// withNumbers is a value whose numbers were read from their texts.
func withNumbers(value any, read func(text string) (any, error)) (any, error) {
	var err error

	switch value := value.(type) {
	case map[string]any:
		inner := make(map[string]any, len(value))
		for key := range value {
			if inner[key], err = withNumbers(value[key], read); err != nil {
				return nil, err
			}
		}

		return inner, nil
	case []any:
		inner := make([]any, len(value))
		for i := range value {
			if inner[i], err = withNumbers(value[i], read); err != nil {
				return nil, err
			}
		}

		return inner, nil
	case json.Number:
		return read(value.String())
	}

	return value, nil
}

// helmNumber is what Helm makes of a number in a file of values or in --set-json: a float64 (Helm 3.21,
// pkg/cli/values/options.go and pkg/strvals, by encoding/json). Integers beyond 2^53 are rounded.
func helmNumber(text string) (any, error) {
	float, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, &Error{Reason: "a number too large for Helm (float64)"}
	}

	return float, nil
}

// exactNumber is an int64 or uint64 where one holds the number. YAML 1.1 has no larger integers.
func exactNumber(text string) (any, error) {
	if signed, err := strconv.ParseInt(text, 10, 64); err == nil {
		return signed, nil
	}

	if unsigned, err := strconv.ParseUint(text, 10, 64); err == nil {
		return unsigned, nil
	}

	return helmNumber(text)
}

// exactBelow is the integer below which each float64 is one integer alone: it is also what 2^53+1 rounds to.
const exactBelow = 1 << 53

// signed is a float64, or the integer itself where a float64 may round it.
func signed(value int64) any {
	if -exactBelow < value && value < exactBelow {
		return float64(value)
	}

	return value
}

// unsigned is signed, or a uint64 that no int64 holds.
func unsigned(value uint64) any {
	if value <= math.MaxInt64 {
		return signed(int64(value))
	}

	return value
}

// rounded is a number as Helm's record of a release gives it back.
func rounded(value any) any {
	switch value := value.(type) {
	case int64:
		return float64(value)
	case uint64:
		return float64(value)
	default:
		return value
	}
}

// textsOf are a number as templates write it: by itself, as JSON or YAML, and as an integer.
func textsOf(number any) []string {
	texts := []string{encode(number)}

	if float, ok := rounded(number).(float64); ok {
		texts = append(texts, fmt.Sprint(float), encode(float))

		if float == math.Trunc(float) {
			texts = append(texts, strconv.FormatFloat(float, 'f', 0, 64), fmt.Sprint(int64(float)))
		}
	}

	return texts
}

// encode returns JSON with sorted keys.
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
