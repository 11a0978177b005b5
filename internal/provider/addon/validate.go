package addon

import (
	"context"
	"fmt"
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

// called names an argument of this addon, for warnings: Terraform shows only the first of several with the same
// summary.
func (m addonModel) called(argument string) string {
	if known(m.Name) && !m.Namespace.IsUnknown() {
		return argument + " of addon " + m.Release().String()
	}

	return argument + " of the addon with chart " + m.chartText()
}

func (m addonModel) validatePlace(ctx context.Context) diag.Diagnostics {
	if m.Cluster.IsUnknown() || m.Kubeconfig.IsUnknown() {
		return nil
	}

	if m.Cluster.IsNull() == m.Kubeconfig.IsNull() {
		found := "found both cluster and kubeconfig"
		if m.Cluster.IsNull() {
			found = "found neither cluster nor kubeconfig"
		}

		return diag.Diagnostics{tf.Invalid(frameworkpath.Root("cluster"), "cluster", found, "allowed is exactly one of them",
			"give the handle of a cluster, cluster = talosop_control_plane.….cluster, or a kubeconfig for a cluster without "+
				"one")}
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
		diags.Append(tf.Invalid(at, "cluster.endpoint", "found "+finding.Quote(handle.Endpoint.ValueString()),
			"allowed is an https URL, such as "+
				"https://10.0.0.10:6443", "give the URL of the Kubernetes API"))
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
		return diag.Diagnostics{tf.Invalid(at, "kubeconfig", fmt.Sprintf("found %d of path, content and cluster", given),
			"allowed is exactly one of them",
			"give the path of the file, what is in it, or the name of one of clusters of the provider that has it")}
	case !cluster.IsNull():
		return nil
	case content.IsNull() && strings.TrimSpace(path.ValueString()) == "":
		return diag.Diagnostics{tf.Invalid(at, "kubeconfig.path", "found an empty one", "allowed is the path of a file",
			"give it, such as ./kubeconfig")}
	case content.IsNull():
		return nil
	}

	chosen, _ := m.Kubeconfig.Attributes()["context"].(types.String)
	if chosen.IsUnknown() {
		return nil
	}

	if _, err := (api.Kubeconfig{Content: []byte(content.ValueString()),
		Context: chosen.ValueString()}).Facts(); err != nil {
		return diag.Diagnostics{tf.Invalid(at, "kubeconfig.content", "found that it cannot be used: "+err.Error(),
			"allowed is a whole kubeconfig",
			"give what is in the file; its path belongs in path")}
	}

	return nil
}

func (m addonModel) validateNames() diag.Diagnostics {
	var diags diag.Diagnostics

	if name := m.Name.ValueString(); known(m.Name) && (!releaseName.MatchString(name) || len(name) > longestRelease) {
		diags.Append(tf.Invalid(frameworkpath.Root("name"), "name", "found "+finding.Quote(name),
			fmt.Sprintf("allowed are 1 to %d lower-case letters, digits, hyphens and dots, with a letter or a digit at the ends",
				longestRelease), "choose such a name"))
	}

	if namespace := m.Namespace.ValueString(); known(m.Namespace) &&
		(!tf.Label.MatchString(namespace) || len(namespace) > 63) {
		diags.Append(tf.Invalid(frameworkpath.Root("namespace"), "namespace", "found "+finding.Quote(namespace),
			"allowed are 1 to 63 lower-case letters, digits and hyphens, and no hyphen at the ends", "choose such a name"))
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
		return diag.Diagnostics{tf.Invalid(at, "chart", "found an empty one",
			"allowed is the name of a chart, an oci:// reference, a URL or a path", "name the chart")}
	case !m.Repository.IsNull() && isURL:
		return diag.Diagnostics{tf.Invalid(at, "chart", "found "+finding.Quote(chart)+" beside repository",
			"allowed is the name of a chart in it, or a URL without repository",
			"remove repository, or the URL from chart")}
	case !m.Repository.IsNull() && pathChart(chart):
		return diag.Diagnostics{tf.Invalid(at, "chart", "found the path "+finding.Quote(chart)+" beside repository",
			"allowed is the name of a chart in it, or a path without "+
				"repository", "remove repository to take the chart from the path")}
	case !m.Repository.IsNull():
		return m.validateURL(frameworkpath.Root("repository"), "repository", repository)
	case isURL:
		return m.validateURL(at, "chart", chart)
	case !pathChart(chart):
		return diag.Diagnostics{tf.Invalid(at, "chart", "found "+finding.Quote(chart)+" without repository",
			"allowed is a name with repository, an oci:// reference, an https:// "+
				"URL, or a path that begins with ./, ../ or /", "give the repository; or, for a folder, write ./"+chart)}
	default:
		return nil
	}
}

func (m addonModel) validateURL(at frameworkpath.Path, what, text string) diag.Diagnostics {
	parsed, err := url.Parse(text)

	switch {
	case err != nil || parsed.Host == "" || !slices.Contains([]string{"https", "http", "oci"}, parsed.Scheme):
		return diag.Diagnostics{tf.Invalid(at, what, "found "+finding.Quote(text),
			"allowed is a URL that begins with https:// or oci://", "copy it from the page of the chart")}
	case parsed.User != nil:
		return diag.Diagnostics{tf.Invalid(at, what, "found a URL with credentials in it",
			"allowed is one without, because URLs are shown and stored",
			"give them as registry.username and registry.password_wo")}
	case parsed.Scheme == "http":
		return diag.Diagnostics{tf.Questionable(at, m.called(what), "found "+finding.Quote(text),
			"Without TLS, a machine in between can serve another chart, and read credentials", "Use https://")}
	case parsed.Scheme == "oci" && strings.Contains(path.Base(parsed.Path), ":"):
		return diag.Diagnostics{tf.Invalid(at, what, "found "+finding.Quote(text)+" with a tag",
			"allowed is a reference without one", "give the tag as version")}
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

		return diag.Diagnostics{tf.Questionable(at, m.called("version"),
			"found "+finding.Quote(m.Version.ValueString())+" for a chart on this computer",
			"A chart on this computer has one version, and this one counts for nothing", "Remove version")}
	}

	if m.Version.IsNull() {
		return diag.Diagnostics{tf.Questionable(frameworkpath.Root("chart"), m.called("version"),
			"found none for chart "+finding.Quote(m.chartText()),
			"Every plan takes the newest version that there is, so that an addon may be upgraded unintentionally",
			"Pin a version")}
	}

	if _, err := semver.NewConstraint(m.Version.ValueString()); err != nil {
		return diag.Diagnostics{tf.Invalid(at, "version", "found "+finding.Quote(m.Version.ValueString()),
			"allowed is a version such as 1.18.2, or a range such as ~1.18 or "+
				">= 1.2, < 2", "write it as the repository lists it")}
	}

	if m.Devel.ValueBool() {
		if _, err := semver.NewVersion(m.Version.ValueString()); err == nil {
			return diag.Diagnostics{tf.Questionable(frameworkpath.Root("devel"), m.called("devel"),
				"found it with the exact version "+finding.Quote(m.Version.ValueString()),
				"An exact version is what it is, and devel counts for nothing", "Remove devel")}
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

		diags.Append(tf.Invalid(at, "registry", "found registry."+found+" without registry."+missing,
			"allowed are both together, or neither",
			"give registry."+missing+", too"))
	}

	if !m.Chart.IsUnknown() && pathChart(m.Chart.ValueString()) && !m.DependencyUpdate.ValueBool() &&
		!m.DependencyUpdate.IsUnknown() {
		diags.Append(tf.Questionable(at, m.called("registry"), "found it for a chart on this computer",
			"No registry is asked for such a chart, and it counts for nothing", "Remove registry"))
	}

	if server.Truth("insecure_skip_tls_verify", false) && !server.Absent("ca") {
		diags.Append(tf.Invalid(at, "registry", "found registry.insecure_skip_tls_verify beside registry.ca",
			"allowed is one of them",
			"remove registry.insecure_skip_tls_verify: with ca the server's certificate can be verified"))
	}

	return diags
}
