package values

// Secrets are texts that are shown to nobody.
type Secrets []string
