package addon

// LeaseOf names the Lease of a release.
func LeaseOf(name Name) string { return leaseOf(name) }

// Covers is whether a pattern of ignored fields means a field.
func Covers(pattern, path string) bool { return covers(pattern, path) }

// SchemaText makes one line of what Helm says of values.
func SchemaText(text, chart string) string { return schemaText(text, chart) }
