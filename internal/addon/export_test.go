package addon

// LeaseOf names the Lease of a release.
func LeaseOf(name Name) string { return leaseOf(name) }
