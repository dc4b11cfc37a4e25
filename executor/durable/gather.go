package durable

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// gather runs a function on groups of values: all values for one key that come together, or while a group is under way,
// are the next group.
type gather[K comparable, V any] struct {
	run func(key K, group []V)

	mu      sync.Mutex          // guards waiting
	waiting map[K][]gathered[V] // by key, while a group is under way
}

// gathered is a value that waits. Its caller gets true if it runs the next group, and false after its group.
type gathered[V any] struct {
	value V
	leads chan bool
}

const (
	// maxGroup is the maximum number of values in a group.
	maxGroup = 16
	// together is how long a group waits for more values. The calls of a message are begun within microseconds, and those
	// that take the same time end so.
	together = time.Millisecond
)

// do gives a value to the next group of a key, and returns when that was run.
func (g *gather[K, V]) do(key K, value V) {
	own := gathered[V]{value, make(chan bool, 1)}
	g.mu.Lock()
	if g.waiting == nil {
		g.waiting = map[K][]gathered[V]{}
	}
	others, busy := g.waiting[key]
	g.waiting[key] = append(others, own)
	g.mu.Unlock()
	if busy && !<-own.leads {
		return
	}

	time.Sleep(together)
	g.mu.Lock()
	all := g.waiting[key]
	group := all[:min(len(all), maxGroup)]
	g.waiting[key] = all[len(group):]
	g.mu.Unlock()

	defer g.end(key, group[1:])
	values := make([]V, len(group))
	for i, m := range group {
		values[i] = m.value
	}
	g.run(key, values)
}

// end ends a group after its leader. It releases the others, and makes the first that waits the next leader.
func (g *gather[K, V]) end(key K, others []gathered[V]) {
	for _, m := range others {
		m.leads <- false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if next := g.waiting[key]; len(next) > 0 {
		next[0].leads <- true
	} else {
		delete(g.waiting, key)
	}
}

// listed returns a table of so many rows for the parameters of a statement, each with columns of these types, and its
// parameters: those of rows, and NULL for the rest. A statement has few lengths of its table, because the server plans each of
// them anew.
func listed(rows [][]any, types ...string) (table string, args []any) {
	n := 4
	if len(rows) > n {
		n = maxGroup
	}
	list := make([]string, n)
	for i := range list {
		names := make([]string, len(types))
		for k, of := range types {
			names[k] = fmt.Sprint("$", i*len(types)+k+1, "::", of)
		}
		list[i] = "(" + strings.Join(names, ", ") + ")"
	}
	args = slices.Concat(rows...)
	return "(VALUES " + strings.Join(list, ", ") + ")", append(args, make([]any, n*len(types)-len(args))...)
}
