// Package addon is the resource talosop_addon: one Helm release on one cluster.
package addon

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/helm/values"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// look refreshes the observations of a release. gone is true when nothing of it is left. A problem is a warning, and
// leaves the state unchanged.
func (r *addonResource) look(
	ctx context.Context, state *addonModel, applied *addonApplied,
) (gone bool, diags diag.Diagnostics) {
	seen, err := r.see(ctx, *state, *applied)
	if err != nil {
		return false, diag.Diagnostics{tf.Diagnostic(notSeen.With(
			finding.Args{"release": state.Release(), "causes": CauseLines(err.Error())}))}
	}

	if seen.gone {
		return true, diag.Diagnostics{tf.Diagnostic(releaseGone.With(finding.Args{"release": state.Release()}))}
	}

	state.Fill(seen.last)
	state.Drift, applied.Repair = tf.TextList(seen.drift), seen.repair

	if seen.unread != nil {
		diags.Append(tf.Diagnostic(partlyCompared.With(
			finding.Args{"release": state.Release(), "causes": CauseLines(seen.unread.Error())})))
	}

	switch {
	case unfinished(seen.last):
		diags.Append(tf.Diagnostic(releaseUnfinished.With(
			finding.Args{"release": state.Release(), "drift": seen.drift})))
	case len(seen.drift) > 0:
		diags.Append(tf.Diagnostic(releaseDrifted.With(
			finding.Args{"release": state.Release(), "drift": seen.drift})))
	}

	return false, diags
}

// addonSeen is the result of a refresh.
type addonSeen struct {
	gone bool
	last release.Revision
	// drift is how the release differs from the last apply, repair whether an apply with equal inputs has to repair
	// it.
	drift  []string
	repair bool
	// unread is why some objects could not be compared.
	unread error
}

// see observes a release, and changes nothing. An error means that nothing is known.
func (r *addonResource) see(ctx context.Context, state addonModel, applied addonApplied) (addonSeen, error) {
	ctx, cluster, err := state.reach(ctx, r.ProviderData, pki.ReadingAddons)
	if err != nil {
		return addonSeen{}, err
	}

	r.Ledger().Refreshed(cluster.Claim(state.Release()))

	have, err := cluster.Observe(ctx, state.Release())
	if err != nil {
		return addonSeen{}, err
	}

	last, exists := have.Last()

	switch {
	case !exists, last.Status == release.Uninstalled:
		return addonSeen{gone: true}, nil
	case last.Status == release.Unreadable:
		return addonSeen{}, fmt.Errorf("%w: revision %d", release.ErrUnreadable, last.Number)
	}

	seen := addonSeen{last: last}
	seen.drift, seen.repair, err = state.drift(ctx, cluster, have, applied)

	if errors.Is(err, api.ErrNoAnswer) || ctx.Err() != nil {
		return addonSeen{}, errors.Join(err, ctx.Err())
	}

	seen.unread = err

	return seen, nil
}

// drift compares a release with the last apply. repair is true when equal inputs would not repair it by themselves.
func (m addonModel) drift(
	ctx context.Context, cluster providerdata.ReleaseKeeper, have release.Observation, applied addonApplied,
) (drift []string, repair bool, err error) {
	last, _ := have.Last()

	secrets, err := m.hidden(ctx, last.Values)
	if err != nil {
		return nil, false, err
	}

	spec, _, err := m.Spec(ctx, types.ListNull(types.StringType))
	if err != nil {
		return nil, false, err
	}

	secrets = append(secrets, spec.Secrets...)

	drift = revisionDrift(last, applied)
	if unfinished(last) {
		return drift, false, nil
	}

	if chart := chartOf(last); applied.Chart != "" && chart != applied.Chart {
		drift, repair = append(drift, fmt.Sprintf("chart is %s instead of %s", chart, applied.Chart)), true
	}

	changed := m.otherValues(spec, last, applied, secrets)

	if last.Status != release.Deployed {
		return append(drift, changed...), repair || len(changed) > 0, nil
	}

	objects, err := cluster.Drift(ctx, last, m.driftOptions(ctx, secrets))

	return append(append(drift, changed...), objects...), repair || len(changed)+len(objects) > 0, err
}

// unfinished reports whether a revision is left over from an apply of talosop that failed or was killed.
func unfinished(last release.Revision) bool {
	return last.Inputs != "" && (last.Status == release.Failed || strings.HasPrefix(last.Status, "pending-"))
}

// revisionDrift says whether the newest revision differs from the one of the last apply. Helm's description of it
// may quote objects, and stays out of state.
func revisionDrift(last release.Revision, applied addonApplied) []string {
	other := last.Number != applied.Revision && applied.Revision != 0

	switch {
	case unfinished(last) && last.Status == release.Failed:
		return []string{fmt.Sprintf("the last apply failed: revision %d is failed (helm history says why)", last.Number)}
	case unfinished(last):
		return []string{fmt.Sprintf("the last apply is not finished: revision %d is %s, because it was interrupted or goes "+
			"on elsewhere", last.Number, last.Status)}
	case other && last.Status != release.Deployed:
		return []string{fmt.Sprintf("revision is %d instead of %d: it is %s (see helm history)", last.Number,
			applied.Revision, last.Status)}
	case other && takenBack(last, applied):
		return nil
	case other && last.Inputs != "":
		return []string{fmt.Sprintf("revision is %d instead of %d: an apply made it that this state does not know of",
			last.Number, applied.Revision)}
	case other:
		return []string{fmt.Sprintf("revision is %d instead of %d: it was not made by talosop (see helm history)",
			last.Number, applied.Revision)}
	case last.Status != release.Deployed:
		return []string{fmt.Sprintf("status is %s instead of %s", last.Status, release.Deployed)}
	default:
		return nil
	}
}

// takenBack reports whether a revision has the content of the last successful apply, or of the import: a later
// upgrade of talosop failed and was rolled back (atomic). Rollbacks of others carry no mark.
func takenBack(last release.Revision, applied addonApplied) bool {
	if applied.Inputs == "" {
		return last.Inputs == release.InputsOfAnother
	}

	return last.Inputs == applied.Inputs
}

// otherValues says how the values of a release differ from those applied. This is unknown when they include values
// of former revisions.
func (m addonModel) otherValues(
	spec release.Spec, last release.Revision, applied addonApplied, secrets values.Secrets,
) []string {
	if spec.Options.Reuse != release.ReuseNothing || applied.Inputs == "" &&
		(last.Number == applied.Revision || !m.ValuesWOVersion.IsNull()) {
		return nil
	}

	if m.ValuesWOVersion.IsNull() {
		lines := values.Differences(spec.Values, last.Values, secrets)
		for i := range lines {
			lines[i] = "values: " + lines[i]
		}

		return lines
	}

	// Write-only values are compared only by the mark.
	spec.Values = values.Restored(last.Values, spec.Values)
	if release.Inputs(spec, applied.Digest) != applied.Inputs {
		return []string{"values are not those that were applied"}
	}

	return nil
}

func (m addonModel) driftOptions(ctx context.Context, secrets values.Secrets) release.DriftOptions {
	r := &tf.Reader{}
	o := release.DriftOptions{Release: m.Release(), Depth: release.DepthObjects, Secrets: secrets}

	if depth := m.DriftDetection.ValueString(); depth != "" {
		o.Depth = release.Depth(depth)
	}

	for _, ignored := range tf.Listed[ignoreDriftModel](ctx, r, m.IgnoreDrift) {
		o.Ignore = append(o.Ignore, release.Ignore{
			Kind: r.Text(ignored.Kind), Name: r.Text(ignored.Name), Namespace: r.Text(ignored.Namespace),
			Paths: r.Texts(ignored.Paths),
		})
	}

	return o
}
