package machineset

// Unknown is the parts of a set that a plan does not know yet, as a mask. Unknown values are zero in the set.
type Unknown uint16

// The parts. Each includes those that depend on it.
const (
	// UnknownConfiguration is any value that shapes a configuration, except the secrets.
	UnknownConfiguration Unknown = 1 << iota
	// UnknownMode is whether the machines are in containers.
	UnknownMode
	// UnknownEndpoints is the endpoints of the control planes of other resources.
	UnknownEndpoints
	// UnknownSecrets is the secrets.
	UnknownSecrets
	// UnknownChanges is how running machines are changed.
	UnknownChanges
	// UnknownSnapshot is whether etcd is restored from a snapshot, or from which one.
	UnknownSnapshot
	// UnknownCluster is the cluster of a handle, which another resource of the same plan creates.
	UnknownCluster

	onlyAddresses
	onlyMachines
	onlyNew
)

const (
	// UnknownAddresses is the addresses of the machines.
	UnknownAddresses = onlyAddresses | UnknownConfiguration
	// UnknownMachines is which machines there are, and what is installed on them.
	UnknownMachines = onlyMachines | UnknownAddresses
	// UnknownNewSecrets is secrets that the plan generates.
	UnknownNewSecrets = onlyNew | UnknownSecrets
)

// Has reports whether a part is unknown.
func (u Unknown) Has(part Unknown) bool { return u&part == part }

// Note adds a part if it is unknown.
func (u *Unknown) Note(part Unknown, unknown bool) {
	if unknown {
		*u |= part
	}
}

// Without is the mask once a part is known, and what depends on it.
func (u Unknown) Without(part Unknown) Unknown { return u &^ part }

// Renders reports whether the configurations can be rendered: everything in them is known.
func (u Unknown) Renders() bool { return !u.Has(UnknownConfiguration) && !u.Has(UnknownSecrets) }
