package machineconfig

import (
	"encoding/json"
	"fmt"
	"io"
)

// Config is the configuration of one machine. It holds secrets and prints without them.
type Config struct {
	// Bytes are what is sent to the machine: YAML documents without comments.
	Bytes []byte
	// Digest is Digest(Bytes).
	Digest string
	// Warnings are what Talos would warn about when the configuration is applied. They contain no secrets.
	Warnings []string
	// Facts are the facts in the configuration that decisions need.
	Facts Facts
	// Ineffective is what patches and settings say without effect. It is shared, and not to be changed.
	Ineffective []*FieldError
}

// String describes the configuration without its contents.
func (c Config) String() string {
	return fmt.Sprintf("machineconfig.Config(%s, %d bytes, redacted)", c.Digest, len(c.Bytes))
}

// GoString describes the configuration without its contents.
func (c Config) GoString() string { return c.String() }

// Format writes the same description for every verb, so that no format string reaches the secrets.
func (c Config) Format(f fmt.State, _ rune) { describe(f, c.String()) }

// MarshalJSON encodes the description, because structured loggers encode their values.
func (c Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }

// String describes the cluster without its patches and registry credentials, which may be secret.
func (c Cluster) String() string {
	return fmt.Sprintf("machineconfig.Cluster(%s, %s, contract %s)", c.Name, c.Endpoint, c.Contract)
}

// GoString describes the cluster as String does.
func (c Cluster) GoString() string { return c.String() }

// Format writes the same description for every verb.
func (c Cluster) Format(f fmt.State, _ rune) { describe(f, c.String()) }

// String describes the machine without its patches, which may be secret.
func (m Machine) String() string { return fmt.Sprintf("machineconfig.Machine(%s)", m.Role) }

// GoString describes the machine as String does.
func (m Machine) GoString() string { return m.String() }

// Format writes the same description for every verb.
func (m Machine) Format(f fmt.State, _ rune) { describe(f, m.String()) }

// String hides everything.
func (a RegistryAuth) String() string { return "machineconfig.RegistryAuth(redacted)" }

// GoString hides everything.
func (a RegistryAuth) GoString() string { return a.String() }

// Format writes the same description for every verb.
func (a RegistryAuth) Format(f fmt.State, _ rune) { describe(f, a.String()) }

// String hides everything.
func (t RegistryTLS) String() string { return "machineconfig.RegistryTLS(redacted)" }

// GoString hides everything.
func (t RegistryTLS) GoString() string { return t.String() }

// Format writes the same description for every verb.
func (t RegistryTLS) Format(f fmt.State, _ rune) { describe(f, t.String()) }

// describe drops the error: fmt gives a Formatter no way to report one, and its own buffer cannot fail.
func describe(f fmt.State, s string) { _, _ = io.WriteString(f, s) }
