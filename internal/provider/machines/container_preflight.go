package machines

import (
	"context"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/preflight"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// What would keep machines from being made on a host cluster is found before anything is: by a plan, as far as it knows the
// host, and again by the apply.

// preflightError is what stands in the way.
type preflightError struct{ findings []preflight.Finding }

func (e *preflightError) Error() string {
	var lines []string
	for _, f := range e.findings {
		lines = append(lines, f.String())
	}

	return strings.Join(lines, "\n")
}

// checkHost asks the host; what may be fine all the same is logged only, because the plan has said it.
func checkHost(ctx context.Context, on containers.Host, wanted workload.Spec) error {
	found, err := on.Check(ctx, wanted)
	if err != nil {
		return &hostSilentError{err}
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
		return &preflightError{decisive}
	}

	return nil
}

// findingDiagnostics shows findings at the attributes that they are about.
func findingDiagnostics(p MachineSet, findings []preflight.Finding) finding.List {
	var diags finding.List

	for _, f := range findings {
		at := p.findingPath(f.Attribute)

		if f.Warning {
			diags.Append(finding.Doubtful(at, "host cluster", f.Found, f.Help, ""))
		} else {
			diags.Append(finding.Refused(at, "Unsuitable host cluster", f.Found, f.Help, "Nothing was made"))
		}
	}

	return diags
}

// forecastPreflight shows findings of a plan. What another resource of the same apply may put right must not keep anybody from planning it.
func forecastPreflight(p MachineSet, findings []preflight.Finding) finding.List {
	var diags finding.List

	for _, f := range findings {
		if f.Pending && !f.Warning {
			diags.Append(finding.Doubtful(p.findingPath(f.Attribute), "host cluster", f.Found, "The apply fails before it makes anything when it is still so by then; "+
				"where another resource of this configuration puts it right, name that resource in depends_on", "Otherwise: "+f.Help))
		} else {
			diags.Append(findingDiagnostics(p, []preflight.Finding{f})...)
		}
	}

	return diags
}

// findingPath is where an attribute below host is said. Of resources that join a cluster it is in the handle, which
// is none of their own attributes.
func (p MachineSet) findingPath(attribute string) finding.Path {
	at := finding.Root("host")
	if p.inHandle {
		at = finding.Root("cluster").AtName("host")
	}

	switch {
	case attribute == "pod_cidrs", attribute == "service_cidrs":
		return finding.Root(attribute)
	case p.inHandle && strings.HasPrefix(attribute, "pod"):
		return finding.Root("pod")
	case attribute == "":
		return at
	}

	for _, name := range strings.Split(attribute, ".") {
		at = at.AtName(name)
	}

	return at
}

// preview looks at plan time whether the machines that are to be made can be, and read again. A host that does not answer is no more
// than a warning: it may be there by the time of the apply.
func (m *ProviderData) preview(ctx context.Context, p MachineSet, makes bool) finding.List {
	if p.Host == nil || !makes {
		return nil
	}

	diags := m.warnOfHostAway(p)

	if p.unnamed || p.Unknown || m.Host.Under(p.Host.connection).Unknown || !m.Host.Under(p.Host.connection).Given() {
		return diags
	}

	return append(diags, m.tryOut(ctx, p)...)
}

// tryOut asks the host.
func (m *ProviderData) tryOut(ctx context.Context, p MachineSet) finding.List {
	mark := ""

	if !p.sealed {
		bundle, err := pki.Parse([]byte(p.Secrets))
		if err != nil {
			return nil // which is said at the attribute itself
		}

		mark = bundle.Mark()
	}

	ctx, cancel := context.WithTimeout(ctx, m.PlanTimeout)
	defer cancel()

	way, err := m.routeAs(ctx, p, PriorState{}, mark)
	if err != nil {
		return finding.List{hostUnknown(p, err)}
	}

	defer way.Leave()

	found, err := way.Host.Check(ctx, way.Spec)
	if err != nil {
		return finding.List{hostUnknown(p, err)}
	}

	return forecastPreflight(p, found)
}

// hostUnknown warns that a plan could not look at the host.
func hostUnknown(p MachineSet, err error) finding.Finding {
	return finding.Warn("The host cluster was not looked at", finding.Report{
		Attempted: "look whether the machines of the " + p.Object + " can be made", Cause: []string{err.Error()},
		Next: "The apply looks again before it makes anything.",
	}.String())
}

// makes is whether a plan has machines that are not known to be there.
func (p MachineSet) makes(recorded PriorState) bool {
	for _, name := range p.names() {
		if state, known := recorded.Machines[name]; !known || state.Access != cluster.Member {
			return true
		}
	}

	return false
}
