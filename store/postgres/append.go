package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/plait-dev/plait/store"
)

// appendOnce moves a head and inserts records, if the head has the expected version and points to the records that the
// new ones are linked to. It reads no other record and needs no lock: nothing removes the records that a head reaches.
const appendOnce = `WITH head AS (
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

// AppendOnce implements sqlstore.OnceAppender.
func (db *database) AppendOnce(
	ctx context.Context, a store.AppendRequest, known []byte, records [4][][]byte, to []byte,
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
	err = db.await(ctx, func(ctx context.Context) error {
		return conn.QueryRow(ctx, appendOnce, to, a.Header, a.Conversation, a.Head, int64(a.Expect), known,
			records[0], records[1], records[2], records[3]).Scan(&header)
	})

	// In the second case another transaction was first, or the head is not as expected: a full transaction decides.
	switch {
	case err == nil:
		return header, true, nil
	case errors.Is(err, pgx.ErrNoRows), isDuplicate(err), mayRunAgain(err):
		return nil, false, nil
	default:
		return nil, false, err
	}
}

// isDuplicate reports whether a statement had no effect because a row is there already.
func isDuplicate(err error) bool {
	const uniqueViolation = "23505"
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == uniqueViolation
}
