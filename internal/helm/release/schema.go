package release

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	helmchart "helm.sh/helm/v3/pkg/chart"
)

// schemaAddress is where Helm places the schema of a chart. So a relative reference in a schema is a file at the
// root of this machine (Helm 3.21, chartutil/jsonschema.go, ValidateAgainstSingleSchema).
const schemaAddress = "file:///values.schema.json"

// wholeSchemas refuses a chart with a schema that Helm would load more for: a chart may neither read files of the
// machine that plans, nor have it ask servers. Its dependencies count too, also those that are switched off.
func wholeSchemas(chart *helmchart.Chart) error {
	if refused := outside(chart.Schema); refused != "" {
		return fmt.Errorf("%w: values.schema.json of %s refers to %s", ErrSchema, chart.ChartFullPath(), refused)
	}

	for _, dependency := range chart.Dependencies() {
		if err := wholeSchemas(dependency); err != nil {
			return err
		}
	}

	return nil
}

// outside is the first address that a schema would be loaded from, empty for none. It is compiled as Helm does it;
// what else is wrong with it is Helm's to say.
func outside(schema []byte) (refused string) {
	if schema == nil {
		return ""
	}

	loader := &refusing{}

	defer func() {
		// The library panics over some schemas, for which Helm has a text.
		_ = recover()
		refused = loader.refused
	}()

	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return ""
	}

	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(loader)

	if err := compiler.AddResource(schemaAddress, parsed); err == nil {
		_, _ = compiler.Compile(schemaAddress)
	}

	return loader.refused
}

// refusing loads nothing, and records the first request. The library itself has the metaschemas of JSON Schema.
type refusing struct{ refused string }

// Load implements jsonschema.URLLoader.
func (r *refusing) Load(address string) (any, error) {
	// Helm takes everything for valid that only has a name.
	if strings.HasPrefix(address, "urn:") {
		return true, nil
	}

	if r.refused == "" {
		r.refused = withoutUser(address)
	}

	return nil, errors.New("not loaded")
}

// withoutUser is an address that shows no password.
func withoutUser(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return "an invalid address"
	}

	return parsed.Redacted()
}
