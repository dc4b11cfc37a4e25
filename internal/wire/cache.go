package wire

import "sync"

// Cache remembers what was made of a few hundred keys. The zero value is empty. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	mu   sync.RWMutex
	made map[K]V
}

// mostCached is how many keys are remembered; then all are forgotten, which is as good as the oldest where that never happens.
const mostCached = 512

// Get returns what make made of the key.
func (c *Cache[K, V]) Get(key K, make func(K) V) V {
	c.mu.RLock()
	value, ok := c.made[key]
	c.mu.RUnlock()
	if ok {
		return value
	}
	value = make(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil || len(c.made) >= mostCached {
		c.made = map[K]V{}
	}
	c.made[key] = value
	return value
}
