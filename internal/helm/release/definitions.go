package release

import (
	"bytes"
	"context"
	"fmt"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/client"
	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
	"github.com/talosop/terraform-provider-talosop/internal/tree"
)

const (
	// definitionKind is the kind of most of what is in the crds folder of charts.
	definitionKind = "CustomResourceDefinition"
	// definitionsBound is how long definitions may take to be established (Helm 3.21,
	// action/install.go, installCRDs).
	definitionsBound = time.Minute
)

// collect reads what the crds folders of a chart have, and of those dependencies that its values turn on
// (Helm 3.21, action/install.go, RunWithContext). That changes the chart, and Helm does it, too: the
// chart is one of its own.
func (a *attempt) collect(pkg *chart.Package) error {
	loaded, err := load(pkg)
	if err != nil {
		return err
	}

	given, err := a.given(loaded)
	if err != nil {
		return err
	}

	if err := chartutil.ProcessDependenciesWithMerge(loaded, given); err != nil {
		return fmt.Errorf("%w: %w", ErrTemplate, err)
	}

	for _, crd := range loaded.CRDObjects() {
		objects, err := diff.Parse(string(crd.File.Data), a.spec.Namespace)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrChart, crd.Filename, err)
		}

		a.crds = append(a.crds, objects...)
	}

	if a.spec.Options.IncludeCRDs {
		a.rendered.before, err = included(a.crds)
	}

	return err
}

// given are the values of a step. Where the spec reuses values, they include those of the revision before, with
// the defaults of its chart (Helm 3.21, action/upgrade.go, reuseValues).
func (a *attempt) given(to *helmchart.Chart) (map[string]any, error) {
	values := tree.CloneMap(a.spec.Values)
	if a.step != Upgrade || a.spec.Options.Reuse == ReuseNothing {
		return values, nil
	}

	from, err := a.cfg.Releases.Get(a.spec.Name.Name, a.from)
	if err != nil {
		return nil, fmt.Errorf("read revision %d of release %s: %w", a.from, a.spec.Name, err)
	}

	if a.spec.Options.Reuse == ReuseValues {
		if to.Values, err = chartutil.CoalesceValues(from.Chart, from.Config); err != nil {
			return nil, fmt.Errorf("read the values of revision %d of release %s: %w", a.from, a.spec.Name, err)
		}
	}

	return chartutil.CoalesceTables(values, from.Config), nil
}

// included is the crds folder as a part of the release. Helm's own option for that is of its
// installations alone: the next upgrade would delete all definitions, and every object of their
// kinds (Helm 3.21, action/upgrade.go, prepareUpgrade). They are kept whatever happens to the release.
func included(definitions []diff.Object) ([]byte, error) {
	var all bytes.Buffer

	for _, d := range definitions {
		text, err := yaml.Marshal(with(d.Content, nil, map[string]string{kube.ResourcePolicyAnno: kube.KeepPolicy}))
		if err != nil {
			return nil, err
		}

		fmt.Fprintf(&all, "---\n# Source: crds of the chart\n%s", text)
	}

	return all.Bytes(), nil
}

// with is an object with more labels and annotations.
func with(content map[string]any, labels, annotations map[string]string) map[string]any {
	object := (&unstructured.Unstructured{Object: content}).DeepCopy()

	object.SetLabels(joined(object.GetLabels(), labels))
	object.SetAnnotations(joined(object.GetAnnotations(), annotations))

	return object.Object
}

// ownedBy is an object with what Helm writes on those of a release (Helm 3.21, action/validate.go,
// setMetadataVisitor), and more annotations.
func ownedBy(release Name, content map[string]any, more map[string]string) map[string]any {
	return with(content, map[string]string{managedBy: managedByHelm},
		joined(more, map[string]string{client.ReleaseName: release.Name, client.ReleaseNamespace: release.Namespace}))
}

func joined(a, b map[string]string) map[string]string {
	if len(a)+len(b) == 0 {
		return nil
	}

	all := make(map[string]string, len(a)+len(b))
	for _, m := range []map[string]string{a, b} {
		for key, value := range m {
			all[key] = value
		}
	}

	return all
}

// define creates the definitions of the chart before its objects need them. As in Helm, an installation creates
// the missing ones. With UpgradeCRDs, and when they are part of the release, all are changed to match the chart,
// also in upgrades, except those of another release. None is ever deleted.
func (r *run) define(ctx context.Context, a *attempt) error {
	o := r.spec.Options
	all := o.IncludeCRDs || o.UpgradeCRDs && !o.SkipCRDs

	if len(a.crds) == 0 || !a.defines(a.step == Upgrade) {
		return nil
	}

	for _, d := range a.crds {
		if err := r.defineOne(ctx, d, all); err != nil {
			return err
		}
	}

	ctx, cancel := context.WithTimeoutCause(ctx, definitionsBound, fmt.Errorf("timed out after %s", definitionsBound))
	defer cancel()

	var names []string

	for _, d := range a.crds {
		if d.Kind == definitionKind {
			names = append(names, d.Name)
		}
	}

	return r.cluster.API.AwaitEstablished(ctx, names)
}

// defines reports whether the definitions of the chart are managed.
func (a *attempt) defines(upgrade bool) bool {
	o := a.spec.Options

	return o.IncludeCRDs || !o.SkipCRDs && (o.UpgradeCRDs || !upgrade)
}

func (r *run) defineOne(ctx context.Context, d diff.Object, evenIfThere bool) error {
	live, err := r.cluster.API.GetObject(ctx, referenceTo(d))
	if err != nil {
		return err
	}

	if live != nil && !evenIfThere {
		return nil
	}

	content := placed(d)

	switch owner, is := r.spec.elsewhere(live); {
	case is && r.spec.Options.IncludeCRDs:
		return owned(fmt.Sprintf("%s belongs to release %s", referenceTo(d), owner))
	case is:
		r.done("kept %s: it belongs to release %s", referenceTo(d), owner)

		return nil
	case r.spec.Options.IncludeCRDs:
		// Otherwise Helm refuses objects that exist before the release does.
		content = ownedBy(r.spec.Name, content, map[string]string{kube.ResourcePolicyAnno: kube.KeepPolicy})
	}

	if live == nil {
		r.recordCreated(d)
	}

	_, err = r.cluster.API.ApplyObject(ctx, content)

	return err
}

// placed is an object with the namespace that Helm would put it into.
func placed(o diff.Object) map[string]any {
	if o.Namespace == "" {
		return o.Content
	}

	object := (&unstructured.Unstructured{Object: o.Content}).DeepCopy()
	object.SetNamespace(o.Namespace)

	return object.Object
}

// elsewhere is the other release that an object of the crds folder belongs to, and that it is not
// taken from.
func (s Spec) elsewhere(live map[string]any) (owner Name, is bool) {
	owner, owned := ownerOf(live)

	return owner, owned && owner != s.Name && !s.Options.TakeOwnership
}
