package timing

import "sync"

// OnceMap computes a value per key at most once at a time and keeps it.
type OnceMap[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]V
}

// NewOnceMap makes an empty map.
func NewOnceMap[K comparable, V any]() *OnceMap[K, V] {
	return &OnceMap[K, V]{values: map[K]V{}}
}

// Get is the value of a key, which is computed if there is none.
func (m *OnceMap[K, V]) Get(key K, compute func() (V, error)) (V, error) {
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
