package addon

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/helm/values"
)

// public are the values of a configuration or a state that are not secret.
func (m addonModel) public(ctx context.Context) (map[string]any, error) {
	open := m
	open.SetSensitive = types.ListNull(m.SetSensitive.ElementType(ctx))

	spec, _, err := open.Spec(ctx, types.ListNull(types.StringType))

	return spec.Values, err
}

// sensitive are the values of set_sensitive, at their place in the values of a release.
func (m addonModel) sensitive(ctx context.Context) (map[string]any, error) {
	alone := m
	alone.Values, alone.Set = types.ListNull(types.StringType), types.ListNull(m.Set.ElementType(ctx))

	spec, _, err := alone.Spec(ctx, types.ListNull(types.StringType))

	return spec.Values, err
}

// blind reports whether a release has values that its resource does not know: write-only ones, and those of former
// revisions.
func (m addonModel) blind() bool {
	return !m.ValuesWOVersion.IsNull() || m.ReuseValues.ValueBool() || m.ResetThenReuseValues.ValueBool()
}

// hidden are the secret texts of a release's values: those of set_sensitive and, when its resource does not know all
// values, those that differ from the configuration.
func (m addonModel) hidden(ctx context.Context, release map[string]any) (values.Secrets, error) {
	named, err := m.sensitive(ctx)
	if err != nil {
		return nil, err
	}

	secrets, err := textsIn(within(release, named))
	if err != nil || !m.blind() {
		return secrets, err
	}

	unknown, err := m.unknownIn(ctx, release)

	return append(secrets, unknown...), err
}

// unknownIn are all texts of a release's values that differ from the configuration.
func (m addonModel) unknownIn(ctx context.Context, release map[string]any) (values.Secrets, error) {
	public, err := m.public(ctx)
	if err != nil {
		return nil, err
	}

	return textsIn(beyond(release, public))
}

// hiddenOf are the secret texts of all revisions. In a foreign release all texts are secret, except those in the
// configuration.
func (m addonModel) hiddenOf(ctx context.Context, have release.Observation, foreign bool) (values.Secrets, error) {
	secret := m.hidden
	if foreign {
		secret = m.unknownIn
	}

	var all values.Secrets

	for _, r := range have.History {
		found, err := secret(ctx, r.Values)
		if err != nil {
			return nil, err
		}

		all = append(all, found...)
	}

	return all, nil
}

// textsIn are the texts in values.
func textsIn(secret map[string]any) (values.Secrets, error) {
	encoded, err := json.Marshal(secret)
	if err != nil {
		return nil, err
	}

	// JSON is YAML.
	_, secrets, err := values.Merge(values.Given{Secret: []string{string(encoded)}})

	return secrets, err
}

// within is the part of values at places where named has a value, too.
func within(all, named map[string]any) map[string]any {
	found := map[string]any{}

	for key, other := range named {
		value, there := all[key]
		if !there {
			continue
		}

		a, isMap := value.(map[string]any)
		b, isOtherMap := other.(map[string]any)

		if isMap && isOtherMap {
			value = within(a, b)
		}

		found[key] = value
	}

	return found
}

// beyond is the part of values that known does not have, or has with another value.
func beyond(all, known map[string]any) map[string]any {
	rest := map[string]any{}

	for key, value := range all {
		other, there := known[key]

		a, isMap := value.(map[string]any)
		b, isOtherMap := other.(map[string]any)

		switch {
		case !there:
			rest[key] = value
		case isMap && isOtherMap:
			if deeper := beyond(a, b); len(deeper) > 0 {
				rest[key] = deeper
			}
		case !values.Equal(map[string]any{key: value}, map[string]any{key: other}):
			rest[key] = value
		}
	}

	return rest
}
