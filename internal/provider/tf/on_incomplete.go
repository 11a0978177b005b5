package tf

// The choices of on_incomplete: how a create that did not finish is told.
const (
	OnIncompleteWarn  = "warn"
	OnIncompleteError = "error"
)
