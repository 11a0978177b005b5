package values

import (
	"errors"
	"maps"
)

// Part of what a user gives.
type Part string

// Parts of [Given].
const (
	PartDocuments Part = "values document"
	PartSettings  Part = "setting"
	PartSecret    Part = "secret values document"
)

// Merge combines what a user gives, as Helm does with its -f and --set options: documents in order, then settings
// in order, then the secret documents. Mappings are merged; any other value replaces the earlier one. Null stays,
// since Helm removes a default of the chart for it. Numbers have Helm's types: float64 in documents and [JSON],
// and int64 in settings of [Auto].
//
// The returned secrets are all texts of secret documents and sensitive settings. Errors are [*Error].
func Merge(g Given) (map[string]any, Secrets, error) {
	merged, err := mergeDocuments(g.Documents, helmNumber)
	if err != nil {
		return nil, nil, err
	}

	var secrets Secrets

	for i, setting := range g.Settings {
		value, err := setting.apply(merged)
		if err != nil {
			return nil, nil, at(PartSettings, i, err)
		}

		if setting.Sensitive {
			secrets = append(leaves(secrets, value), setting.Value)
		}
	}

	for i, text := range g.Secret {
		document, err := parseDocument(text)
		if err != nil {
			return nil, nil, at(PartSecret, i, err)
		}

		secrets = leaves(secrets, document)

		if merged, err = mergeDocument(merged, document, helmNumber); err != nil {
			return nil, nil, at(PartSecret, i, err)
		}
	}

	return merged, secrets.compact(), nil
}

// Same reports whether documents, merged in their order, have the same values as others. Integers of up to
// 64 bits are compared as they are written: Helm rounds those beyond 2^53 to the same float64, so that
// templates see no difference. Documents that cannot be read are never the same.
func Same(documents, others []string) bool {
	a, err := mergeDocuments(documents, exactNumber)
	if err != nil {
		return false
	}

	b, err := mergeDocuments(others, exactNumber)

	return err == nil && Equal(a, b)
}

func mergeDocuments(texts []string, number func(string) (any, error)) (map[string]any, error) {
	merged := map[string]any{}

	for i, text := range texts {
		document, err := parseDocument(text)
		if err != nil {
			return nil, at(PartDocuments, i, err)
		}

		if merged, err = mergeDocument(merged, document, number); err != nil {
			return nil, at(PartDocuments, i, err)
		}
	}

	return merged, nil
}

func mergeDocument(
	below, document map[string]any, number func(string) (any, error),
) (map[string]any, error) {
	read, err := withNumbers(document, number)
	if err != nil {
		return nil, err
	}

	above, _ := read.(map[string]any)

	return mergeMaps(below, above), nil
}

// at completes an error with its place.
func at(part Part, index int, err error) error {
	found := &Error{Reason: "cannot be read"}
	errors.As(err, &found)

	found.Part, found.Index = part, index

	return found
}

// mergeMaps is that of Helm (pkg/cli/values/options.go), which is not exported.
func mergeMaps(below, above map[string]any) map[string]any {
	merged := maps.Clone(below)

	for key, value := range above {
		if inner, ok := value.(map[string]any); ok {
			if old, ok := merged[key].(map[string]any); ok {
				merged[key] = mergeMaps(old, inner)

				continue
			}
		}

		merged[key] = value
	}

	return merged
}

// reasonOf is the reason of an [Error] alone.
func reasonOf(err error) string {
	found := &Error{Reason: "an invalid value"}
	errors.As(err, &found)

	return found.Reason
}
