package release

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	helmpostrender "helm.sh/helm/v3/pkg/postrender"
	helmrelease "helm.sh/helm/v3/pkg/release"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/client"
	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
	"github.com/talosop/terraform-provider-talosop/internal/helm/postrender"
	"github.com/talosop/terraform-provider-talosop/internal/tree"
)

// attempt is one run of Helm's install or upgrade.
type attempt struct {
	spec Spec
	step Step
	// from is the revision at the start of an upgrade or below an installation.
	from  int
	chart *helmchart.Chart
	crds  []diff.Object
	cfg   *action.Configuration
	marks *marking
	// dry runs change nothing. asUpgrade renders an installation as an upgrade, then.
	dry, asUpgrade bool
	rendered       rendered
	// before are the objects that were there before an installation, and that its removal removes.
	before  []string
	release *helmrelease.Release
}

// attempt prepares a step; nothing is asked yet.
func (r *run) attempt(s *client.Session, d Decision, have Observation) (*attempt, error) {
	a, err := newAttempt(r.spec, r.chart, s.Configuration())
	if err != nil {
		return nil, err
	}

	a.step, a.from = d.Step, d.Revision
	if err := a.collect(r.chart); err != nil {
		return nil, err
	}

	a.marks = &marking{Driver: a.cfg.Releases.Driver, inputs: r.want.Inputs}
	a.marks.expect(r.spec.Name, d.Step, have, r.spec.Options.MaxHistory)
	a.cfg.Releases.Driver = a.marks
	a.cfg.KubeClient, err = newMerging(a.cfg.KubeClient, have)

	return a, err
}

func newAttempt(spec Spec, pkg *chart.Package, cfg *action.Configuration) (*attempt, error) {
	loaded, err := load(pkg)
	if err != nil {
		return nil, err
	}

	if !spec.Options.SkipSchemaValidation {
		if err := wholeSchemas(loaded); err != nil {
			return nil, err
		}
	}

	a := &attempt{spec: spec, chart: loaded, cfg: cfg}
	a.rendered.patches = postrender.New(spec.Patches).In(spec.Namespace)

	return a, nil
}

func load(pkg *chart.Package) (*helmchart.Chart, error) {
	loaded, err := pkg.Chart()
	if err != nil {
		return nil, fmt.Errorf("load chart %s %s: %w", pkg.Name, pkg.Version, err)
	}

	return loaded, nil
}

func (a *attempt) verb() string {
	if a.step == Upgrade {
		return "upgrade"
	}

	return "install"
}

func (a *attempt) noun() string {
	if a.step == Upgrade {
		return "upgrade"
	}

	return "installation"
}

// run calls Helm. What it was given is changed by that, so it runs once.
func (a *attempt) run() (err error) {
	a.rendered.namespace = a.spec.Namespace

	if a.step == Upgrade {
		a.release, err = a.upgrade().Run(a.spec.Name.Name, a.chart, tree.CloneMap(a.spec.Values))
	} else {
		a.release, err = a.install().Run(a.chart, tree.CloneMap(a.spec.Values))
	}

	return err
}

// install is Helm's action. It does not handle the definitions of the chart: Helm takes a file of them for
// installed when one of them is (Helm 3.21, action/install.go, installCRDs).
//
// It never turns off OpenAPI validation, here or in an upgrade. The API server validates, and the session's client
// does not (package client, factory.Validator). Manifests without validation may have kinds that the cluster no longer
// has (package client, client.Build), which is for those of earlier revisions.
func (a *attempt) install() *action.Install {
	o, i := a.spec.Options, action.NewInstall(a.cfg)
	i.ReleaseName, i.Namespace, i.Replace = a.spec.Name.Name, a.spec.Namespace, a.step == InstallOver
	i.Wait, i.WaitForJobs, i.Timeout, i.DisableHooks = o.Wait, o.WaitForJobs, o.timeout(), o.DisableHooks
	i.SkipCRDs, i.SubNotes, i.EnableDNS, i.Description = true, o.SubNotes, o.EnableDNS, o.Description
	i.SkipSchemaValidation = o.SkipSchemaValidation
	i.TakeOwnership, i.Force = o.TakeOwnership, o.Force
	i.PostRenderer = &a.rendered

	if a.dry {
		i.DryRun, i.DryRunOption, i.IsUpgrade = true, "server", a.asUpgrade
	}

	// Helm's install has no setting for it.
	a.cfg.Releases.MaxHistory = o.MaxHistory

	return i
}

func (a *attempt) upgrade() *action.Upgrade {
	o, u := a.spec.Options, action.NewUpgrade(a.cfg)
	u.Namespace, u.MaxHistory, u.Description = a.spec.Namespace, o.MaxHistory, o.Description
	u.Wait, u.WaitForJobs, u.Timeout, u.DisableHooks = o.Wait, o.WaitForJobs, o.timeout(), o.DisableHooks
	u.SkipCRDs, u.SubNotes, u.EnableDNS = true, o.SubNotes, o.EnableDNS
	u.SkipSchemaValidation = o.SkipSchemaValidation
	u.TakeOwnership, u.Force, u.CleanupOnFail = o.TakeOwnership, o.Force, o.CleanupOnFail
	// Without any of them an upgrade without values silently keeps the old ones (Helm 3.21,
	// action/upgrade.go, reuseValues).
	u.ResetValues, u.ReuseValues, u.ResetThenReuseValues = o.Reuse == ReuseNothing, o.Reuse == ReuseValues,
		o.Reuse == ReuseUserValues
	u.PostRenderer = &a.rendered

	if a.dry {
		u.DryRun, u.DryRunOption = true, "server"
	}

	return u
}

// rendered is the post-renderer of every attempt. It records the rendered manifest, which Helm does not return
// when it stops after that.
type rendered struct {
	// before precedes what the chart rendered.
	before    []byte
	patches   helmpostrender.PostRenderer
	namespace string
	// check sees the objects before Helm does; nil for nothing.
	check func([]diff.Object) error
	// was is set when the chart was rendered, refusal is what the patches or the check found.
	was      bool
	refusal  error
	manifest string
}

// Run implements postrender.PostRenderer.
func (r *rendered) Run(in *bytes.Buffer) (*bytes.Buffer, error) {
	r.was = true

	out, err := r.patches.Run(bytes.NewBuffer(append(bytes.Clone(r.before), in.Bytes()...)))
	if err != nil {
		r.refusal = fmt.Errorf("%w: %w", ErrPatch, err)

		return nil, r.refusal
	}

	r.manifest = out.String()

	objects, err := r.objects()
	if err != nil {
		return nil, err
	}

	r.refusal = mistyped(objects)
	if r.refusal == nil && r.check != nil {
		r.refusal = r.check(objects)
	}

	if r.refusal != nil {
		return nil, r.refusal
	}

	return out, nil
}

func (r *rendered) objects() ([]diff.Object, error) {
	return diff.Parse(r.manifest, r.namespace)
}

// hooksOf are the objects of a release's hooks.
func hooksOf(hooks []*helmrelease.Hook, namespace string) ([]diff.Object, error) {
	var all []diff.Object

	for _, h := range hooks {
		objects, err := diff.Parse(h.Manifest, namespace)
		if err != nil {
			return nil, fmt.Errorf("read hook %s: %w", h.Path, err)
		}

		all = append(all, objects...)
	}

	return all, nil
}

// rejection returns why Helm did not even begin. Helm reports that only as text, so rejection repeats Helm's
// checks in order (Helm 3.21, action/install.go, RunWithContext).
func (a *attempt) rejection(ctx context.Context, err error) error {
	caps := a.cfg.Capabilities

	switch {
	case a.rendered.refusal != nil:
		return a.rendered.refusal
	case a.rendered.was, caps == nil, ctx.Err() != nil:
		return fmt.Errorf("%s release %s: %w", a.verb(), a.spec.Name, err)
	}

	if unsuited := cmp.Or(a.incompatible(caps.KubeVersion.String()), a.invalid()); unsuited != nil {
		return unsuited
	}

	return fmt.Errorf("%w: %w", ErrTemplate, err)
}

// incompatible is that the chart is for other versions of Kubernetes.
func (a *attempt) incompatible(version string) error {
	wanted := a.chart.Metadata.KubeVersion
	if wanted == "" || chartutil.IsCompatibleRange(wanted, version) {
		return nil
	}

	return fmt.Errorf("%w: %s %s is for %s, and the cluster runs %s",
		ErrKubernetes, a.chart.Name(), a.chart.Metadata.Version, wanted, version)
}

// invalid returns what the schema of the chart reports about the values.
func (a *attempt) invalid() error {
	if a.spec.Options.SkipSchemaValidation {
		return nil
	}

	merged, err := chartutil.CoalesceValues(a.chart, tree.CloneMap(a.spec.Values))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrValues, err)
	}

	if err := chartutil.ValidateAgainstSchema(a.chart, merged); err != nil {
		return fmt.Errorf("%w: %s", ErrValues, schemaText(err.Error(), a.chart.Name()))
	}

	return nil
}

// schemaText makes one line of Helm's report about values: the name of the chart on its own line, a list, and the
// same for each dependency (Helm 3.21, chartutil/jsonschema.go, ValidateAgainstSchema). Long reports are cut: a
// schema may quote itself.
func schemaText(text, chart string) string {
	var (
		found []string
		of    string
	)

	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		item, isItem := strings.CutPrefix(line, "- ")

		switch name, isName := strings.CutSuffix(line, ":"); {
		case line == "":
		case isItem || !isName:
			found = append(found, of+item)
		case name == chart:
			of = ""
		default:
			of = "dependency " + name + ": "
		}
	}

	for i := range found {
		if runes := []rune(found[i]); len(runes) > longestFinding {
			found[i] = string(runes[:longestFinding]) + "…"
		}
	}

	if more := len(found) - mostFindings; more > 0 {
		found = append(found[:mostFindings], fmt.Sprintf("… and %d more", more))
	}

	return strings.Join(found, "; ")
}

// Limits for the part of a schema error that is shown.
const (
	mostFindings   = 10
	longestFinding = 300
)
