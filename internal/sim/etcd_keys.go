package sim

import (
	"context"
	"errors"
	"fmt"
	"github.com/talosop/terraform-provider-talosop/internal/sim/objects"
	"maps"
	"slices"
)

// PutEtcdKeys writes keys into the etcd of the machine, real or not; etcd must have a
// leader. Keys below /registry/ are those of Kubernetes. Safe to repeat.
func (m *Machine) PutEtcdKeys(ctx context.Context, values map[string]string) error {
	node, err := m.member()
	if err == nil {
		err = node.put(ctx, values)
	}

	if err != nil {
		return fmt.Errorf("write keys to etcd of %s: %w", m.name, err)
	}

	return nil
}

// EtcdKeys reads the keys with a prefix from the etcd of the machine.
func (m *Machine) EtcdKeys(ctx context.Context, prefix string) (map[string]string, error) {
	node, err := m.member()
	if err != nil {
		return nil, fmt.Errorf("read keys from etcd of %s: %w", m.name, err)
	}

	values, err := node.keys(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("read keys from etcd of %s: %w", m.name, err)
	}

	return values, nil
}

// member is the etcd member of a machine that is on.
func (m *Machine) member() (etcdNode, error) {
	b := m.current()
	if b == nil {
		return nil, errors.New("machine is off")
	}

	return b.localMember()
}

// maxTxnOps is how many keys etcd takes in one transaction.
const maxTxnOps = 128

func (m *realMember) put(ctx context.Context, values map[string]string) error {
	for keys := range slices.Chunk(slices.Sorted(maps.Keys(values)), maxTxnOps) {
		var ops []any
		for _, key := range keys {
			ops = append(ops, map[string]any{"requestPut": map[string]any{"key": []byte(key), "value": []byte(values[key])}})
		}

		if err := m.api().call(ctx, "kv/txn", map[string]any{"success": ops}, &struct{}{}); err != nil {
			return err
		}
	}

	return nil
}

func (m *realMember) keys(ctx context.Context, prefix string) (map[string]string, error) {
	var resp struct {
		KVs []struct {
			Key   []byte `json:"key"`
			Value []byte `json:"value"`
		} `json:"kvs"`
	}

	end := []byte(prefix)
	end[len(end)-1]++

	if err := m.api().call(ctx, "kv/range", map[string]any{"key": []byte(prefix), "range_end": end}, &resp); err != nil {
		return nil, err
	}

	values := make(map[string]string, len(resp.KVs))
	for _, kv := range resp.KVs {
		values[string(kv.Key)] = string(kv.Value)
	}

	return values, nil
}

func (m *modelMember) put(_ context.Context, values map[string]string) error {
	store, err := m.serve()
	if err != nil {
		return err
	}

	store.Put(values)

	return nil
}

func (m *modelMember) keys(_ context.Context, prefix string) (map[string]string, error) {
	store, err := m.serve()
	if err != nil {
		return nil, err
	}

	return store.Keys(prefix), nil
}

// serve is the data of a member that can be asked.
func (m *modelMember) serve() (*objects.Store, error) {
	m.sim.mu.Lock()
	defer m.sim.mu.Unlock()

	return m.c.store, m.serving()
}
