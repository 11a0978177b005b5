package providerdata

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/preflight"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Problems that prevent machines on a host cluster are found in advance: by a plan, as far as it knows the host, and
// again by the apply.

// PreflightError is what prevents the machines.
type PreflightError struct{ Findings []preflight.Finding }

func (e *PreflightError) Error() string {
	var lines []string
	for _, f := range e.Findings {
		lines = append(lines, f.String())
	}

	return strings.Join(lines, "\n")
}

// CheckHost asks the host; it only logs uncertain findings, because the plan has reported them.
func CheckHost(ctx context.Context, on containers.Host, wanted workload.Spec) error {
	found, err := on.Check(ctx, wanted)
	if err != nil {
		return &HostSilentError{Err: err}
	}

	var decisive []preflight.Finding

	for _, f := range found {
		if f.Warning {
			tf.LogWarn(ctx, "found on the host cluster", map[string]any{"finding": f.String()})
		} else {
			decisive = append(decisive, f)
		}
	}

	if len(decisive) > 0 {
		return &PreflightError{decisive}
	}

	return nil
}

// FindingDiagnostics shows findings at their attributes.
func FindingDiagnostics(p machineset.Set, findings []preflight.Finding) finding.List {
	var diags finding.List

	for _, f := range findings {
		at, args := p.FindingPath(f.Attribute), argsOf(p, f)

		if f.Warning {
			diags.Append(hostProblem.At(at, args))
		} else {
			diags.Append(hostUnsuitable.At(at, args))
		}
	}

	return diags
}

func argsOf(p machineset.Set, f preflight.Finding) finding.Args {
	return finding.Args{"cluster": nameOf(p), "problem": f.Found, "solution": f.Help}
}

// nameOf names a cluster, or its resource while the name is unknown.
func nameOf(p machineset.Set) string { return cmp.Or(p.Settings.Name, p.Object) }

// forecastPreflight shows findings of a plan. What another resource of the same apply may still repair must not
// block the plan.
func forecastPreflight(p machineset.Set, findings []preflight.Finding) finding.List {
	var diags finding.List

	for _, f := range findings {
		if f.Pending && !f.Warning {
			diags.Append(hostProblemPending.At(p.FindingPath(f.Attribute), argsOf(p, f)))
		} else {
			diags.Append(FindingDiagnostics(p, []preflight.Finding{f})...)
		}
	}

	return diags
}

// Preview checks at plan time whether the planned machines can be created, and read again. It refuses a plan without
// a connection to the host cluster in provider or resource. A host that does not answer is only a warning: it may
// exist by the time of the apply.
func (m *ProviderData) Preview(ctx context.Context, p machineset.Set, makes bool) finding.List {
	if p.Host == nil {
		return nil
	}

	host := m.Host.Under(p.Host.Connection)

	switch {
	case !host.Unknown && !host.Given() && !p.Host.Missing:
		return finding.List{noHostConnection.At(finding.Root("host"), finding.Args{"cluster": nameOf(p)})}
	case !makes:
		return nil
	}

	diags := m.warnOfHostAway(p)
	if p.Unknown.Has(machineset.UnknownConfiguration) || host.Unknown || !host.Given() {
		return diags
	}

	return append(diags, m.tryOut(ctx, p)...)
}

// tryOut asks the host.
func (m *ProviderData) tryOut(ctx context.Context, p machineset.Set) finding.List {
	var found []preflight.Finding

	err := m.whilePlanning(ctx, p, func(ctx context.Context, route *HostRoute) (err error) {
		found, err = route.Host.Check(ctx, route.Spec)

		return err
	})
	if err != nil {
		return finding.List{hostUnknown(p, err)}
	}

	return forecastPreflight(p, found)
}

// whilePlanning asks the host within the time limit of a plan.
func (m *ProviderData) whilePlanning(
	ctx context.Context, p machineset.Set, ask func(ctx context.Context, route *HostRoute) error,
) error {
	mark := ""

	if !p.Unknown.Has(machineset.UnknownSecrets) {
		bundle, err := pki.Parse([]byte(p.Secrets))
		if err != nil {
			return nil // the attribute itself has the error
		}

		mark = bundle.Mark()
	}

	ctx, cancel := context.WithTimeout(ctx, m.PlanTimeout)
	defer cancel()

	route, err := m.throughHost(ctx, p, machineset.PriorState{}, mark)
	if err != nil {
		return err
	}

	defer route.Leave()

	return ask(ctx, route)
}

// RefuseOtherHost refuses a plan that leads to another host cluster than the recorded one. A host that does not
// answer may be the right one.
func (m *ProviderData) RefuseOtherHost(ctx context.Context, p machineset.Set) finding.List {
	if m == nil || p.RecordedHost().UID == "" || p.Unknown.Has(machineset.UnknownAddresses) {
		return nil
	}

	if route := m.Host.Under(p.Host.Connection); route.Unknown || !route.Given() {
		return nil
	}

	var other *containers.OtherHostError

	if err := m.whilePlanning(ctx, p, func(ctx context.Context, route *HostRoute) error {
		_, err := route.Host.Identity(ctx)

		return err
	}); errors.As(err, &other) {
		return finding.List{OtherHost(p, "change", other)}
	}

	return nil
}

// OtherHost is the error of an operation whose connection leads to another host cluster than the recorded one.
func OtherHost(p machineset.Set, verb string, other *containers.OtherHostError) finding.Finding {
	return wrongHostCluster.With(finding.Args{"verb": verb, "cluster": nameOf(p), "machines": p.Names(),
		"recorded": other.Recorded, "found": other.Found})
}

// hostUnknown warns that a plan could not read the host.
func hostUnknown(p machineset.Set, err error) finding.Finding {
	return hostNotChecked.With(finding.Args{"cluster": nameOf(p), "cause": err.Error()})
}

// HostSilentError says that the host cluster did not answer, which proves nothing about the machines.
type HostSilentError struct{ Err error }

func (e *HostSilentError) Error() string { return containers.HostSilent(e.Err) }

func (e *HostSilentError) Unwrap() error { return e.Err }
