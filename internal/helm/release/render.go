package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/kube"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/client"
	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
	"github.com/talosop/terraform-provider-talosop/internal/tree"
)

// Render shows what a chart becomes on the cluster: a dry run of the installation or upgrade that an apply would
// make. It changes nothing. It does not check objects of kinds that the cluster does not have: their definitions
// may come with the chart, or with an earlier one.
//
// The error is [ErrKubernetes], [ErrValues], [ErrChart], [ErrSchema], [ErrTemplate], [ErrType], [ErrPatch] or
// [ErrOwned] where that is certain. It is [ErrMissing] for a chart that asks for what the cluster does not have,
// and [ErrWithheld] for one that looks up a Secret that exists. Every other error may be transient.
func (c *Cluster) Render(ctx context.Context, spec Spec, chart *chart.Package, have Observation) (Rendering, error) {
	rendering, err := c.render(ctx, spec, chart, have)

	return rendering, redactError(err, spec.Secrets.Redact)
}

func (c *Cluster) render(
	ctx context.Context, spec Spec, chart *chart.Package, have Observation,
) (rendering Rendering, err error) {
	s, err := c.openForPlan(ctx, spec.Name, spec.Secrets.Redact)
	if err != nil {
		return Rendering{}, err
	}
	defer s.Close()

	err = s.Work(func() error {
		a, err := c.planned(ctx, s, spec, chart, have)
		if err != nil {
			return err
		}

		err = a.run()
		if secret := s.Withheld(); secret != "" {
			return fmt.Errorf("%w: %s", ErrWithheld, secret)
		}

		if err != nil {
			refused := (&run{cluster: c, spec: spec}).refused(ctx, a, have, err)
			if errors.Is(refused, ErrTemplate) {
				return a.missing(s, refused)
			}

			return refused
		}

		rendering, err = a.rendering()

		return err
	})

	return rendering, err
}

// planned is the dry run of what an apply would do.
func (c *Cluster) planned(
	ctx context.Context, s *client.Session, spec Spec, chart *chart.Package, have Observation,
) (*attempt, error) {
	a, err := newAttempt(spec, chart, s.Configuration())
	if err != nil {
		return nil, err
	}

	a.forecast(have)

	if err := a.collect(chart); err != nil {
		return nil, err
	}

	a.cfg.KubeClient = lenient{a.cfg.KubeClient}

	r := &run{cluster: c, spec: spec}
	a.rendered.check = func(objects []diff.Object) error { return r.blockingObjects(ctx, a, have, objects) }

	return a, r.definable(ctx, a)
}

// forecast chooses the dry run by what an apply would do in the end.
func (a *attempt) forecast(have Observation) {
	a.dry = true

	last, exists := have.Last()
	d := Decide(Wanted{Name: a.spec.Name, Held: true, Timeout: a.spec.Options.Timeout}, have, time.Now())

	switch {
	case !exists, d.Step == InstallOver:
		a.step = Install
	case d.Step == Upgrade, d.Step == Nothing:
		a.step, a.from = Upgrade, d.Revision
	default:
		// Helm renders no upgrade of a pending release; its inputs are all that can be known.
		a.step, a.from, a.asUpgrade = Install, last.Number, everDeployed(have)
	}
}

func (a *attempt) rendering() (Rendering, error) {
	objects, err := a.rendered.objects()
	if err != nil {
		return Rendering{}, err
	}

	hooks, err := hooksOf(a.release.Hooks, a.spec.Namespace)
	if err == nil {
		err = mistyped(hooks)
	}

	if err != nil {
		return Rendering{}, err
	}

	made := Rendering{Objects: objects, Hooks: hooks, AppVersion: a.chart.AppVersion(), Notes: a.release.Info.Notes}
	if !a.spec.Options.IncludeCRDs && a.defines(a.step == Upgrade || a.asUpgrade) {
		made.Definitions = a.crds
	}

	return made, nil
}

// beforehand are the objects of a release that an apply makes its own before Helm begins, and that are
// no conflict for a dry run.
func (a *attempt) beforehand() map[diff.Key]bool {
	all := map[diff.Key]bool{}

	if a.spec.Options.IncludeCRDs {
		for _, d := range a.crds {
			all[d.Key()] = true
		}
	}

	return all
}

// definable reports whether an apply may adopt the definitions.
func (r *run) definable(ctx context.Context, a *attempt) error {
	if !r.spec.Options.IncludeCRDs {
		return nil
	}

	return r.cluster.others(ctx, a.crds, func(live map[string]any) string {
		if owner, is := r.spec.elsewhere(live); is {
			return "belongs to release " + owner.String()
		}

		return ""
	})
}

// blockingObjects is the error about objects of others that an apply would be refused for, which are asked for side by
// side.
func (r *run) blockingObjects(ctx context.Context, a *attempt, have Observation, objects []diff.Object) error {
	// Helm looks for nothing when it renders an installation as an upgrade.
	if r.spec.Options.TakeOwnership || a.asUpgrade {
		return nil
	}

	if from, exists := have.revision(a.from); exists && a.step == Upgrade {
		both, _ := shared(objects, from.Objects)
		if err := r.cluster.ownershipLost(ctx, r.spec.Name, both); err != nil {
			return err
		}
	}

	return r.foreignObjects(ctx, a, have, objects)
}

// lenient is a client for dry runs, which takes objects of unknown kinds for none. It gives Helm no objects to look
// for, which it does one after the other: what blocks them was found before (blockingObjects).
type lenient struct{ kube.Interface }

// Build implements kube.Interface.
func (l lenient) Build(reader io.Reader, validate bool) (kube.ResourceList, error) {
	_, err := l.Interface.Build(reader, validate)
	if err != nil && onlyUnknownKinds(err) {
		err = nil
	}

	return kube.ResourceList{}, err
}

// onlyUnknownKinds descends into aggregates, which errors.As does not.
func onlyUnknownKinds(err error) bool {
	var many utilerrors.Aggregate
	if !errors.As(err, &many) {
		return unknownKind(err)
	}

	for _, one := range many.Errors() {
		if !onlyUnknownKinds(one) {
			return false
		}
	}

	return len(many.Errors()) > 0
}

// Check is what is certain of a chart and its values without a cluster and without rendering: [ErrChart], [ErrSchema],
// [ErrValues], unless values of a former revision are below them, and [ErrKubernetes] for a version that is known.
func Check(spec Spec, chart *chart.Package, kubernetesVersion string) error {
	return redactError(check(spec, chart, kubernetesVersion), spec.Secrets.Redact)
}

func check(spec Spec, chart *chart.Package, kubernetesVersion string) error {
	a, err := newAttempt(spec, chart, nil)
	if err != nil {
		return err
	}

	if err := a.collect(chart); err != nil {
		return err
	}

	// Schemas of dependencies that the values leave out do not count.
	if err := chartutil.ProcessDependenciesWithMerge(a.chart, tree.CloneMap(spec.Values)); err != nil {
		return fmt.Errorf("%w: %w", ErrTemplate, err)
	}

	if kubernetesVersion != "" {
		if err := a.incompatible(kubernetesVersion); err != nil {
			return err
		}
	}

	if spec.Options.Reuse != ReuseNothing {
		return nil
	}

	return a.invalid()
}

// RenderOffline shows what a chart becomes on a cluster of a version of Kubernetes that is not asked:
// it has the kinds that Helm knows, and nothing to look up. The errors are those of [Cluster.Render].
func RenderOffline(ctx context.Context, spec Spec, chart *chart.Package, kubernetesVersion string) (Rendering, error) {
	rendering, err := renderOffline(ctx, spec, chart, kubernetesVersion)

	return rendering, redactError(err, spec.Secrets.Redact)
}

func renderOffline(ctx context.Context, spec Spec, chart *chart.Package, kubernetesVersion string) (Rendering, error) {
	version, err := chartutil.ParseKubeVersion(kubernetesVersion)
	if err != nil {
		return Rendering{}, fmt.Errorf("parse the Kubernetes version %q: %w", kubernetesVersion, err)
	}

	a, err := newAttempt(spec, chart, &action.Configuration{Log: func(string, ...any) {}})
	if err != nil {
		return Rendering{}, err
	}

	a.step, a.dry = Install, true

	if err := a.collect(chart); err != nil {
		return Rendering{}, err
	}

	a.rendered.namespace = spec.Namespace

	i := a.offline(version)
	if a.release, err = i.Run(a.chart, tree.CloneMap(spec.Values)); err != nil {
		return Rendering{}, a.rejection(ctx, err)
	}

	return a.rendering()
}

// offline does what helm template does (Helm 3.21, cmd/helm/template.go).
func (a *attempt) offline(version *chartutil.KubeVersion) *action.Install {
	o, i := a.spec.Options, action.NewInstall(a.cfg)
	i.ReleaseName, i.Namespace, i.SkipCRDs = a.spec.Name.Name, a.spec.Namespace, true
	i.DryRun, i.ClientOnly, i.Replace, i.KubeVersion = true, true, true, version
	i.SubNotes, i.EnableDNS, i.SkipSchemaValidation = o.SubNotes, o.EnableDNS, o.SkipSchemaValidation
	i.PostRenderer = &a.rendered

	return i
}
