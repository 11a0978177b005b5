package sim

import "sync"

// onceMap computes a value per key at most once at a time and keeps it.
type onceMap[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]V
}

func newOnceMap[K comparable, V any]() *onceMap[K, V] {
	return &onceMap[K, V]{values: map[K]V{}}
}

func (m *onceMap[K, V]) get(key K, compute func() (V, error)) (V, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if v, ok := m.values[key]; ok {
		return v, nil
	}

	v, err := compute()
	if err != nil {
		return v, err
	}

	m.values[key] = v

	return v, nil
}
