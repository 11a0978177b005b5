package addon

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	frameworkpath "github.com/hashicorp/terraform-plugin-framework/path"
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
			"one puts the definitions into the release, the other leaves them alone"},
		{"include_crds", "upgrade_crds", m.IncludeCRDs, m.UpgradeCRDs,
			"as part of the release the definitions are upgraded with it"},
		{"skip_crds", "upgrade_crds", m.SkipCRDs, m.UpgradeCRDs, "one leaves the definitions alone, the other applies them"},
		{"reuse_values", "reset_then_reuse_values", m.ReuseValues, m.ResetThenReuseValues,
			"they differ in whose defaults count"},
	} {
		if pair.first.ValueBool() && pair.second.ValueBool() {
			diags.Append(tf.Invalid(frameworkpath.Root(pair.a), pair.a, "found it together with "+pair.b,
				"allowed is one of them: "+pair.why, "remove one of them"))
		}
	}

	waits := m.Wait.IsNull() || m.Wait.IsUnknown() || m.Wait.ValueBool()

	for name, v := range map[string]types.Bool{"atomic": m.Atomic, "wait_for_jobs": m.WaitForJobs} {
		if v.ValueBool() && !waits {
			diags.Append(tf.Invalid(frameworkpath.Root(name), name, "found it with wait = false",
				"allowed is "+name+" with wait, which sees what fails", "remove wait = false"))
		}
	}

	if n := m.MaxHistory.ValueInt64(); n < 0 || n > 1000 {
		diags.Append(tf.Invalid(frameworkpath.Root("max_history"), "max_history", fmt.Sprintf("found %d", n),
			"allowed is 0 to 1000, with 0 for all", "leave it out for 10"))
	}

	diags.Append(longerThan("wait_timeout", m.Timeout, time.Second)...)

	if m.Verify.ValueBool() && m.Keyring.IsNull() {
		diags.Append(tf.Invalid(frameworkpath.Root("verify"), "verify", "found verify = true without keyring",
			"allowed are both together",
			"give keyring, the path of a file with public keys that `gpg --export` wrote"))
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

	return diag.Diagnostics{tf.Invalid(frameworkpath.Root(name), name, "found "+finding.Quote(v.ValueString()),
		fmt.Sprintf("allowed is %s or more", least), "write such as 10m")}
}

func (m addonModel) validateIgnored(ctx context.Context) diag.Diagnostics {
	var diags diag.Diagnostics

	for i, ignored := range tf.Listed[ignoreDriftModel](ctx, &tf.Reader{}, m.IgnoreDrift) {
		at := frameworkpath.Root("ignore_drift").AtListIndex(i)

		for name, v := range map[string]types.String{"kind": ignored.Kind, "name": ignored.Name,
			"namespace": ignored.Namespace} {
			if _, err := path.Match(v.ValueString(), ""); err != nil {
				diags.Append(tf.Invalid(at, "ignore_drift",
					fmt.Sprintf("found %s %s in ignore_drift[%d]", name, finding.Quote(v.ValueString()), i),
					"allowed is a name, or a pattern such as web-*", "close the bracket"))
			}
		}

		if ignored.Kind.IsNull() && ignored.Name.IsNull() && ignored.Namespace.IsNull() && ignored.Paths.IsNull() {
			diags.Append(tf.Invalid(at, "ignore_drift", fmt.Sprintf("found nothing in ignore_drift[%d]", i),
				"allowed is at least one of kind, name, namespace and paths",
				"say what is ignored; drift_detection = \"release\" looks at no objects"))
		}

		if paths, known := tf.KnownStrings(ignored.Paths); known && !ignored.Paths.IsNull() &&
			(len(paths) == 0 || slices.Contains(paths, "")) {
			diags.Append(tf.Invalid(at, "ignore_drift", fmt.Sprintf("found empty paths in ignore_drift[%d]", i),
				"allowed are fields such as spec.replicas", "leave paths out for the whole object"))
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
		diags.Append(tf.Invalid(frameworkpath.Root("values_wo"), "values_wo", "found values_wo without values_wo_version",
			"allowed are both together: a plan cannot "+
				"see write-only values", "give values_wo_version, such as 1, and change it with the values"))
	}

	if m.ValuesWO.IsNull() && !m.ValuesWOVersion.IsNull() {
		diags.Append(tf.Invalid(frameworkpath.Root("values_wo_version"), "values_wo_version",
			"found values_wo_version without values_wo", "allowed are both together, or neither",
			"give values_wo, an empty list for none any more, or remove values_wo_version"))
	}

	if diags.HasError() {
		return diags
	}

	r := &tf.Reader{}
	if all := m.Given(ctx, r, m.ValuesWO); !r.Unknown {
		if _, _, err := values.Merge(all); err != nil {
			diags.Append(tf.Invalid(frameworkpath.Root("values"), "values", err.Error(), "allowed are values that fit together",
				"correct what is named"))
		}
	}

	return diags
}

// mistakeIn is the mistake in a document or setting that was merged alone, and so is always the first one of the
// error.
func mistakeIn(err error) string {
	var mistake *values.Error
	if !errors.As(err, &mistake) {
		return ": " + err.Error()
	}

	text := ""
	if mistake.Line > 0 {
		text = fmt.Sprintf(", line %d", mistake.Line)
	}

	return text + finding.Prefixed(", ", mistake.Name) + ": " + mistake.Reason
}

func (m addonModel) validateDocuments(name string, list types.List, given func(string) values.Given) diag.Diagnostics {
	var diags diag.Diagnostics

	for i, element := range list.Elements() {
		text, ok := element.(types.String)
		if !ok || text.IsUnknown() {
			continue
		}

		if _, _, err := values.Merge(given(text.ValueString())); err != nil {
			diags.Append(tf.Invalid(frameworkpath.Root(name).AtListIndex(i), name,
				fmt.Sprintf("found in %s[%d]%s", name, i, mistakeIn(err)),
				"allowed is a YAML mapping, such as image: {tag: v1}", "correct it; yamlencode() writes YAML, and file() reads it"))
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
		at, one := frameworkpath.Root(name).AtListIndex(i), fmt.Sprintf("%s[%d]", name, i)

		if known(s.Type) && !slices.Contains(settingTypes, s.Type.ValueString()) {
			diags.Append(tf.Invalid(at, name, fmt.Sprintf("found type %s in %s", finding.Quote(s.Type.ValueString()), one),
				"allowed are "+strings.Join(settingTypes, ", "), "leave it out for auto, which reads numbers as numbers"))

			continue
		}

		if n := utf8.RuneCountInString(s.Value.ValueString()); sensitive && n > 0 && n < shortestMask {
			diags.Append(tf.Questionable(at, m.called(one),
				fmt.Sprintf("found a text of fewer than %d characters", shortestMask),
				"So short a text cannot be told from any other, and plans, errors and logs show it where the chart puts it "+
					"outside of Secrets",
				"Use a longer one; what is not secret belongs in set"))
		}

		r := &tf.Reader{}

		setting := s.setting(r, sensitive)
		if r.Unknown || s.Name.IsNull() || s.Value.IsNull() {
			continue
		}

		if _, _, err := values.Merge(values.Given{Settings: []values.Setting{setting}}); err != nil {
			diags.Append(tf.Invalid(at, name, "found in "+one+mistakeIn(err),
				"allowed is a path such as image.tag with a value of its type", "correct the name, the value or the type"))
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

			diags.Append(tf.Invalid(frameworkpath.Root("patches").AtListIndex(i), "patches",
				fmt.Sprintf("found in patches[%d]: %s", i, err),
				"allowed is a strategic merge patch of one object, or JSON 6902 operations with a target", "correct it"))
		}
	}

	return diags
}
