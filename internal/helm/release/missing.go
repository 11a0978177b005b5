package release

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/client"
)

// missing tells a chart that fails for want of what another release may bring before the apply from one that fails
// whatever the cluster has: it is rendered once more as if there were the kinds that its files name, and the objects
// that its templates look up. A failure that is still the same has nothing to do with them. Where templates look up
// all objects of a kind, nobody knows which one they want.
func (c *Cluster) missing(
	ctx context.Context, s *client.Session, a *attempt, chart *chart.Package, have Observation, refused error,
) error {
	if listed := s.Listed(); len(listed) > 0 {
		return fmt.Errorf("%w, perhaps (%s): %w", ErrMissing, some(listed), refused)
	}

	caps := a.cfg.Capabilities
	if caps == nil {
		return refused
	}

	versions := slices.DeleteFunc(versionsIn(a.chart), caps.APIVersions.Has)
	wanted := append(versions, s.Missing()...)

	if len(wanted) == 0 {
		return refused
	}

	supposing, err := c.openSupposing(ctx, a.spec.Name, a.spec.Secrets.Redact)
	if err != nil {
		return err
	}
	defer supposing.Close()

	again, err := c.planned(ctx, supposing, a.spec, chart, have)
	if err != nil {
		return err
	}

	supposed := caps.Copy()
	supposed.APIVersions = slices.Concat(caps.APIVersions, chartutil.VersionSet(versions))
	again.cfg.Capabilities = supposed

	if err := again.run(); err != nil && !again.rendered.was &&
		again.rejection(ctx, err).Error() == refused.Error() {
		return refused
	}

	if ctx.Err() != nil {
		return context.Cause(ctx)
	}

	return fmt.Errorf("%w (%s): %w", ErrMissing, some(wanted), refused)
}

// some lists the first of what is missing.
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

// versionsIn are the versions of APIs that the templates and the default values of a chart name, but for those of
// Kubernetes itself, which no release brings.
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
