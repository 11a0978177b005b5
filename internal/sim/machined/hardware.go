package machined

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
	"github.com/talosop/terraform-provider-talosop/internal/sim/world"
)

// Hardware is a machine without power: its name, its address, and the content of its disk.
type Hardware struct {
	World    *world.World
	name     string
	addr     atomic.Pointer[netip.Addr]
	port     int // of its Talos API
	uuid     string
	Platform Platform
	Delays   timing.Delays
	Disks    []Disk
	// extensions are those in the images of schematics.
	extensions map[string][]string
	// advertise returns the address under which others know an address.
	advertise func(netip.Addr) netip.Addr

	secureBoot atomic.Bool // in the firmware

	metaMu sync.Mutex // serializes writes of META with their resources

	// Guarded by world.
	Disk     Storage
	boot     *Boot              // of the boot that runs, nil while there is none
	breaks   map[component]bool // components of Kubernetes that crash here
	timeLost bool               // no time server answers
}

// Description describes a machine to be made.
type Description struct {
	Name, UUID string
	Address    netip.Addr
	Port       int // of its Talos API
	Platform   Platform
	Delays     timing.Delays
	Disks      []Disk
	// Extensions are the system extensions in the images of schematics, by their ids.
	Extensions map[string][]string
	// Advertise returns the address under which others know an address.
	Advertise func(netip.Addr) netip.Addr
	// Config is on its STATE partition from the beginning.
	Config []byte
}

// NewHardware makes a machine without power.
func NewHardware(w *world.World, d Description) *Hardware {
	h := &Hardware{
		World: w, name: d.Name, uuid: d.UUID, Platform: d.Platform, Delays: d.Delays,
		Disks: d.Disks, extensions: d.Extensions, port: d.Port, advertise: d.Advertise,
		Disk: Storage{Installed: d.Platform == Container || len(d.Config) > 0, Config: d.Config},
	}
	h.addr.Store(&d.Address)

	return h
}

// SetAddress gives the machine another address and returns the one that it had.
func (m *Hardware) SetAddress(addr netip.Addr) netip.Addr { return *m.addr.Swap(&addr) }

// Name is the label of the machine in calls and faults.
func (m *Hardware) Name() string { return m.name }

// Address is where the machine answers.
func (m *Hardware) Address() netip.Addr { return *m.addr.Load() }

// Advertised is the address by which others know the machine.
func (m *Hardware) Advertised() netip.Addr { return m.advertise(m.Address()) }

// Endpoint is the machine's Talos API as host:port.
func (m *Hardware) Endpoint() string {
	return netip.AddrPortFrom(m.Address(), uint16(m.port)).String() //nolint:gosec // a port
}

// UUID is the hardware UUID; containers do not report one.
func (m *Hardware) UUID() string { return m.uuid }

// SetSecureBoot switches Secure Boot on or off in the firmware, for the boots that follow. What is installed boots all
// the same: no signature is looked at.
func (m *Hardware) SetSecureBoot(on bool) { m.secureBoot.Store(on) }

// Installed reports whether Talos is on the machine's disk.
func (m *Hardware) Installed() bool {
	m.World.Lock()
	defer m.World.Unlock()

	return m.Disk.Installed
}

// SystemDisk is the path of the disk that Talos is on, empty while it is on none.
func (m *Hardware) SystemDisk() string {
	m.World.Lock()
	defer m.World.Unlock()

	if !m.Disk.Installed || len(m.Disks) == 0 {
		return ""
	}

	return m.installedOn()
}

// installedOn is the disk of Talos where it is on one; the world is locked.
func (m *Hardware) installedOn() string { return cmp.Or(m.Disk.SystemDisk, m.Disks[0].Path) }

// FindDisk is the path of the disk that a path leads to, as filepath.EvalSymlinks finds it.
func (m *Hardware) FindDisk(path string) (string, error) {
	for _, d := range m.Disks {
		if d.Path == path || slices.Contains(d.Symlinks, path) {
			return d.Path, nil
		}
	}

	return "", fmt.Errorf("lstat %s: no such file or directory", path)
}

// live is the boot that the machine is in, nil while it is off, which a boot that lost its power is.
func (m *Hardware) live() *Boot {
	m.World.Lock()
	defer m.World.Unlock()

	if m.boot != nil && m.boot.Crashed {
		return nil
	}

	return m.boot
}
