package release

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/talosop/terraform-provider-talosop/internal/helm/client"
)

// missing adds to the failure of a template what the chart asks for, the cluster lacks, and another release may
// create before the apply. Only the apply knows whether that fixes the failure.
func (a *attempt) missing(s *client.Session, refused error) error {
	wanted := s.Missing()

	if caps := a.cfg.Capabilities; caps != nil && asksForVersions(a.chart) {
		wanted = append(slices.DeleteFunc(versionsIn(a.chart), caps.APIVersions.Has), wanted...)
	}

	if len(wanted) == 0 {
		return refused
	}

	return fmt.Errorf("%w (%s): %w", ErrMissing, some(wanted), refused)
}

// some lists the first missing names.
func some(names []string) string {
	const most = 5

	if more := len(names) - most; more > 0 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("%d more", more))
	}

	return strings.Join(names, ", ")
}

// apiVersion finds versions of APIs, some of them with a kind, that are of groups with a dot in their names: those of
// definitions always have one.
var apiVersion = regexp.MustCompile(
	`\b[a-z0-9][a-z0-9-]*(?:\.[a-z0-9][a-z0-9-]*)+/v[0-9]+(?:(?:alpha|beta)[0-9]+)?(?:/[A-Z][A-Za-z0-9]*)?\b`)

// asksForVersions is whether a template asks which versions of APIs there are (.Capabilities.APIVersions). Which ones
// Helm does not tell, and dependencies share their templates.
func asksForVersions(chart *helmchart.Chart) bool {
	return slices.ContainsFunc(chart.Templates, func(file *helmchart.File) bool {
		return bytes.Contains(file.Data, []byte("APIVersions"))
	}) || slices.ContainsFunc(chart.Dependencies(), asksForVersions)
}

// versionsIn are the API versions that the templates and the default values of a chart name, except those of
// Kubernetes itself, which no release creates.
func versionsIn(chart *helmchart.Chart) []string {
	var found []string

	for _, file := range chart.Raw {
		if file.Name != chartutil.ValuesfileName && !strings.HasPrefix(file.Name, chartutil.TemplatesDir+"/") {
			continue
		}

		for _, version := range apiVersion.FindAllString(string(file.Data), -1) {
			parts := strings.Split(version, "/")
			if !scheme.Scheme.IsGroupRegistered(parts[0]) {
				found = append(found, version, parts[0]+"/"+parts[1])
			}
		}
	}

	for _, dependency := range chart.Dependencies() {
		found = append(found, versionsIn(dependency)...)
	}

	slices.Sort(found)

	return slices.Compact(found)
}
