package provider

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/postrender"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/helm/values"
)

// spec is the release in plain values. secret are the write-only values, which only a
// configuration has. unknown is true when any of it is not known yet.
func (m addonModel) spec(ctx context.Context, secret types.List) (spec release.Spec, unknown bool, err error) {
	r := &reader{unknown: m.Name.IsUnknown() || m.Namespace.IsUnknown()}

	spec = release.Spec{Name: m.release(), Patches: m.patches(ctx, r), Options: m.options(r)}
	spec.Options.CreateNamespace = r.truth(m.CreateNamespace, true)
	given := m.given(ctx, r, secret)

	if r.unknown {
		return spec, true, nil
	}

	spec.Values, spec.Secrets, err = values.Merge(given)

	return spec, false, err
}

// given is all that the chart is given.
func (m addonValuesModel) given(ctx context.Context, r *reader, secret types.List) values.Given {
	given := values.Given{Documents: r.texts(m.Values), Secret: r.texts(secret)}

	for _, s := range listed[settingModel](ctx, r, m.Set) {
		given.Settings = append(given.Settings, s.setting(r, false))
	}

	for _, s := range listed[settingModel](ctx, r, m.SetSensitive) {
		given.Settings = append(given.Settings, s.setting(r, true))
	}

	return given
}

func (s settingModel) setting(r *reader, sensitive bool) values.Setting {
	return values.Setting{
		Name: r.text(s.Name), Value: r.text(s.Value), Type: values.Type(cmp.Or(r.text(s.Type), string(values.Auto))), Sensitive: sensitive,
	}
}

func (m addonValuesModel) patches(ctx context.Context, r *reader) []postrender.Patch {
	var patches []postrender.Patch

	for _, p := range listed[addonPatchModel](ctx, r, m.Patches) {
		patches = append(patches, p.patch(r))
	}

	return patches
}

func (p addonPatchModel) patch(r *reader) postrender.Patch {
	patch := postrender.Patch{Patch: r.text(p.Patch)}
	r.unknown = r.unknown || p.Target.IsUnknown()

	if target := (fields{r, p.Target}); !p.Target.IsNull() {
		patch.Target = &postrender.Target{
			Group: target.text("group"), Version: target.text("version"), Kind: target.text("kind"), Name: target.text("name"),
			Namespace: target.text("namespace"), LabelSelector: target.text("label_selector"), AnnotationSelector: target.text("annotation_selector"),
		}
	}

	return patch
}

func (m addonOptionsModel) options(r *reader) release.Options {
	options := release.Options{
		Wait: r.truth(m.Wait, true), WaitForJobs: r.truth(m.WaitForJobs, false), Timeout: m.patience(r), RollbackOnFailure: r.truth(m.Atomic, false),
		SkipCRDs: r.truth(m.SkipCRDs, false), UpgradeCRDs: r.truth(m.UpgradeCRDs, false), IncludeCRDs: r.truth(m.IncludeCRDs, false),
		DisableHooks: r.truth(m.DisableHooks, false), SkipSchemaValidation: r.truth(m.SkipSchemaValidation, false),
		TakeOwnership: r.truth(m.TakeOwnership, false), Force: r.truth(m.Force, false),
		CleanupOnFail: r.truth(m.CleanupOnFail, false), EnableDNS: r.truth(m.EnableDNS, false), SubNotes: r.truth(m.SubNotes, false),
		MaxHistory: defaultMaxHistory, Description: r.text(m.Description),
	}

	r.unknown = r.unknown || m.MaxHistory.IsUnknown()
	if !m.MaxHistory.IsNull() {
		options.MaxHistory = int(m.MaxHistory.ValueInt64())
	}

	switch {
	case r.truth(m.ReuseValues, false):
		options.Reuse = release.ReuseValues
	case r.truth(m.ResetThenReuseValues, false):
		options.Reuse = release.ReuseUserValues
	}

	return options
}

func (m addonOptionsModel) patience(r *reader) time.Duration {
	if m.Timeout.IsNull() {
		return 10 * time.Minute
	}

	return r.duration(m.Timeout)
}

// source is where the chart comes from. secret is registry of a configuration, which has the
// credentials that no plan has.
func (m addonChartModel) source(secret types.Object) (source chart.Source, unknown bool) {
	r := &reader{unknown: m.Registry.IsUnknown() || secret.IsUnknown()}
	server, credentials := fields{r, m.Registry}, fields{r, secret}

	source = chart.Source{
		Chart: r.text(m.Chart), Repository: r.text(m.Repository), Version: r.text(m.Version), Devel: r.truth(m.Devel, false),
		Username: server.text("username"), Password: credentials.text("password"), PassCredentials: server.truth("pass_credentials", false),
		CA: server.text("ca"), ClientCertificate: server.text("client_certificate"), ClientKey: credentials.text("client_key"),
		InsecureSkipTLSVerify: server.truth("insecure_skip_tls_verify", false), PlainHTTP: server.truth("plain_http", false),
		UpdateDependencies: r.truth(m.DependencyUpdate, false), Verify: r.truth(m.Verify, false), Keyring: fromHome(r.text(m.Keyring)),
	}

	return source, r.unknown
}

// pathChart is whether a chart is on this computer.
func pathChart(chart string) bool {
	return chart == "." || chart == ".." || strings.HasPrefix(chart, "./") || strings.HasPrefix(chart, "../") || filepath.IsAbs(chart)
}

// fromHome is a path with the home folder for a leading ~, where there is one.
func fromHome(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path
	}

	home, err := os.UserHomeDir()
	if err != nil {
		return path
	}

	return filepath.Join(home, rest)
}
