package addon

import (
	"context"
	"errors"
	"path"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/helm/postrender"
	"github.com/talosop/terraform-provider-talosop/internal/helm/values"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

func (m addonModel) validateOptions() diag.Diagnostics {
	var diags diag.Diagnostics

	for _, pair := range []struct {
		a, b          string
		first, second types.Bool
		why           string
	}{
		{"include_crds", "skip_crds", m.IncludeCRDs, m.SkipCRDs,
			"one adds the definitions to the release, and the other skips them"},
		{"include_crds", "upgrade_crds", m.IncludeCRDs, m.UpgradeCRDs,
			"an upgrade of the release also upgrades its definitions"},
		{"skip_crds", "upgrade_crds", m.SkipCRDs, m.UpgradeCRDs, "one skips the definitions, and the other applies them"},
		{"reuse_values", "reset_then_reuse_values", m.ReuseValues, m.ResetThenReuseValues,
			"they use different defaults"},
	} {
		if pair.first.ValueBool() && pair.second.ValueBool() {
			diags.Append(tf.Diagnostic(optionsTogether.At(
				finding.Root(pair.a), finding.Args{"other": pair.b, "reason": pair.why})))
		}
	}

	waits := m.Wait.IsNull() || m.Wait.IsUnknown() || m.Wait.ValueBool()

	for name, v := range map[string]types.Bool{"atomic": m.Atomic, "wait_for_jobs": m.WaitForJobs} {
		if v.ValueBool() && !waits {
			diags.Append(tf.Diagnostic(optionWithoutWait.At(finding.Root(name), nil)))
		}
	}

	if n := m.MaxHistory.ValueInt64(); n < 0 || n > 1000 {
		diags.Append(tf.Diagnostic(invalidHistory.At(finding.Root("max_history"), finding.Args{"count": n})))
	}

	diags.Append(longerThan("wait_timeout", m.Timeout, time.Second)...)

	if m.Verify.ValueBool() && m.Keyring.IsNull() {
		diags.Append(tf.Diagnostic(verifyWithoutKeyring.At(finding.Root("verify"), nil)))
	}

	return diags
}

// longerThan checks a duration.
func longerThan(name string, v tf.Duration, least time.Duration) diag.Diagnostics {
	if v.IsNull() || v.IsUnknown() {
		return nil
	}

	d, wrong := v.ValueGoDuration()
	if wrong.HasError() || d >= least {
		return nil // its type reports what is no duration
	}

	return diag.Diagnostics{tf.Diagnostic(durationTooShort.At(
		finding.Root(name), finding.Args{"value": v.ValueString(), "least": least}))}
}

func (m addonModel) validateIgnored(ctx context.Context) diag.Diagnostics {
	var diags diag.Diagnostics

	for i, ignored := range tf.Listed[ignoreDriftModel](ctx, &tf.Reader{}, m.IgnoreDrift) {
		at := finding.Root("ignore_drift").AtListIndex(i)

		for name, v := range map[string]types.String{"kind": ignored.Kind, "name": ignored.Name,
			"namespace": ignored.Namespace} {
			if _, err := path.Match(v.ValueString(), ""); err != nil {
				diags.Append(tf.Diagnostic(invalidPattern.At(
					at, finding.Args{"field": name, "value": v.ValueString()})))
			}
		}

		if ignored.Kind.IsNull() && ignored.Name.IsNull() && ignored.Namespace.IsNull() && ignored.Paths.IsNull() {
			diags.Append(tf.Diagnostic(emptyIgnore.At(at, nil)))
		}

		if paths, known := tf.KnownStrings(ignored.Paths); known && !ignored.Paths.IsNull() &&
			(len(paths) == 0 || slices.Contains(paths, "")) {
			diags.Append(tf.Diagnostic(emptyPaths.At(at, nil)))
		}
	}

	return diags
}

// validateValues checks each document and each setting alone, so that the wrong one is named, and then all together.
func (m addonModel) validateValues(ctx context.Context) diag.Diagnostics {
	diags := m.validateDocuments("values", m.Values,
		func(text string) values.Given { return values.Given{Documents: []string{text}} })
	diags.Append(m.validateDocuments("values_wo", m.ValuesWO,
		func(text string) values.Given { return values.Given{Secret: []string{text}} })...)
	diags.Append(m.validateSettings(ctx, "set", m.Set, false)...)
	diags.Append(m.validateSettings(ctx, "set_sensitive", m.SetSensitive, true)...)

	if !m.ValuesWO.IsNull() && m.ValuesWOVersion.IsNull() {
		diags.Append(tf.Diagnostic(valuesWithoutVersion.At(finding.Root("values_wo"), nil)))
	}

	if m.ValuesWO.IsNull() && !m.ValuesWOVersion.IsNull() {
		diags.Append(tf.Diagnostic(versionWithoutValues.At(finding.Root("values_wo_version"), nil)))
	}

	if diags.HasError() {
		return diags
	}

	r := &tf.Reader{}
	if all := m.Given(ctx, r, m.ValuesWO); !r.Unknown {
		if _, _, err := values.Merge(all); err != nil {
			diags.Append(tf.Diagnostic(valuesConflict.At(finding.Root("values"), finding.Args{"cause": err.Error()})))
		}
	}

	return diags
}

// mistakeIn is the mistake in a document or setting that was merged alone, and so is always the first one of the
// error.
func mistakeIn(err error) *values.Error {
	var mistake *values.Error
	if !errors.As(err, &mistake) {
		return &values.Error{Reason: err.Error()}
	}

	return mistake
}

func (m addonModel) validateDocuments(name string, list types.List, given func(string) values.Given) diag.Diagnostics {
	var diags diag.Diagnostics

	for i, element := range list.Elements() {
		text, ok := element.(types.String)
		if !ok || text.IsUnknown() {
			continue
		}

		if _, _, err := values.Merge(given(text.ValueString())); err != nil {
			mistake := mistakeIn(err)
			diags.Append(tf.Diagnostic(invalidDocument.At(finding.Root(name).AtListIndex(i),
				finding.Args{"line": mistake.Line, "name": mistake.Name, "cause": mistake.Reason})))
		}
	}

	return diags
}

// settingTypes are the allowed types of a setting.
var settingTypes = []string{string(values.Auto), string(values.String), string(values.Literal), string(values.JSON)}

func (m addonModel) validateSettings(
	ctx context.Context, name string, list types.List, sensitive bool,
) diag.Diagnostics {
	var diags diag.Diagnostics

	for i, s := range tf.Listed[settingModel](ctx, &tf.Reader{}, list) {
		at := finding.Root(name).AtListIndex(i)

		if known(s.Type) && !slices.Contains(settingTypes, s.Type.ValueString()) {
			diags.Append(tf.Diagnostic(invalidSettingType.At(
				at, finding.Args{"value": s.Type.ValueString(), "allowed": settingTypes})))

			continue
		}

		if n := utf8.RuneCountInString(s.Value.ValueString()); sensitive && n > 0 && n < shortestMask {
			diags.Append(tf.Diagnostic(shortSecret.At(
				at, finding.Args{"setting": at.String(), "addon": m.label(), "least": shortestMask})))
		}

		r := &tf.Reader{}

		setting := s.setting(r, sensitive)
		if r.Unknown || s.Name.IsNull() || s.Value.IsNull() {
			continue
		}

		if _, _, err := values.Merge(values.Given{Settings: []values.Setting{setting}}); err != nil {
			mistake := mistakeIn(err)
			diags.Append(tf.Diagnostic(invalidSetting.At(
				at, finding.Args{"name": mistake.Name, "cause": mistake.Reason})))
		}
	}

	return diags
}

func (m addonModel) validatePatches(ctx context.Context) diag.Diagnostics {
	var diags diag.Diagnostics

	for i, p := range tf.Listed[addonPatchModel](ctx, &tf.Reader{}, m.Patches) {
		r := &tf.Reader{}

		patch := p.patch(r)
		if r.Unknown || p.Patch.IsNull() {
			continue
		}

		if err := postrender.Check([]postrender.Patch{patch}); err != nil {
			// It was checked alone, and is always the first one of the error.
			var mistake *postrender.Error
			if errors.As(err, &mistake) {
				err = mistake.Err
			}

			diags.Append(tf.Diagnostic(invalidPatch.At(
				finding.Root("patches").AtListIndex(i), finding.Args{"cause": err.Error()})))
		}
	}

	return diags
}
