package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
)

// PutEtcdKeys writes keys into the etcd of the machine, real or not; etcd must have a
// leader. Keys below /registry/ are those of Kubernetes. Safe to repeat.
func (m *Machine) PutEtcdKeys(ctx context.Context, values map[string]string) error {
	node, err := m.member()
	if err == nil {
		err = node.Put(ctx, values)
	}

	if err != nil {
		return fmt.Errorf("write keys to etcd of %s: %w", m.Name(), err)
	}

	return nil
}

// EtcdKeys reads the keys with a prefix from the etcd of the machine.
func (m *Machine) EtcdKeys(ctx context.Context, prefix string) (map[string]string, error) {
	node, err := m.member()
	if err != nil {
		return nil, fmt.Errorf("read keys from etcd of %s: %w", m.Name(), err)
	}

	values, err := node.Keys(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("read keys from etcd of %s: %w", m.Name(), err)
	}

	return values, nil
}

// member is the etcd member of a running machine.
func (m *Machine) member() (etcd.Node, error) {
	b := m.current()
	if b == nil {
		return nil, errors.New("machine is off")
	}

	return b.etcd.LocalMember()
}
