package wire

import "sync"

// Cache caches the values made from a few hundred keys. The zero value is empty. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	mu   sync.RWMutex
	made map[K]V // guarded by mu
}

// maxCached is the largest number of keys. At the limit all entries are dropped: programs rarely reach it, and a better
// order of eviction is not worth its cost.
const maxCached = 512

// Get returns the value for the key, calling make if it is not cached. Concurrent calls may make the value of one key
// several times.
func (c *Cache[K, V]) Get(key K, make func(K) V) V {
	c.mu.RLock()
	value, ok := c.made[key]
	c.mu.RUnlock()
	if ok {
		return value
	}

	// Without the lock, because making a value may take long.
	value = make(key)

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil || len(c.made) >= maxCached {
		c.made = map[K]V{}
	}
	c.made[key] = value
	return value
}
