package etcd

import (
	"context"
	"maps"
	"slices"
)

// maxTxnOps is how many keys etcd takes in one transaction.
const maxTxnOps = 128

func (m *realMember) Put(ctx context.Context, values map[string]string) error {
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

func (m *realMember) Keys(ctx context.Context, prefix string) (map[string]string, error) {
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
