package etcd

import (
	"context"

	"github.com/talosop/terraform-provider-talosop/internal/sim/objects"
)

func (m *modelMember) Put(_ context.Context, values map[string]string) error {
	store, err := m.serve()
	if err != nil {
		return err
	}

	store.Put(values)

	return nil
}

func (m *modelMember) Keys(_ context.Context, prefix string) (map[string]string, error) {
	store, err := m.serve()
	if err != nil {
		return nil, err
	}

	return store.Keys(prefix), nil
}

// serve is the data of a member that can be asked.
func (m *modelMember) serve() (*objects.Store, error) {
	m.world.Lock()
	defer m.world.Unlock()

	return m.c.Store, m.serving()
}
