package machined

// Platform is how the machine was made; it decides what the configuration must
// contain and which calls are refused.
type Platform int

const (
	// Metal installs to a disk, reboots, and has hardware information.
	Metal Platform = iota
	// Container has no disks and no installation, and refuses reboots. It is off after a reset or a configuration
	// that needs a reboot: its process exits, and the container runtime decides what follows.
	Container
)

// String is the platform's name as Talos reports it.
func (p Platform) String() string {
	if p == Container {
		return "container"
	}

	return "metal"
}

// Disk is a block device of a machine, as the Disks resource lists it.
type Disk struct {
	// Path such as /dev/sda.
	Path string
	// Size in bytes.
	Size uint64
	// Model, Serial and Transport are free text; Transport is for example "nvme".
	Model, Serial, Transport string
	// Symlinks are other paths of the disk, such as those below /dev/disk.
	Symlinks []string
}
