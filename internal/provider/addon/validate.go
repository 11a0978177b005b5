package addon

import (
	"context"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	frameworkpath "github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// longestRelease is the longest name of a release (Helm 3.21, chartutil/validate_name.go: Helm puts it in a label of
// Kubernetes, with room for what charts append).
const longestRelease = 53

// releaseName is a name of a release (Helm 3.21, chartutil/validate_name.go).
var releaseName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// validate checks the known part of a configuration.
func (m addonModel) validate(ctx context.Context) diag.Diagnostics {
	diags := m.validatePlace(ctx)

	diags.Append(m.validateNames()...)
	diags.Append(m.validateChart()...)
	diags.Append(m.validateVersion()...)
	diags.Append(m.validateRegistry()...)
	diags.Append(m.validateValues(ctx)...)
	diags.Append(m.validatePatches(ctx)...)
	diags.Append(m.validateOptions()...)
	diags.Append(m.validateIgnored(ctx)...)

	return diags
}

// known reports whether there is a value, and it is known.
func known(v types.String) bool { return !v.IsNull() && !v.IsUnknown() }

// label names this addon in warnings, by its chart while its name is unknown: Terraform shows only the first of several
// warnings with the same summary.
func (m addonModel) label() string {
	if known(m.Name) && !m.Namespace.IsUnknown() {
		return m.Release().String()
	}

	return "with chart " + m.chartText()
}

func (m addonModel) validatePlace(ctx context.Context) diag.Diagnostics {
	if m.Cluster.IsUnknown() || m.Kubeconfig.IsUnknown() {
		return nil
	}

	if m.Cluster.IsNull() == m.Kubeconfig.IsNull() {
		return diag.Diagnostics{tf.Diagnostic(clusterOrKubeconfig.At(
			finding.Root("cluster"), finding.Args{"both": !m.Cluster.IsNull()}))}
	}

	if m.Cluster.IsNull() {
		return m.validateKubeconfig()
	}

	handle, diags := clusterhandle.AccessFrom(ctx, m.Cluster)
	// Terraform points at whole arguments at most: a message about a nested one goes to the line of the resource.
	at := frameworkpath.Root("cluster")

	if secrets := handle.Secrets; known(secrets) {
		if _, err := pki.Parse([]byte(secrets.ValueString())); err != nil {
			diags.Append(tf.InvalidSecrets(at, err))
		}
	}

	if server, err := url.Parse(handle.Endpoint.ValueString()); known(handle.Endpoint) &&
		(err != nil || server.Scheme != "https" || server.Host == "") {
		diags.Append(tf.Diagnostic(invalidServer.At(tf.PathOf(at), finding.Args{"value": handle.Endpoint.ValueString()})))
	}

	clusterhandle.EndpointsOf(handle, &diags)

	return diags
}

func (m addonModel) validateKubeconfig() diag.Diagnostics {
	at := frameworkpath.Root("kubeconfig")
	path, _ := m.Kubeconfig.Attributes()["path"].(types.String)
	content, _ := m.Kubeconfig.Attributes()["content"].(types.String)
	cluster, _ := m.Kubeconfig.Attributes()["cluster"].(types.String)

	given := 0
	for _, source := range []types.String{path, content, cluster} {
		if !source.IsNull() {
			given++
		}
	}

	switch {
	case path.IsUnknown() || content.IsUnknown() || cluster.IsUnknown():
		return nil
	case given != 1:
		return diag.Diagnostics{tf.Diagnostic(oneKubeconfig.At(tf.PathOf(at), finding.Args{"count": given}))}
	case !cluster.IsNull():
		return nil
	case content.IsNull() && strings.TrimSpace(path.ValueString()) == "":
		return diag.Diagnostics{tf.Diagnostic(emptyKubeconfigPath.At(tf.PathOf(at), nil))}
	case content.IsNull():
		return nil
	}

	chosen, _ := m.Kubeconfig.Attributes()["context"].(types.String)
	if chosen.IsUnknown() {
		return nil
	}

	if _, err := (api.Kubeconfig{Content: []byte(content.ValueString()),
		Context: chosen.ValueString()}).Facts(); err != nil {
		return diag.Diagnostics{tf.Diagnostic(unusableKubeconfig.At(tf.PathOf(at), finding.Args{"cause": err.Error()}))}
	}

	return nil
}

func (m addonModel) validateNames() diag.Diagnostics {
	var diags diag.Diagnostics

	if name := m.Name.ValueString(); known(m.Name) && (!releaseName.MatchString(name) || len(name) > longestRelease) {
		diags.Append(tf.Diagnostic(invalidRelease.At(
			finding.Root("name"), finding.Args{"name": name, "limit": longestRelease})))
	}

	if namespace := m.Namespace.ValueString(); known(m.Namespace) &&
		(!tf.Label.MatchString(namespace) || len(namespace) > 63) {
		diags.Append(tf.Diagnostic(invalidNamespace.At(finding.Root("namespace"), finding.Args{"name": namespace})))
	}

	return diags
}

func (m addonModel) validateChart() diag.Diagnostics {
	if m.Chart.IsUnknown() || m.Repository.IsUnknown() {
		return nil
	}

	chart, repository := m.Chart.ValueString(), m.Repository.ValueString()
	at := frameworkpath.Root("chart")
	isURL := strings.Contains(chart, "://")

	switch {
	case strings.TrimSpace(chart) == "":
		return diag.Diagnostics{tf.Diagnostic(emptyChart.At(tf.PathOf(at), nil))}
	case !m.Repository.IsNull() && isURL:
		return diag.Diagnostics{tf.Diagnostic(chartWithRepository.At(
			tf.PathOf(at), finding.Args{"chart": chart, "url": true}))}
	case !m.Repository.IsNull() && pathChart(chart):
		return diag.Diagnostics{tf.Diagnostic(chartWithRepository.At(
			tf.PathOf(at), finding.Args{"chart": chart, "url": false}))}
	case !m.Repository.IsNull():
		return m.validateURL(frameworkpath.Root("repository"), repository)
	case isURL:
		return m.validateURL(at, chart)
	case !pathChart(chart):
		return diag.Diagnostics{tf.Diagnostic(chartWithoutRepository.At(tf.PathOf(at), finding.Args{"chart": chart}))}
	default:
		return nil
	}
}

func (m addonModel) validateURL(at frameworkpath.Path, text string) diag.Diagnostics {
	parsed, err := url.Parse(text)

	switch {
	case err != nil || parsed.Host == "" || !slices.Contains([]string{"https", "http", "oci"}, parsed.Scheme):
		return diag.Diagnostics{tf.Diagnostic(invalidURL.At(tf.PathOf(at), finding.Args{"url": text}))}
	case parsed.User != nil:
		return diag.Diagnostics{tf.Diagnostic(urlWithCredentials.At(tf.PathOf(at), nil))}
	case parsed.Scheme == "http":
		return diag.Diagnostics{tf.Diagnostic(urlWithoutTLS.At(tf.PathOf(at), finding.Args{"addon": m.label(), "url": text}))}
	case parsed.Scheme == "oci" && strings.Contains(path.Base(parsed.Path), ":"):
		return diag.Diagnostics{tf.Diagnostic(urlWithTag.At(tf.PathOf(at), finding.Args{"url": text}))}
	default:
		return nil
	}
}

func (m addonModel) validateVersion() diag.Diagnostics {
	at := frameworkpath.Root("version")

	if m.Version.IsUnknown() || m.Chart.IsUnknown() {
		return nil
	}

	if pathChart(m.Chart.ValueString()) {
		if m.Version.IsNull() {
			return nil
		}

		return diag.Diagnostics{tf.Diagnostic(versionUnused.At(
			tf.PathOf(at), finding.Args{"addon": m.label(), "version": m.Version.ValueString()}))}
	}

	if m.Version.IsNull() {
		return diag.Diagnostics{tf.Diagnostic(versionMissing.At(
			finding.Root("chart"), finding.Args{"addon": m.label(), "chart": m.chartText()}))}
	}

	if _, err := semver.NewConstraint(m.Version.ValueString()); err != nil {
		return diag.Diagnostics{tf.Diagnostic(invalidVersion.At(
			tf.PathOf(at), finding.Args{"version": m.Version.ValueString()}))}
	}

	if m.Devel.ValueBool() {
		if _, err := semver.NewVersion(m.Version.ValueString()); err == nil {
			return diag.Diagnostics{tf.Diagnostic(develUnused.At(
				finding.Root("devel"), finding.Args{"addon": m.label(), "version": m.Version.ValueString()}))}
		}
	}

	return nil
}

func (m addonModel) validateRegistry() diag.Diagnostics {
	if m.Registry.IsNull() || m.Registry.IsUnknown() {
		return nil
	}

	var diags diag.Diagnostics

	at, server := frameworkpath.Root("registry"), tf.Fields{Reader: &tf.Reader{}, Attributes: m.Registry}

	// Write-only values are null in plans, and known in configurations, which this validates.
	for _, pair := range [][2]string{{"username", "password_wo"}, {"client_certificate", "client_key_wo"}} {
		first, second := server.Absent(pair[0]), server.Absent(pair[1])
		if first == second {
			continue
		}

		found, missing := pair[0], pair[1]
		if first {
			found, missing = missing, found
		}

		diags.Append(tf.Diagnostic(halfCredentials.At(tf.PathOf(at), finding.Args{"found": found, "missing": missing})))
	}

	if !m.Chart.IsUnknown() && pathChart(m.Chart.ValueString()) && !m.DependencyUpdate.ValueBool() &&
		!m.DependencyUpdate.IsUnknown() {
		diags.Append(tf.Diagnostic(registryUnused.At(tf.PathOf(at), finding.Args{"addon": m.label()})))
	}

	if server.Truth("insecure_skip_tls_verify", false) && !server.Absent("ca") {
		diags.Append(tf.Diagnostic(insecureWithCA.At(tf.PathOf(at), nil)))
	}

	return diags
}
