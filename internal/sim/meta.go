package sim

import (
	"context"
	"maps"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	metakeys "github.com/siderolabs/talos/pkg/machinery/meta"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// metaSpace is what META holds of keys and values, in Talos's own accounting: each
// copy is 256 KiB, less what frames it; a value costs 8 bytes beside itself.
const (
	metaSpace    = 256*1024 - 40
	metaFraming  = 20
	metaPerValue = 8
)

// MetaWrite stores a value in META and lets it take effect, as Talos does, before it
// answers. A machine that is not installed yet keeps META in memory until it is; here
// it keeps it as long as it exists.
func (a *api) MetaWrite(ctx context.Context, req *machine.MetaWriteRequest) (*machine.MetaWriteResponse, error) {
	key, err := a.b.metaKey(ctx, req.GetKey())
	if err != nil {
		return nil, err
	}

	if !a.b.m.setMeta(key, string(req.GetValue())) {
		return nil, status.Error(codes.ResourceExhausted, "meta write failed")
	}

	return &machine.MetaWriteResponse{Messages: []*machine.MetaWrite{{}}}, nil
}

// MetaDelete removes a value from META.
func (a *api) MetaDelete(ctx context.Context, req *machine.MetaDeleteRequest) (*machine.MetaDeleteResponse, error) {
	key, err := a.b.metaKey(ctx, req.GetKey())
	if err != nil {
		return nil, err
	}

	if !a.b.m.deleteMeta(key) {
		return nil, status.Error(codes.NotFound, "meta key not found")
	}

	return &machine.MetaDeleteResponse{Messages: []*machine.MetaDelete{{}}}, nil
}

// metaKey checks what both calls check, in Talos's order.
func (b *boot) metaKey(ctx context.Context, number uint32) (uint8, error) {
	if err := b.notInContainer(); err != nil {
		return 0, err
	}

	key := uint8(number) //nolint:gosec // compared below
	if uint32(key) != number {
		return 0, status.Error(codes.InvalidArgument, "key must be a uint8")
	}

	annotate(ctx, runtime.MetaKeyTagToID(key))

	return key, nil
}

// Meta is what META holds. It survives everything but a wipe of META or of the disk.
func (m *Machine) Meta() map[uint8]string {
	m.sim.mu.Lock()
	defer m.sim.mu.Unlock()

	return maps.Clone(m.disk.meta)
}

// SetMeta writes to META as somebody else than the client under test would, and
// reports whether there was space.
func (m *Machine) SetMeta(key uint8, value string) bool { return m.setMeta(key, value) }

// DeleteMeta is SetMeta for a removal; it reports whether the key was there.
func (m *Machine) DeleteMeta(key uint8) bool { return m.deleteMeta(key) }

func (m *Machine) setMeta(key uint8, value string) bool {
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

	m.sim.update(func() {
		if m.disk.meta == nil {
			m.disk.meta = map[uint8]string{}
		}

		m.disk.meta[key] = value
	})

	if b := m.current(); b != nil {
		b.publishMetaKey(key, value)
	}

	return true
}

func (m *Machine) deleteMeta(key uint8) bool {
	m.metaMu.Lock()
	defer m.metaMu.Unlock()

	if _, ok := m.Meta()[key]; !ok {
		return false
	}

	m.sim.update(func() { delete(m.disk.meta, key) })

	if b := m.current(); b != nil {
		remove(b, runtime.NewMetaKey(runtime.NamespaceName, runtime.MetaKeyTagToID(key)))
		b.followMeta(key, "")
	}

	return true
}

// publishMeta makes META of a metal machine visible at the begin of a boot.
func (b *boot) publishMeta() {
	b.m.metaMu.Lock()
	defer b.m.metaMu.Unlock()

	b.followMeta(metakeys.UUIDOverride, "")
	b.followMeta(metakeys.UniqueMachineToken, "")

	for key, value := range b.m.Meta() {
		b.publishMetaKey(key, value)
	}
}

func (b *boot) publishMetaKey(key uint8, value string) {
	modify(b, runtime.NewMetaKey(runtime.NamespaceName, runtime.MetaKeyTagToID(key)), func(r *runtime.MetaKey) {
		r.TypedSpec().Value = value
	})
	b.followMeta(key, value)
}

// followMeta updates the resources that follow META. A network configuration is not
// one of them: simulated machines keep the address that they have.
func (b *boot) followMeta(key uint8, value string) {
	switch key {
	case metakeys.UUIDOverride:
		if value == "" {
			value = b.m.uuid
		}

		modify(b, hardware.NewSystemInformation(hardware.SystemInformationID), func(r *hardware.SystemInformation) {
			*r.TypedSpec() = hardware.SystemInformationSpec{
				Manufacturer: "talossim", ProductName: "Simulated Machine", SerialNumber: b.m.uuid[:8], UUID: value,
			}
		})
	case metakeys.UniqueMachineToken:
		modify(b, runtime.NewUniqueMachineToken(), func(r *runtime.UniqueMachineToken) { r.TypedSpec().Token = value })
	}
}
