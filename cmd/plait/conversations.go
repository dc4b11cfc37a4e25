package main

import (
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/store"
)

// opened is one of the conversations in the arguments. Err is the reason if it cannot be read.
type opened struct {
	name string
	dag  dag.DAG
	err  error
}

// conversations opens the conversations in the arguments of a command, one at a time:
//
//   - a FILE;
//   - each file *.json and *.jsonl, and each database, in a folder and the folders in it, but not in hidden ones and
//     not behind links to folders, because these may form a loop;
//   - each head of each conversation in a database, if the argument is a database without a key.
func (s *streams) conversations(names []string) iter.Seq[opened] {
	return func(yield func(opened) bool) {
		for _, name := range names {
			if !s.under(name, yield) {
				return
			}
		}
	}
}

// under yields the conversations of one argument, and reports whether to continue.
func (s *streams) under(name string, yield func(opened) bool) bool {
	if name == std {
		d, err := s.load(name)
		return yield(opened{name, d, err})
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return s.inFolder(name, yield)
	}
	if isDatabase(name) {
		return s.inDatabase(name, yield)
	}

	d, err := s.load(name)
	return yield(opened{name, d, err})
}

// unreadable are the types of files in a folder without a conversation. Reading a pipe could take forever.
const unreadable = fs.ModeNamedPipe | fs.ModeSocket | fs.ModeDevice | fs.ModeDir

// isUnreadable reports whether an entry of a folder, or the target of its link, is such a file.
func isUnreadable(path string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.Type()&unreadable != 0
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode()&unreadable != 0
}

// inFolder yields the conversations in a folder.
func (s *streams) inFolder(folder string, yield func(opened) bool) bool {
	more := true
	// WalkDir enters no link without a separator at its end.
	root := strings.TrimRight(folder, string(filepath.Separator)) + string(filepath.Separator)
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		hidden := path != root && strings.HasPrefix(filepath.Base(path), ".")
		switch {
		case err != nil: // the rest of the folder can be read all the same
			more = yield(opened{name: path, err: err})
			if more && e != nil && e.IsDir() {
				return fs.SkipDir
			}
		case e.IsDir() && hidden:
			return fs.SkipDir
		case e.IsDir() || hidden || isUnreadable(path, e):
		case databaseName(path) && isDatabase(path):
			more = s.inDatabase(path, yield)
		case strings.HasSuffix(path, ".json") || strings.HasSuffix(path, ".jsonl"):
			d, err := s.load(path)
			more = yield(opened{path, d, err})
		}

		if !more {
			return fs.SkipAll
		}
		return nil
	})
	if err != nil && more {
		more = yield(opened{name: folder, err: err})
	}
	return more
}

// inDatabase yields the heads in a database. Unlike conversation, it keeps none of them.
func (s *streams) inDatabase(file string, yield func(opened) bool) bool {
	all, err := s.store(file, false)
	if err != nil {
		return yield(opened{name: withoutPassword(file), err: err})
	}

	for key, err := range all.Conversations(s.ctx, "") {
		if err != nil {
			return yield(opened{name: withoutPassword(file), err: err})
		}
		for head, err := range all.Heads(s.ctx, key, "") {
			// The main head is named by the key alone.
			name := withoutPassword(file) + mark + key
			if head.Name != store.Main && head.Name != "" {
				name += mark + head.Name
			}
			if err != nil {
				// The error concerns this conversation only: continue with the next one.
				if !yield(opened{name: name, err: err}) {
					return false
				}
				break
			}
			if !yield(s.openHead(all, name, key, head.Name)) {
				return false
			}
		}
	}
	return true
}

func (s *streams) openHead(all *store.Store, name, key, head string) opened {
	c, err := all.Head(s.ctx, key, head)
	if err == nil {
		err = c.DAG().LoadAll()
	}
	if err != nil {
		return opened{name: name, err: err}
	}
	return opened{name: name, dag: c.DAG()}
}
