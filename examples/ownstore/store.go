package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"iter"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// begin store

// table is a store.Driver: one table for heads and records, as JSON. Its numbers are the order in which the rows
// were first stored. The SQL is that of SQLite; other databases write json_group_array and json_quote in other words.
type table struct{ *sql.DB }

const schema = `CREATE TABLE IF NOT EXISTS plait (
		number INTEGER PRIMARY KEY, conversation TEXT, kind TEXT, name TEXT, value TEXT, UNIQUE (conversation, kind, name));
	CREATE TRIGGER IF NOT EXISTS last_head AFTER DELETE ON plait WHEN NOT EXISTS (SELECT * FROM plait
		WHERE conversation = old.conversation AND kind = 'head') BEGIN DELETE FROM plait WHERE conversation = old.conversation; END;`

// get returns the JSON value of a row, or nil without a row.
func get[T any](row *sql.Row) (*T, error) {
	var text []byte
	switch err := row.Scan(&text); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	}
	value := new(T)
	return value, json.Unmarshal(text, value)
}

const one = `SELECT value FROM plait WHERE conversation = ? AND kind = ? AND name = ?`

// list returns the JSON values of a query.
func list[T any](ctx context.Context, t table, query string, args ...any) ([]T, error) {
	values, err := get[[]T](t.QueryRowContext(ctx, `SELECT json_group_array(json(value)) FROM (`+query+`)`, args...))
	if err != nil {
		return nil, err
	}
	return *values, nil
}

func (t table) Append(ctx context.Context, a store.AppendRequest) (store.Head, error) {
	tx, err := t.BeginTx(ctx, nil)
	if err != nil {
		return store.Head{}, err
	}
	defer tx.Rollback()

	current, err := get[store.Head](tx.QueryRowContext(ctx, one, a.Conversation, "head", a.Head))
	if err != nil {
		return store.Head{}, err
	}
	stored := func(id node.ID) (*store.Record, error) {
		return get[store.Record](tx.QueryRowContext(ctx, one, a.Conversation, "record", id.String()))
	}
	head, changed, err := a.Apply(current, stored)
	if err != nil {
		return store.Head{}, err
	}

	put := func(kind, name string, value any) {
		text, failed := json.Marshal(value)
		if err = errors.Join(err, failed); err == nil {
			_, err = tx.ExecContext(ctx, `INSERT INTO plait (conversation, kind, name, value) VALUES (?, ?, ?, ?)
				ON CONFLICT DO UPDATE SET value = excluded.value`, a.Conversation, kind, name, text)
		}
	}
	for _, r := range changed {
		put("record", r.ID.String(), r)
	}
	if put("head", a.Head, head); err == nil {
		err = tx.Commit()
	}
	return head, err
}

func (t table) Head(ctx context.Context, conversation, name string) (store.Head, error) {
	head, err := get[store.Head](t.QueryRowContext(ctx, one, conversation, "head", name))
	if head == nil {
		return store.Head{}, errors.Join(err, store.ErrNotStored)
	}
	return *head, err
}

func (t table) Heads(ctx context.Context, conversation string, page store.Page) ([]store.Head, error) {
	return list[store.Head](ctx, t, `SELECT value FROM plait WHERE conversation = ? AND kind = 'head' AND name > ?
		AND substr(name, 1, length(?)) = ? ORDER BY name LIMIT ?`, conversation, page.After, page.Prefix, page.Prefix, page.Max())
}

func (t table) Conversations(ctx context.Context, page store.Page) ([]string, error) {
	return list[string](ctx, t, `SELECT DISTINCT json_quote(conversation) AS value FROM plait WHERE conversation > ?
		AND substr(conversation, 1, length(?)) = ? ORDER BY conversation LIMIT ?`, page.After, page.Prefix, page.Prefix, page.Max())
}

func (t table) Open(ctx context.Context, conversation, name string, _ []node.ID) (o store.Opened, err error) {
	if o.Head, err = t.Head(ctx, conversation, name); err == nil {
		o.Records, err = list[store.Record](ctx, t, `SELECT value FROM plait WHERE conversation = ? AND kind = 'record'
			ORDER BY number`, conversation)
	}
	return o, err
}

func (t table) RemoveHead(ctx context.Context, conversation, name string, version uint64) error {
	removed, err := get[string](t.QueryRowContext(ctx, `DELETE FROM plait WHERE conversation = ? AND kind = 'head' AND name = ?
		AND value ->> 'Version' = ? RETURNING json_quote(name)`, conversation, name, version))
	if removed != nil || err != nil {
		return err
	}
	current, err := t.Head(ctx, conversation, name)
	if current.Name = name; err != nil && !errors.Is(err, store.ErrNotStored) {
		return err
	}
	return &store.ConflictError{Conversation: conversation, Head: name, Expect: version, Current: current}
}

func (t table) Delete(ctx context.Context, conversation string) error {
	_, err := t.ExecContext(ctx, `DELETE FROM plait WHERE conversation = ?`, conversation)
	return err
}

// What a driver need not do: read a part of a conversation, remove what no head reaches, report moved heads.

type records = iter.Seq2[store.Record, error]

func (table) Read(context.Context, string, []node.ID, []node.ID) records { return nil }
func (table) Records(context.Context, string, []node.ID) records         { return nil }
func (table) Watch(context.Context, string) iter.Seq2[store.Head, error] { return nil }
func (table) Prune(context.Context, string, bool) (p store.Pruned, err error) {
	return p, errors.ErrUnsupported
}

// end store
