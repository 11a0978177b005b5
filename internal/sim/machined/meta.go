package machined

import (
	"cmp"
	"maps"

	metakeys "github.com/siderolabs/talos/pkg/machinery/meta"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
)

// metaSpace is what META holds of keys and values, in Talos's own accounting: each
// copy is 256 KiB, less what frames it; a value costs 8 bytes beside itself.
const (
	metaSpace    = 256*1024 - 40
	metaFraming  = 20
	metaPerValue = 8
)

// Meta is what META holds. It survives everything but a wipe of META or of the disk.
func (m *Hardware) Meta() map[uint8]string {
	m.World.Lock()
	defer m.World.Unlock()

	return maps.Clone(m.Disk.meta)
}

// SetMeta writes to META as another client than the one under test would, and reports whether there was space.
func (m *Hardware) SetMeta(key uint8, value string) bool {
	m.metaMu.Lock()
	defer m.metaMu.Unlock()

	held := m.Meta()

	size := metaFraming + len(value) - len(held[key])
	for _, v := range held {
		size += len(v) + metaPerValue
	}

	if size > metaSpace {
		return false
	}

	m.World.Update(func() {
		if m.Disk.meta == nil {
			m.Disk.meta = map[uint8]string{}
		}

		m.Disk.meta[key] = value
	})

	if b := m.live(); b != nil {
		b.publishMetaKey(key, value)
	}

	return true
}

// DeleteMeta is SetMeta for a removal; it reports whether the key was there.
func (m *Hardware) DeleteMeta(key uint8) bool {
	m.metaMu.Lock()
	defer m.metaMu.Unlock()

	if _, ok := m.Meta()[key]; !ok {
		return false
	}

	m.World.Update(func() { delete(m.Disk.meta, key) })

	if b := m.live(); b != nil {
		Remove(b, runtime.NewMetaKey(runtime.NamespaceName, runtime.MetaKeyTagToID(key)))
		b.followMeta(key, "")
	}

	return true
}

// publishMeta makes META of a metal machine visible at the begin of a boot.
func (b *Boot) publishMeta() {
	b.metaMu.Lock()
	defer b.metaMu.Unlock()

	b.followMeta(metakeys.UUIDOverride, "")
	b.followMeta(metakeys.UniqueMachineToken, "")

	for key, value := range b.Meta() {
		b.publishMetaKey(key, value)
	}
}

func (b *Boot) publishMetaKey(key uint8, value string) {
	Modify(b, runtime.NewMetaKey(runtime.NamespaceName, runtime.MetaKeyTagToID(key)), func(r *runtime.MetaKey) {
		r.TypedSpec().Value = value
	})
	b.followMeta(key, value)
}

// followMeta updates the resources that follow META. A network configuration is not
// one of them: simulated machines keep the address that they have.
func (b *Boot) followMeta(key uint8, value string) {
	switch key {
	case metakeys.UUIDOverride:
		value = cmp.Or(value, b.uuid)

		Modify(b, hardware.NewSystemInformation(hardware.SystemInformationID), func(r *hardware.SystemInformation) {
			*r.TypedSpec() = hardware.SystemInformationSpec{
				Manufacturer: "talossim", ProductName: "Simulated Machine", SerialNumber: b.uuid[:8], UUID: value,
			}
		})
	case metakeys.UniqueMachineToken:
		Modify(b, runtime.NewUniqueMachineToken(), func(r *runtime.UniqueMachineToken) { r.TypedSpec().Token = value })
	}
}
