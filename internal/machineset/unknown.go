package machineset

// Unknown is what of a set a plan does not know yet: a mask of its parts. What is not known is zero in the set.
type Unknown uint16

// The parts. Each has those in it that depend on it.
const (
	// UnknownConfiguration is any value that shapes a configuration, other than the secrets.
	UnknownConfiguration Unknown = 1 << iota
	// UnknownMode is whether the machines are in containers.
	UnknownMode
	// UnknownEndpoints is where the control planes of other resources answer.
	UnknownEndpoints
	// UnknownSecrets is the secrets.
	UnknownSecrets
	// UnknownChanges is how machines that run are changed.
	UnknownChanges
	// UnknownSnapshot is whether etcd is to begin with a snapshot, or with which.
	UnknownSnapshot
	// UnknownCluster is the cluster of a handle, which another resource of the same plan has yet to make.
	UnknownCluster

	onlyAddresses
	onlyMachines
	onlyNew
)

const (
	// UnknownAddresses is where the machines answer.
	UnknownAddresses = onlyAddresses | UnknownConfiguration
	// UnknownMachines is which machines there are, and what is installed on them.
	UnknownMachines = onlyMachines | UnknownAddresses
	// UnknownNewSecrets is secrets that the plan makes.
	UnknownNewSecrets = onlyNew | UnknownSecrets
)

// Has reports whether a part is not known.
func (u Unknown) Has(part Unknown) bool { return u&part == part }

// Note adds a part where it is not known.
func (u *Unknown) Note(part Unknown, unknown bool) {
	if unknown {
		*u |= part
	}
}

// Without is the mask once a part is known, and what depends on it.
func (u Unknown) Without(part Unknown) Unknown { return u &^ part }

// Renders reports whether the configurations can be made: all that is in them is known.
func (u Unknown) Renders() bool { return !u.Has(UnknownConfiguration) && !u.Has(UnknownSecrets) }
