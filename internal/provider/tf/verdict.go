package tf

// Verdict decides whether an update takes a new snapshot.
type Verdict struct {
	// Takes is why it does, empty when it does not.
	Takes string
	// Perhaps is true when it depends on unknown values.
	Perhaps bool
}
