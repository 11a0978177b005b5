// Package postrender changes what a chart rendered with kustomize patches, before it is
// installed. It does no I/O.
package postrender

// Patch is one kustomize patch.
type Patch struct {
	// Patch is a strategic merge patch or a list of JSON 6902 operations, in YAML or JSON.
	Patch string
	// Target selects the objects; a strategic merge patch may name its object itself.
	Target *Target
}

// Target selects objects, as in the patches of a kustomization: all fields that are given have
// to match; all but the selectors are regular expressions that match from beginning to end.
type Target struct {
	Group, Version, Kind, Name, Namespace, LabelSelector, AnnotationSelector string
}

// Error says which patch cannot be used, and why.
type Error struct {
	// Index of the patch, from 0.
	Index int
	Err   error
}
