package step

// Role is what a machine does in its cluster. The values are those of Talos's
// machine.type.
type Role string

// The two roles of a Talos machine.
const (
	ControlPlane Role = "controlplane"
	Worker       Role = "worker"
)

// String names the role as people do.
func (r Role) String() string {
	if r == ControlPlane {
		return "control plane"
	}

	return string(r)
}

// Access is how a machine answers, which decides what may be sent to it.
type Access string

const (
	// Unobserved is the zero value: nothing was learned yet.
	Unobserved Access = ""
	// Unreachable machines gave no answer. Nothing follows from that: least of all that they are gone.
	Unreachable Access = "unreachable"
	// Maintenance machines wait for a configuration and belong to no cluster.
	Maintenance Access = "maintenance"
	// Member machines answered over a connection authenticated by this cluster's CA in both directions.
	Member Access = "member"
	// Foreign machines are configured and do not answer to this cluster's CA.
	Foreign Access = "foreign"
	// Gone machines do not exist, by the word of the host cluster that their pods would run
	// on: there is no pod, no volume and nothing that would make one. No silence says so.
	Gone Access = "gone"
)
