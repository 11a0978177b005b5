package tf

// Verdict is whether an update takes a new snapshot.
type Verdict struct {
	// Takes is why it does, empty when it does not.
	Takes string
	// Perhaps is true when it depends on what is not known yet.
	Perhaps bool
}
