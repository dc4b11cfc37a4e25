package providers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/store"
)

// keeper is where a conversation is saved.
type keeper interface {
	// save saves d: when it returns nil, d is there after a crash.
	save(d dag.DAG) error
	// rewrite saves d, and removes what was erased.
	rewrite(d dag.DAG) error
	// load returns the conversation as another process finds it, which goes on with the keeper.
	load() (dag.DAG, error)
	// dies ends the process in the middle of saving d: anything between nothing and all of it is done.
	dies(d dag.DAG, dice *rand.Rand) error
	// fail makes the next save fail, before or after it is stored, if the keeper has such faults. save repeats it.
	fail(how int)
	// held returns everything that is stored.
	held() (string, error)
	// close gives up what the process holds.
	close() error
}

var errDied = errors.New("the process died")

// document keeps a conversation as a document.
type document struct{ path string }

func (k *document) save(d dag.DAG) error    { return d.Save(k.path) }
func (k *document) rewrite(d dag.DAG) error { return d.Save(k.path) }
func (k *document) load() (dag.DAG, error)  { return dag.Load(k.path) }
func (k *document) close() error            { return nil }
func (k *document) fail(int)                {}

func (k *document) dies(d dag.DAG, dice *rand.Rand) error {
	if dice.IntN(2) == 0 {
		return errors.Join(errDied, d.Save(k.path))
	}
	return errDied
}

func (k *document) held() (string, error) {
	data, err := os.ReadFile(k.path)
	return string(data), err
}

// journal keeps a conversation in a journal.
type journal struct {
	document
	*dag.Journal
}

func newJournal(path string) (k *journal, err error) {
	k = &journal{document: document{path}}
	k.Journal, err = dag.OpenJournal(path, &dag.JournalOptions{NoSync: true})
	return k, err
}

func (k *journal) save(d dag.DAG) error { return k.Journal.Append(d) }
func (k *journal) close() error         { return k.Journal.Close() }

func (k *journal) rewrite(d dag.DAG) (err error) {
	if err = errors.Join(k.Close(), dag.RewriteJournal(k.path, d)); err == nil {
		k.Journal, err = dag.OpenJournal(k.path, &dag.JournalOptions{NoSync: true})
	}
	return err
}

func (k *journal) load() (d dag.DAG, err error) {
	if _, err = dag.OpenJournal(k.path, nil); !errors.Is(err, dag.ErrLocked) {
		return d, fmt.Errorf("a second writer gets %v", err)
	}
	_ = k.Close()
	if d, err = dag.Load(k.path); err != nil {
		return d, err
	}
	if k.Journal, err = dag.OpenJournal(k.path, &dag.JournalOptions{NoSync: true}); err == nil && !dag.Equal(d, k.DAG()) {
		err = errors.New("the journal is loaded in another way than it is opened")
	}
	return k.DAG(), err
}

// dies leaves any part of the append in the file.
func (k *journal) dies(d dag.DAG, dice *rand.Rand) error {
	before, err := os.Stat(k.path)
	if err == nil {
		err = k.save(d)
	}
	after, statErr := os.Stat(k.path)
	if err = errors.Join(err, statErr); err != nil {
		return err
	}
	grown := int(after.Size() - before.Size())
	return errors.Join(errDied, os.Truncate(k.path, before.Size()+int64(dice.IntN(grown+1))))
}

// shelf keeps a conversation in a store, whose driver fails now and then.
type shelf struct {
	failing
	*store.Conversation
	end func() error
}

const shelfKey = "talk"

// failing is a driver with faults: an append fails before or after it is stored.
type failing struct {
	store.Driver
	next *int // 0: none; 1: the next append fails before it is stored; 2: after
}

var errStore = errors.New("the store fails")

func (f failing) Append(ctx context.Context, a store.AppendRequest) (store.Head, error) {
	how := *f.next
	*f.next = 0
	if how == 1 {
		return store.Head{}, errStore
	}
	head, err := f.Driver.Append(ctx, a)
	if how == 2 && err == nil {
		return store.Head{}, errStore
	}
	return head, err
}

func newShelf(driver store.Driver, end func() error) (k *shelf, err error) {
	k = &shelf{failing: failing{driver, new(int)}, end: end}
	k.Conversation, err = k.open()
	return k, err
}

func (k *shelf) open() (*store.Conversation, error) {
	return store.New(k.failing).Conversation(context.Background(), shelfKey)
}

// save appends again after an error of the store, as the documentation says: the first append may be stored.
func (k *shelf) save(d dag.DAG) error {
	before := k.Conversation.DAG()
	err := k.Conversation.Append(context.Background(), d)
	if errors.Is(err, errStore) {
		if !dag.Equal(before, k.Conversation.DAG()) {
			return errors.New("a failed append changed the conversation")
		}
		if k.Conversation, err = k.open(); err == nil {
			err = k.Conversation.Append(context.Background(), d)
		}
	}
	return err
}

func (k *shelf) rewrite(d dag.DAG) error { return k.Conversation.Rewrite(context.Background(), d) }
func (k *shelf) close() error            { return k.end() }
func (k *shelf) fail(how int)            { *k.next = how }

func (k *shelf) load() (d dag.DAG, err error) {
	if k.Conversation, err = k.open(); err == nil {
		d = k.Conversation.DAG()
	}
	return d, err
}

func (k *shelf) dies(d dag.DAG, dice *rand.Rand) error {
	*k.next = 1 + dice.IntN(2)
	_ = k.Conversation.Append(context.Background(), d)
	*k.next = 0
	return errDied
}

func (k *shelf) held() (string, error) {
	ctx, all := context.Background(), ""
	heads, err := k.Heads(ctx, shelfKey, store.Page{})
	for _, h := range heads {
		for r, err := range k.Driver.Read(ctx, shelfKey, h.Nodes, nil) {
			if err != nil {
				return "", err
			}
			all += string(r.Line)
		}
	}
	return all, err
}

// newKeeper makes an empty keeper of a kind.
func (p *torture) newKeeper(kind int) (k keeper, err error) {
	p.files++
	path := filepath.Join(p.dir, fmt.Sprint(p.files))
	switch kind {
	case 0:
		return &document{path}, nil
	case 1:
		return newJournal(path)
	}
	return newShelf(store.Memory(), func() error { return nil })
}
