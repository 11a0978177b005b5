package ledger

import (
	"maps"
	"sync"
)

// facts are facts of one kind, by subject. All kinds of a ledger share its mutex: operations on several of them hold
// it and use their maps.
type facts[K comparable, V any] struct {
	mu *sync.Mutex
	by map[K]V
}

func none[K comparable, V any](mu *sync.Mutex) facts[K, V] { return facts[K, V]{mu, map[K]V{}} }

func (f facts[K, V]) get(key K) (value V, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()

	value, known = f.by[key]

	return value, known
}

func (f facts[K, V]) put(key K, value V) { f.change(key, func(V) V { return value }) }

// change replaces a fact, which is the zero value when unknown, and returns the new one. It holds the mutex
// meanwhile.
func (f facts[K, V]) change(key K, change func(V) V) V {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.by[key] = change(f.by[key])

	return f.by[key]
}

func (f facts[K, V]) drop(key K) {
	f.mu.Lock()
	defer f.mu.Unlock()

	delete(f.by, key)
}

func (f facts[K, V]) dropWhere(match func(K, V) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()

	maps.DeleteFunc(f.by, match)
}

// all is a copy of the facts.
func (f facts[K, V]) all() map[K]V {
	f.mu.Lock()
	defer f.mu.Unlock()

	return maps.Clone(f.by)
}
