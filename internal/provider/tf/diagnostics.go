// Package tf is the shared use of the framework: diagnostics, plan modifiers, conversions.
package tf

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// Diagnostics converts findings to diagnostics of the framework. Every diagnostic of the provider is made from a
// finding. Machines with the same mistake share a diagnostic.
func Diagnostics(list finding.List) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, f := range list.Shared() {
		diags = append(diags, Diagnostic(f))
	}

	return diags
}

// Diagnostic converts one finding to a diagnostic of the framework.
func Diagnostic(f finding.Finding) diag.Diagnostic {
	at := Path(f.At)

	switch {
	case f.Severity == finding.Error && len(at.Steps()) > 0:
		return diag.NewAttributeErrorDiagnostic(at, f.Summary, f.Detail)
	case f.Severity == finding.Error:
		return diag.NewErrorDiagnostic(f.Summary, f.Detail)
	case len(at.Steps()) > 0:
		return diag.NewAttributeWarningDiagnostic(at, f.Summary, f.Detail)
	default:
		return diag.NewWarningDiagnostic(f.Summary, f.Detail)
	}
}

// Path is the framework's path of an attribute.
func Path(p finding.Path) path.Path {
	at := path.Empty()

	for _, step := range p.Steps() {
		switch step := step.(type) {
		case finding.Name:
			at = at.AtName(string(step))
		case finding.Key:
			at = at.AtMapKey(string(step))
		case finding.Index:
			at = at.AtListIndex(int(step))
		}
	}

	return at
}

// PathOf is an attribute's path without the framework. Steps into sets have no counterpart and end it.
func PathOf(p path.Path) finding.Path {
	var at finding.Path

	for _, step := range p.Steps() {
		switch step := step.(type) {
		case path.PathStepAttributeName:
			at = at.AtName(string(step))
		case path.PathStepElementKeyString:
			at = at.AtMapKey(string(step))
		case path.PathStepElementKeyInt:
			at = at.AtListIndex(int(step))
		default:
			return at
		}
	}

	return at
}

// Bug is finding.Bug as a diagnostic.
func Bug(what string) diag.Diagnostic { return Diagnostic(finding.Bug(what)) }

// InvalidSecrets is finding.InvalidSecrets as a diagnostic.
func InvalidSecrets(at path.Path, err error) diag.Diagnostic {
	return Diagnostic(finding.InvalidSecrets(PathOf(at), err))
}

// Findings are diagnostics of the framework as findings: mistakes in decoding a model, mostly.
func Findings(diags diag.Diagnostics) finding.List {
	var list finding.List

	for _, d := range diags {
		f := finding.Finding{Severity: finding.Warning, Summary: d.Summary(), Detail: d.Detail()}
		if d.Severity() == diag.SeverityError {
			f.Severity = finding.Error
		}

		if at, ok := d.(diag.DiagnosticWithPath); ok {
			f.At = PathOf(at.Path())
		}

		list.Append(f)
	}

	return list
}
