package pki

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// String describes the bundle without its secrets.
func (b Bundle) String() string {
	if b.secrets == nil || b.secrets.Cluster == nil {
		return "pki.Bundle(empty)"
	}

	return fmt.Sprintf("pki.Bundle(cluster %s, redacted)", b.secrets.Cluster.ID)
}

// GoString describes the bundle without its secrets.
func (b Bundle) GoString() string { return b.String() }

// Format writes the same description for every verb, so that no format string reaches the secrets.
func (b Bundle) Format(f fmt.State, _ rune) { writeDescription(f, b.String()) }

// MarshalJSON encodes the description, not the secrets: structured loggers encode what they are given.
func (b Bundle) MarshalJSON() ([]byte, error) { return json.Marshal(b.String()) }

// String describes the credentials without certificate or key.
func (c Credentials) String() string {
	return fmt.Sprintf("pki.Credentials(valid until %s, redacted)", c.NotAfter.UTC().Format(time.RFC3339))
}

// GoString describes the credentials without certificate or key.
func (c Credentials) GoString() string { return c.String() }

// Format writes the same description for every verb, so that no format string reaches the key.
func (c Credentials) Format(f fmt.State, _ rune) { writeDescription(f, c.String()) }

// MarshalJSON encodes the description, not the key: structured loggers encode what they are given.
func (c Credentials) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }

// writeDescription drops the error: fmt gives a Formatter no way to report one, and its own buffer, which
// f always is, cannot fail.
func writeDescription(f fmt.State, s string) { _, _ = io.WriteString(f, s) }
