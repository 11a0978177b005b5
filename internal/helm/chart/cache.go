package chart

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// cache keeps values for a limited time. Concurrent calls for one key share one computation.
// The computation ends when no caller waits for it any more, not when its first caller gives up.
type cache[K comparable, V any] struct {
	now func() time.Time
	// limit of the sizes of all values together; the least recently used go first.
	limit int64

	mu    sync.Mutex
	used  int64
	kept  map[K]*list.Element
	order *list.List // of keptValue, most recently used first
	calls map[K]*call[V]
}

type keptValue[K comparable, V any] struct {
	key   K
	value V
	size  int64
	made  time.Time
}

// call is a value in the making.
type call[V any] struct {
	done    chan struct{}
	waiting int
	cancel  context.CancelFunc

	// Set before done is closed.
	value V
	err   error
}

func newCache[K comparable, V any](limit int64, now func() time.Time) *cache[K, V] {
	return &cache[K, V]{
		now: now, limit: limit,
		kept: map[K]*list.Element{}, order: list.New(), calls: map[K]*call[V]{},
	}
}

// get returns the value of a key that is no older than maxAge (0: any age will do), made with make
// when there is none; make also says the value's size. Failures are not kept. known says that
// the value was there before, so that it may be out of date.
func (c *cache[K, V]) get(
	ctx context.Context, key K, maxAge time.Duration, produce func(context.Context) (V, int64, error),
) (value V, known bool, err error) {
	c.mu.Lock()
	if value, ok := c.lookup(key, maxAge); ok {
		c.mu.Unlock()
		return value, true, nil
	}
	running, ok := c.calls[key]
	if !ok {
		shared, cancel := context.WithCancel(context.WithoutCancel(ctx))
		running = &call[V]{done: make(chan struct{}), cancel: cancel}
		c.calls[key] = running
		go c.run(shared, key, running, produce)
	}
	running.waiting++
	c.mu.Unlock()
	select {
	case <-running.done:
		return running.value, false, running.err
	case <-ctx.Done():
		c.leave(key, running)
		var none V
		return none, false, ctx.Err()
	}
}

func (c *cache[K, V]) run(
	ctx context.Context, key K, running *call[V], produce func(context.Context) (V, int64, error),
) {
	defer running.cancel()
	value, size, err := produce(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[key] == running {
		delete(c.calls, key)
	}
	if err == nil {
		c.keep(key, value, size)
	}
	running.value, running.err = value, err
	close(running.done)
}

// leave ends a computation that no caller waits for. The next caller starts a new one.
func (c *cache[K, V]) leave(key K, running *call[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	running.waiting--
	if running.waiting > 0 {
		return
	}
	running.cancel()
	if c.calls[key] == running {
		delete(c.calls, key)
	}
}

// forget drops a value that turned out to be out of date, unless it is a newer one by now.
func (c *cache[K, V]) forget(key K, outdated func(V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.kept[key]
	if element == nil {
		return
	}
	if have, ok := element.Value.(keptValue[K, V]); ok && outdated(have.value) {
		c.drop(element)
	}
}

func (c *cache[K, V]) lookup(key K, maxAge time.Duration) (V, bool) {
	var none V
	element := c.kept[key]
	if element == nil {
		return none, false
	}
	have, ok := element.Value.(keptValue[K, V])
	if !ok || maxAge > 0 && c.now().Sub(have.made) >= maxAge {
		c.drop(element)
		return none, false
	}
	c.order.MoveToFront(element)
	return have.value, true
}

func (c *cache[K, V]) keep(key K, value V, size int64) {
	c.drop(c.kept[key])
	if size > c.limit {
		return
	}
	c.kept[key] = c.order.PushFront(keptValue[K, V]{key: key, value: value, size: size, made: c.now()})
	c.used += size
	for c.used > c.limit {
		c.drop(c.order.Back())
	}
}

func (c *cache[K, V]) drop(element *list.Element) {
	if element == nil {
		return
	}
	if have, ok := element.Value.(keptValue[K, V]); ok {
		delete(c.kept, have.key)
		c.used -= have.size
	}
	c.order.Remove(element)
}
