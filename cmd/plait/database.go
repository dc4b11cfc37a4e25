package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/postgres"
	"github.com/plait-dev/plait/store/sqlite"
)

// A FILE may name a conversation in a database: sessions.db#KEY at head main, sessions.db#KEY#HEAD at another head. The
// URL of a PostgreSQL database is accepted in place of an SQLite file: postgres://host/name#KEY.

// mark separates the file of a database, the key of a conversation and the name of a head.
const mark = "#"

// database is a database with conversations: *sqlite.DB or *postgres.DB.
type database interface {
	store.Transactor
	Check(ctx context.Context) error
	Repair(ctx context.Context) error
	Close() error
}

// databases are the open databases and conversations of a command.
type databases struct {
	open map[string]database // by absolute path or URL
	// loaded are the conversations, by their FILE. An append to one notices writes of other programs since.
	loaded map[string]*store.Conversation
}

// close closes all databases.
func (b *databases) close() error {
	var errs []error
	for _, db := range b.open {
		errs = append(errs, db.Close())
	}
	return errors.Join(errs...)
}

// splitName splits a FILE naming a conversation in a database. For any other FILE the database is "".
func splitName(name string) (database, rest string) {
	if isURL(name) {
		database, rest, _ = strings.Cut(name, mark)
		return database, rest
	}
	if _, err := os.Stat(name); err == nil && !isDatabase(name) {
		return "", "" // another file, even if its name has a mark
	}

	// The path of a database may hold the mark too: try the shortest path first.
	for at := range name {
		if file := name[:at]; name[at:at+1] == mark && isDatabase(file) {
			return file, name[at+1:]
		}
	}

	// A database that does not exist yet is known by its name.
	file, rest, found := strings.Cut(name, mark)
	if _, err := os.Stat(file); found && errors.Is(err, fs.ErrNotExist) && databaseName(file) {
		return file, rest
	}
	if isDatabase(name) || databaseName(name) {
		return name, ""
	}
	return "", ""
}

// isURL reports whether a FILE is the URL of a PostgreSQL database, or of a conversation in one.
func isURL(name string) bool {
	return strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://")
}

// withoutPassword returns a FILE as it is printed.
func withoutPassword(name string) string {
	if !isURL(name) {
		return name
	}
	file, rest, found := strings.Cut(name, mark)
	if u, err := url.Parse(file); err == nil {
		file = u.Redacted()
	} else {
		file = "postgres://…" // it may hold a password anywhere
	}
	if found {
		file += mark + rest
	}
	return file
}

// databaseName reports whether a file has a usual name of a database.
func databaseName(file string) bool {
	return slices.Contains([]string{".db", ".sqlite", ".sqlite3"}, strings.ToLower(filepath.Ext(file)))
}

// fileName returns the base name of a FILE, for a file beside it. A key may hold a slash.
func fileName(name string) string {
	if database, _ := splitName(name); database != "" {
		name, _, _ = strings.Cut(database, "?")
	}
	return filepath.Base(name)
}

// isDatabase reports whether a file is an SQLite database, or the URL of a PostgreSQL database without a conversation.
func isDatabase(file string) bool {
	if isURL(file) {
		return !strings.Contains(file, mark)
	}
	return begins(file, "SQLite format 3\x00")
}

// stored reports whether a FILE names a conversation in a database.
func stored(name string) bool {
	if name == std {
		return false
	}
	database, _ := splitName(name)
	return database != ""
}

// store opens the conversations of a database. See database.
func (s *streams) store(file string, create bool) (*store.Store, error) {
	db, err := s.database(file, create)
	if err != nil {
		return nil, err
	}
	return store.New(db), nil
}

// existing opens a database named without a key.
func (s *streams) existing(file string) (database, error) {
	if _, err := os.Stat(file); err != nil && !isURL(file) {
		return nil, err
	}
	if !isDatabase(file) {
		return nil, fmt.Errorf("%s is not a database", withoutPassword(file))
	}
	return s.database(file, false)
}

// database opens a database. A missing file is made only with create, and a database of another program is refused.
func (s *streams) database(file string, create bool) (db database, err error) {
	name := file
	if !isURL(file) {
		if name, err = filepath.Abs(file); err != nil {
			return nil, err
		}
	}
	if db := s.databases.open[name]; db != nil {
		return db, nil
	}

	if isURL(file) {
		db, err = openURL(s.ctx, file, create)
	} else {
		db, err = openFile(s.ctx, file, create)
	}
	if err != nil {
		return nil, err
	}
	if s.databases.open == nil {
		s.databases.open = map[string]database{}
	}
	s.databases.open[name] = db
	return db, nil
}

// openURL opens a PostgreSQL database. Only with create it makes the tables.
func openURL(ctx context.Context, name string, create bool) (database, error) {
	db, err := postgres.Open(ctx, name, &postgres.Options{NoTables: !create})
	if errors.Is(err, postgres.ErrNoTables) {
		return nil, fmt.Errorf("%s is a database without conversations of Plait", withoutPassword(name))
	}
	if err != nil {
		// Errors of the driver do not show the password.
		return nil, fmt.Errorf("%s: %w", withoutPassword(name), err)
	}
	return db, nil
}

// openFile opens an SQLite database. If neither the file nor its folder can be written, it is opened for reading.
func openFile(ctx context.Context, file string, create bool) (database, error) {
	if _, err := os.Stat(file); err != nil && !(create && errors.Is(err, fs.ErrNotExist)) {
		return nil, err
	} else if err != nil {
		db, err := sqlite.Open(ctx, file, nil)
		if err != nil {
			return nil, err
		}
		return db, nil
	}

	// Opening a file for writing makes the tables in it, so a database of another program is refused before.
	reader, err := sqlite.Open(ctx, file, &sqlite.Options{ReadOnly: true})
	if errors.Is(err, sqlite.ErrNoTables) {
		return nil, fmt.Errorf("%s is a database without conversations of Plait", file)
	}
	if err != nil {
		return nil, err
	}
	db, err := sqlite.Open(ctx, file, nil)
	if errors.Is(err, sqlite.ErrReadOnly) {
		return reader, nil
	}
	if err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	return db, reader.Close()
}

// conversation opens the conversation of a FILE. With create it need not exist.
func (s *streams) conversation(name string, create bool) (*store.Conversation, error) {
	if c := s.databases.loaded[name]; c != nil {
		return c, nil
	}

	file, rest := splitName(name)
	all, err := s.store(file, create)
	if err != nil {
		return nil, err
	}
	shown := withoutPassword(file)
	if rest == "" {
		return nil, s.needsKey(all, shown)
	}

	// A missing record is ErrNotStored too, but with ErrRecord: the conversation is damaged, not missing.
	c, err := s.headOf(all, rest, create)
	if errors.Is(err, store.ErrNotStored) && !errors.Is(err, store.ErrRecord) {
		return nil, fmt.Errorf("%s has no conversation %q (see plait list %[1]s)", shown, rest)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", withoutPassword(name), err)
	}

	if s.databases.loaded == nil {
		s.databases.loaded = map[string]*store.Conversation{}
	}
	s.databases.loaded[name] = c
	return c, nil
}

// headOf opens a conversation by KEY or KEY#HEAD. A key may hold the mark too, so the whole text is tried first.
func (s *streams) headOf(all *store.Store, text string, create bool) (*store.Conversation, error) {
	c, err := all.Head(s.ctx, text, store.Main)
	if !errors.Is(err, store.ErrNotStored) || errors.Is(err, store.ErrRecord) {
		return c, err
	}

	at := strings.LastIndex(text, mark)
	if at > 0 && at < len(text)-1 {
		key, name := text[:at], text[at+1:]
		if c, err := all.Head(s.ctx, key, name); err == nil || !errors.Is(err, store.ErrNotStored) {
			return c, err
		}

		// A new head of a stored conversation is a fork.
		if c, err := all.Head(s.ctx, key, store.Main); create && err == nil {
			return c.Fork(s.ctx, name)
		}
	}

	// The whole text is the key of a new conversation.
	if create {
		return all.Conversation(s.ctx, text)
	}
	return nil, err
}

// needsKey returns the error for a database without a key, with the first keys.
func (s *streams) needsKey(all *store.Store, file string) error {
	const maxNames = 3
	var names []string
	for key, err := range all.Conversations(s.ctx, "") {
		if err != nil {
			return err
		}
		if len(names) == maxNames {
			names = append(names, "…")
			break
		}
		names = append(names, file+mark+key)
	}

	if len(names) == 0 {
		return fmt.Errorf("%s is a database without conversations: name one to make as %[1]s%sKEY", file, mark)
	}
	return fmt.Errorf("%s is a database: name one of its conversations: %s", file, strings.Join(names, ", "))
}

// append saves d as a conversation of a database. If d has redacted content, it replaces the content in the database.
func (s *streams) append(name string, d dag.DAG) error {
	if err := d.Err(); err != nil {
		return err
	}
	c, err := s.conversation(name, true)
	if err != nil {
		return err
	}

	err = c.Append(s.ctx, d)
	if errors.Is(err, dag.ErrNotErased) {
		err = c.Rewrite(s.ctx, d)
	}
	return conflicted(name, err)
}

// conflicted returns the error of an append in the command's words: if another program has moved the head, it names the
// FILE with the new nodes.
func conflicted(name string, err error) error {
	var moved *store.ConflictError
	if !errors.As(err, &moved) || moved.KeptHead == "" {
		return err
	}
	name = withoutPassword(name)
	file, _ := splitName(name)
	kept := file + mark + moved.Conversation + mark + moved.KeptHead
	text := fmt.Sprintf("%s was changed by another program meanwhile; the new nodes are kept as %s", name, kept)
	return &conflictError{text, kept, err}
}

// conflictError is a *store.ConflictError with a text for users of the command.
type conflictError struct {
	text string
	kept string // the FILE with the new nodes
	err  error
}

func (e *conflictError) Error() string { return e.text }
func (e *conflictError) Unwrap() error { return e.err }

// pruneStored removes the unreachable nodes of a conversation in a database.
func (s *streams) pruneStored(name string, dry bool) (what string, err error) {
	c, err := s.conversation(name, false)
	if err != nil {
		return "", err
	}
	file, _ := splitName(name)
	all, err := s.store(file, false)
	if err != nil {
		return "", err
	}

	pruned, err := all.Prune(s.ctx, c.Key(), dry)
	return outOfReach(pruned), err
}

// outOfReach returns what was pruned.
func outOfReach(p store.Pruned) string {
	return fmt.Sprintf("%s out of reach of all heads (%d bytes)", describe.Count(p.Records, "node"), p.Bytes)
}
