package addon

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
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Spec is the release in plain values. secret are the write-only values, which only a configuration has. unknown is
// true when any part is unknown.
func (m addonModel) Spec(ctx context.Context, secret types.List) (spec release.Spec, unknown bool, err error) {
	r := &tf.Reader{Unknown: m.Name.IsUnknown() || m.Namespace.IsUnknown()}

	spec = release.Spec{Name: m.Release(), Patches: m.patches(ctx, r), Options: m.options(r)}
	spec.Options.CreateNamespace = r.Truth(m.CreateNamespace, true)
	given := m.Given(ctx, r, secret)

	if r.Unknown {
		return spec, true, nil
	}

	spec.Values, spec.Secrets, err = values.Merge(given)

	return spec, false, err
}

// Given are all inputs of the chart.
func (m addonValuesModel) Given(ctx context.Context, r *tf.Reader, secret types.List) values.Given {
	given := values.Given{Documents: r.Texts(m.Values), Secret: r.Texts(secret)}

	for _, s := range tf.Listed[settingModel](ctx, r, m.Set) {
		given.Settings = append(given.Settings, s.setting(r, false))
	}

	for _, s := range tf.Listed[settingModel](ctx, r, m.SetSensitive) {
		given.Settings = append(given.Settings, s.setting(r, true))
	}

	return given
}

func (s settingModel) setting(r *tf.Reader, sensitive bool) values.Setting {
	return values.Setting{
		Name: r.Text(s.Name), Value: r.Text(s.Value), Type: values.Type(cmp.Or(r.Text(s.Type), string(values.Auto))),
		Sensitive: sensitive,
	}
}

func (m addonValuesModel) patches(ctx context.Context, r *tf.Reader) []postrender.Patch {
	var patches []postrender.Patch

	for _, p := range tf.Listed[addonPatchModel](ctx, r, m.Patches) {
		patches = append(patches, p.patch(r))
	}

	return patches
}

func (p addonPatchModel) patch(r *tf.Reader) postrender.Patch {
	patch := postrender.Patch{Patch: r.Text(p.Patch)}
	r.Unknown = r.Unknown || p.Target.IsUnknown()

	if target := (tf.Fields{Reader: r, Attributes: p.Target}); !p.Target.IsNull() {
		patch.Target = &postrender.Target{
			Group: target.Text("group"), Version: target.Text("version"), Kind: target.Text("kind"), Name: target.Text("name"),
			Namespace: target.Text("namespace"), LabelSelector: target.Text("label_selector"),
			AnnotationSelector: target.Text("annotation_selector"),
		}
	}

	return patch
}

func (m addonOptionsModel) options(r *tf.Reader) release.Options {
	options := release.Options{
		Wait: r.Truth(m.Wait, true), WaitForJobs: r.Truth(m.WaitForJobs, false), Timeout: m.waitTimeout(r),
		RollbackOnFailure: r.Truth(m.Atomic, false),
		SkipCRDs:          r.Truth(m.SkipCRDs, false), UpgradeCRDs: r.Truth(m.UpgradeCRDs, false),
		IncludeCRDs:  r.Truth(m.IncludeCRDs, false),
		DisableHooks: r.Truth(m.DisableHooks, false), SkipSchemaValidation: r.Truth(m.SkipSchemaValidation, false),
		TakeOwnership: r.Truth(m.TakeOwnership, false), Force: r.Truth(m.Force, false),
		CleanupOnFail: r.Truth(m.CleanupOnFail, false), EnableDNS: r.Truth(m.EnableDNS, false),
		SubNotes:   r.Truth(m.SubNotes, false),
		MaxHistory: defaultMaxHistory, Description: r.Text(m.Description),
	}

	r.Unknown = r.Unknown || m.MaxHistory.IsUnknown()
	if !m.MaxHistory.IsNull() {
		options.MaxHistory = int(m.MaxHistory.ValueInt64())
	}

	switch {
	case r.Truth(m.ReuseValues, false):
		options.Reuse = release.ReuseValues
	case r.Truth(m.ResetThenReuseValues, false):
		options.Reuse = release.ReuseUserValues
	}

	return options
}

func (m addonOptionsModel) waitTimeout(r *tf.Reader) time.Duration {
	if m.Timeout.IsNull() {
		return 10 * time.Minute
	}

	return r.Duration(m.Timeout)
}

// source is the source of the chart. secret is registry of a configuration, which has the credentials that no plan
// has.
func (m addonChartModel) source(secret types.Object) (source chart.Source, unknown bool) {
	r := &tf.Reader{Unknown: m.Registry.IsUnknown() || secret.IsUnknown()}
	server, credentials := tf.Fields{Reader: r, Attributes: m.Registry}, tf.Fields{Reader: r, Attributes: secret}

	source = chart.Source{
		Chart: r.Text(m.Chart), Repository: r.Text(m.Repository), Version: r.Text(m.Version), Devel: r.Truth(m.Devel, false),
		Username: server.Text("username"), Password: credentials.Text("password_wo"),
		PassCredentials: server.Truth("pass_credentials", false),
		CA:              server.Text("ca"), ClientCertificate: server.Text("client_certificate"),
		ClientKey:             credentials.Text("client_key_wo"),
		InsecureSkipTLSVerify: server.Truth("insecure_skip_tls_verify", false), PlainHTTP: server.Truth("plain_http", false),
		UpdateDependencies: r.Truth(m.DependencyUpdate, false), Verify: r.Truth(m.Verify, false),
		Keyring: fromHome(r.Text(m.Keyring)),
	}

	return source, r.Unknown
}

// pathChart reports whether a chart is on this computer.
func pathChart(chart string) bool {
	return chart == "." || chart == ".." || strings.HasPrefix(chart, "./") || strings.HasPrefix(chart, "../") ||
		filepath.IsAbs(chart)
}

// fromHome is a path with the home folder for a leading ~, if there is one.
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
