package release

import (
	helmrelease "helm.sh/helm/v3/pkg/release"

	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
)

// Mistyped is an error when Kubernetes cannot read one of the objects.
func Mistyped(objects []diff.Object) error { return mistyped(objects) }

// LeaseOf names the Lease of a release.
func LeaseOf(name Name) string { return leaseOf(name) }

// Covers reports whether a pattern of ignored fields means a field.
func Covers(pattern, path string) bool { return covers(pattern, path) }

// SchemaText makes one line of what Helm says of values.
func SchemaText(text, chart string) string { return schemaText(text, chart) }

// End makes a record failed as an apply does.
func End(r *helmrelease.Release) { end(r) }

// FormerOf is the earlier status of a revision according to the labels of its record.
func FormerOf(labels map[string]string, revision int) string { return formerOf(labels, revision) }

// FormerLabel is the label of a record that says what a revision was.
func FormerLabel(revision int, status string) map[string]string {
	return map[string]string{labelFormer: formerLabel(revision, helmrelease.Status(status))}
}
