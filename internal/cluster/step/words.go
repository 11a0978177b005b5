package step

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// Role is the role of a machine in its cluster. The values are those of Talos's machine.type.
type Role string

// The two roles of a Talos machine.
const (
	ControlPlane Role = "controlplane"
	Worker       Role = "worker"
)

// String is the role in messages.
func (r Role) String() string {
	if r == ControlPlane {
		return "control plane"
	}

	return string(r)
}

// Access is how a machine answers, which decides what may be sent to it.
type Access string

const (
	// Unobserved is the zero value: nothing is known yet.
	Unobserved Access = ""
	// Unreachable machines gave no answer. That proves nothing, and in particular not that they are gone.
	Unreachable Access = "unreachable"
	// Maintenance machines wait for a configuration and belong to no cluster.
	Maintenance Access = "maintenance"
	// Member machines answered over a connection authenticated by this cluster's CA in both directions.
	Member Access = "member"
	// Foreign machines are configured and do not answer to this cluster's CA.
	Foreign Access = "foreign"
	// Gone machines do not exist, as the host cluster of their pods reports: there is no pod, no volume and nothing that
	// would create one. Silence alone never means that.
	Gone Access = "gone"
)

// nodeOf names the node of a machine in an operation, and its machine where that has another name. The name of a
// machine can begin with that of its pool, as in "general/w-1", and that of one without a resource is "node " and its
// node.
func nodeOf(node, machine string) string {
	if node == path.Base(strings.TrimPrefix(machine, "node ")) {
		return "node " + node
	}

	return fmt.Sprintf("node %s of %s", node, machine)
}

// Short is a duration in short form: 2m, not 2m0s.
func Short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}

	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}

	return text
}
