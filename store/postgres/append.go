package postgres

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/store"
)

// appendOne moves a head and inserts records, if the head has the expected version and points to the links of the new
// records. It reads no other record and needs no lock: nothing removes records within reach of a head.
const appendOne = `WITH head AS (
	UPDATE plait_heads h SET version = version + 1, nodes = $1, header = COALESCE($2, header)
	FROM plait_conversations c
	WHERE c.name = $3 AND h.conv = c.num AND h.name = $4 AND h.version = $5 AND (h.nodes = $6 OR LENGTH($6) = 0)
	RETURNING h.conv, h.header
), inserted AS (
	INSERT INTO plait_nodes (conv, id, links, sum, line)
	SELECT head.conv, r.id, r.links, r.sum, r.line
	FROM head, unnest($7::bytea[], $8::bytea[], $9::bytea[], $10::bytea[]) WITH ORDINALITY AS r (id, links, sum, line, ord)
	ORDER BY r.ord
) SELECT header FROM head`

// statement is a statement with its parameters.
type statement struct{ args []any }

// add adds a parameter, and returns its name.
func (s *statement) add(value any) string {
	s.args = append(s.args, value)
	return "$" + strconv.Itoa(len(s.args))
}

// maxListed is the maximum number of values with a parameter for each. More of them are one array: the server guesses the
// length of an array, and makes a plan for each execution if a guess is far off.
const maxListed = 8

// list adds values of a type, and returns a list for IN.
func list[V any](s *statement, values []V, of string) string {
	if len(values) > maxListed {
		return `SELECT unnest(` + s.add(values) + `::` + of + `[])`
	}
	names := make([]string, len(values))
	for i, value := range values {
		names[i] = s.add(value)
	}
	return strings.Join(names, ", ")
}

// table adds the columns of records, and returns a table of them in their order.
func (s *statement) table(records [4][][]byte) string {
	if len(records[0]) > maxListed {
		var names []string
		for _, column := range records {
			names = append(names, s.add(column)+`::bytea[]`)
		}
		return `unnest(` + strings.Join(names, ", ") + `) WITH ORDINALITY`
	}

	var rows []string
	for i := range records[0] {
		row := ""
		for _, column := range records {
			row += s.add(column[i]) + `::bytea, `
		}
		rows = append(rows, `(`+row+strconv.Itoa(i+1)+`)`)
	}
	return `(VALUES ` + strings.Join(rows, ", ") + `)`
}

// appending returns a statement as appendOne. Its records may be linked to any stored record: the conversation is locked
// against Prune (see sqlstore.Dialect.ShareUnpruned). It also removes rows of the inbox, and has a row with the number of
// the conversation, the header, and the number of inserted records. Where is a further condition, and stored is what
// happens to a record that is stored; "" is an error.
func (s *statement) appending(
	a store.AppendRequest, known []byte, records [4][][]byte, to []byte, where, stored string,
) string {
	name := s.add(a.Conversation)
	nodes := s.add(known)
	links := `h.nodes = ` + nodes + ` OR LENGTH(` + nodes + `) = 0`
	if ids := sqlstore.KnownIDs(known); len(ids) > 0 {
		links += ` OR (SELECT COUNT(*) FROM plait_nodes n WHERE n.conv = h.conv AND n.id IN (` + list(s, ids, "bytea") + `)) = ` +
			s.add(int64(len(ids)))
	}

	text := `head AS (
		UPDATE plait_heads h SET version = version + 1, nodes = ` + s.add(to) + `, header = COALESCE(` + s.add(a.Header) + `, header)
		FROM (SELECT num FROM plait_conversations WHERE name = ` + name + where +
		strings.Replace(dialect.ShareUnpruned, "$3", name, 1) + `) c
		WHERE h.conv = c.num AND h.name = ` + s.add(a.Head) + ` AND h.version = ` + s.add(int64(a.Expect)) + ` AND (` + links + `)
		RETURNING h.conv, h.header
	)`
	inserted := `0`
	if len(records[0]) > 0 {
		inserted = `(SELECT COUNT(*) FROM inserted)`
		text += `, inserted AS (
			INSERT INTO plait_nodes (conv, id, links, sum, line)
			SELECT head.conv, r.id, r.links, r.sum, r.line FROM head, ` + s.table(records) + ` AS r (id, links, sum, line, ord)
			ORDER BY r.ord ` + stored + ` RETURNING 1
		)`
	}

	if len(a.Taken) > 0 {
		text += `, removed AS (DELETE FROM plait_inbox USING head WHERE num IN (` + list(s, a.Taken, "bigint") + `))`
	}
	return text + ` SELECT conv, header, ` + inserted + ` FROM head`
}

// AppendGuarded implements sqlstore.GuardedAppender.
func (db *database) AppendGuarded(
	ctx context.Context, a store.AppendRequest, known []byte, records [4][][]byte, to []byte, query string, args []any,
) (header []byte, done bool, err error) {
	if err := db.enter(); err != nil {
		return nil, false, err
	}
	defer db.running.Done()

	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return nil, false, err
	}
	defer conn.Release()

	// The query comes first: its parameters keep their names.
	s := statement{armored(args)}
	text := `WITH guard AS (` + query + `), ` + s.appending(a, known, records, to, ` AND EXISTS (SELECT 1 FROM guard)`, "")
	err = db.await(ctx, func(ctx context.Context) error {
		return conn.QueryRow(ctx, text, s.args...).Scan(nil, &header, nil)
	})

	// As in appendAlone: a full transaction decides.
	if errors.Is(err, pgx.ErrNoRows) || isDuplicate(err) || mayRunAgain(err) {
		return nil, false, nil
	}
	return header, err == nil, err
}

// Append implements sqlstore.Appender.
func (q queries) Append(
	ctx context.Context, a store.AppendRequest, known []byte, records [4][][]byte, to []byte,
) (conv int64, header []byte, inserted int, err error) {
	var s statement
	text := `WITH ` + s.appending(a, known, records, to, "", `ON CONFLICT (conv, id) DO NOTHING`)
	rows, err := q.Query(ctx, text, s.args...)
	if err != nil {
		return 0, nil, 0, err
	}
	if rows.Next() {
		err = rows.Scan(&conv, &header, &inserted)
	}
	return conv, header, inserted, errors.Join(err, rows.Close())
}

// appendAll is appendOne for a group of appends. It takes about 30 µs longer than appendOne if the group has one.
//
// An append to a locked head or conversation is left out. Waiting for one lock would delay the whole group, and two
// groups could wait for each other.
const appendAll = `WITH locked AS (
	SELECT h.num, a.member, a.nodes, a.header
	FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bytea[], $5::bytea[], $6::bytea[])
		WITH ORDINALITY AS a (conversation, name, expect, known, nodes, header, member)
	JOIN plait_conversations c ON c.name = a.conversation
	JOIN plait_heads h ON h.conv = c.num AND h.name = a.name
	WHERE h.version = a.expect AND (h.nodes = a.known OR LENGTH(a.known) = 0)
	FOR NO KEY UPDATE OF h SKIP LOCKED FOR KEY SHARE OF c SKIP LOCKED
), moved AS (
	UPDATE plait_heads h SET version = h.version + 1, nodes = l.nodes, header = COALESCE(l.header, h.header)
	FROM locked l WHERE h.num = l.num
	RETURNING h.conv, h.header, l.member
), inserted AS (
	INSERT INTO plait_nodes (conv, id, links, sum, line)
	SELECT m.conv, r.id, r.links, r.sum, r.line
	FROM unnest($7::bigint[], $8::bytea[], $9::bytea[], $10::bytea[], $11::bytea[])
		WITH ORDINALITY AS r (member, id, links, sum, line, ord)
	JOIN moved m ON m.member = r.member
	ORDER BY r.ord
) SELECT member, header FROM moved`

// AppendOnce implements sqlstore.OnceAppender. An append has a statement of its own while no other one does. All others
// run in groups: a busy server then has fewer statements and commits.
func (db *database) AppendOnce(
	ctx context.Context, a store.AppendRequest, known []byte, records [4][][]byte, to []byte,
) (header []byte, done bool, err error) {
	if err := db.enter(); err != nil {
		return nil, false, err
	}
	defer db.running.Done()

	m := &member{request: a, known: known, to: to, records: records}
	if db.groups.beginAlone() {
		defer db.groups.endAlone()
		err := db.appendAlone(ctx, m)
		return m.header, err == nil && m.done, err
	}
	return db.appendInGroup(ctx, m)
}

// appendAlone appends with a statement of its own.
func (db *database) appendAlone(ctx context.Context, m *member) error {
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()

	a := m.request
	err = db.await(ctx, func(ctx context.Context) error {
		return conn.QueryRow(ctx, appendOne, m.to, a.Header, a.Conversation, a.Head, int64(a.Expect), m.known,
			m.records[0], m.records[1], m.records[2], m.records[3]).Scan(&m.header)
	})
	m.done = err == nil

	// Another transaction was first, or the head is not as expected: a full transaction decides.
	if errors.Is(err, pgx.ErrNoRows) || isDuplicate(err) || mayRunAgain(err) {
		return nil
	}
	return err
}

// appendInGroup appends together with other waiting appends.
func (db *database) appendInGroup(ctx context.Context, m *member) (header []byte, done bool, err error) {
	// The caller may return before its group has run, and then change these.
	m.request.Header = bytes.Clone(m.request.Header)
	for i, line := range m.records[3] {
		m.records[3][i] = bytes.Clone(line)
	}

	m.ended = make(chan struct{})
	db.groups.add(m)
	db.startGroup()
	select {
	case <-m.ended:
		return m.header, m.done, m.err
	case <-ctx.Done():
		db.groups.leave(m)
		return nil, false, ctx.Err()
	}
}

// startGroup runs the waiting appends as a group, unless too many groups are running.
func (db *database) startGroup() {
	g := db.groups.begin()
	if g == nil {
		return
	}
	db.running.Go(func() {
		defer g.cancel()
		db.appendGroup(g)
		for _, m := range g.members {
			close(m.ended)
		}

		// Others have arrived meanwhile.
		db.groups.end()
		db.startGroup()
	})
}

// appendGroup runs a group and sets the results of its members.
func (db *database) appendGroup(g *group) {
	err := db.tryGroup(g)
	if err == nil {
		return
	}

	// The server has undone the statement, perhaps because of one member: a transaction for each decides.
	var server *pgconn.PgError
	undone := errors.As(err, &server) && server.SeverityUnlocalized == "ERROR"
	for _, m := range g.members {
		m.done = false // a row may have come before the error
		if !undone {
			m.err = err
		}
	}
}

func (db *database) tryGroup(g *group) error {
	conn, err := db.pool.Acquire(g.ctx)
	if err != nil {
		return err
	}
	defer conn.Release()

	return db.await(g.ctx, func(ctx context.Context) error {
		rows, err := conn.Query(ctx, appendAll, parameters(g.members)...)
		if err != nil {
			return err
		}

		var number int64
		var header []byte
		_, err = pgx.ForEachRow(rows, []any{&number, &header}, func() error {
			// WITH ORDINALITY counts from 1.
			m := g.members[number-1]
			m.header, m.done = bytes.Clone(header), true
			return nil
		})
		return err
	})
}

// parameters returns the parameters of appendAll, each of them a column.
func parameters(members []*member) []any {
	var conversations, heads []string
	var expect, owners []int64
	var known, to, headers [][]byte
	var records [4][][]byte

	for i, m := range members {
		conversations = append(conversations, m.request.Conversation)
		heads = append(heads, m.request.Head)
		expect = append(expect, int64(m.request.Expect))
		known, to, headers = append(known, m.known), append(to, m.to), append(headers, m.request.Header)

		for column := range records {
			records[column] = append(records[column], m.records[column]...)
		}
		// The table of records names the append of each by its number, from 1.
		for range m.records[0] {
			owners = append(owners, int64(i+1))
		}
	}
	return []any{conversations, heads, expect, known, to, headers, owners, records[0], records[1], records[2], records[3]}
}

// isDuplicate reports whether a statement had no effect because a row is there already.
func isDuplicate(err error) bool {
	const uniqueViolation = "23505"
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == uniqueViolation
}
