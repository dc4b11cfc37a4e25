package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"sync/atomic"

	"github.com/plait-dev/plait/internal/sqlstore"
)

// maxJobs is the maximum number of jobs in one transaction.
const maxJobs = 256

// job is a function to run on the writing connection.
type job struct {
	ctx   context.Context
	write func(sqlstore.Tx) error // nil for a reading job
	read  func(*connection) error // nil for a writing job
	taken atomic.Bool             // the job has begun, or its caller has given up
	done  chan struct{}           // closed after the job has run
	err   error                   // the result; set before done is closed
	fault any                     // the value of a panic; set before done is closed
}

// Write implements sqlstore.DB. Jobs waiting at the same time share one transaction.
func (db *database) Write(ctx context.Context, f func(sqlstore.Tx) error) error {
	if db.opts.ReadOnly {
		return ErrReadOnly
	}
	return db.do(&job{ctx: ctx, write: f})
}

// do runs a job and returns its error. A panic of the job becomes one of the caller.
func (db *database) do(j *job) error {
	j.done = make(chan struct{})
	if err := j.ctx.Err(); err != nil {
		return err
	}

	// If nobody writes, the job runs on this goroutine: without a switch to another one a commit takes less time.
	select {
	case db.turn <- struct{}{}:
		db.writer.run(db.waiting(j))
		<-db.turn
	default:
		if err := db.queue(j); err != nil {
			return err
		}
	}

	if j.fault != nil {
		panic(j.fault)
	}
	return j.err
}

// queue sends a job to the writing goroutine and waits for it. Once the job has begun, queue ignores the context: the
// effect of the job would be unknown.
func (db *database) queue(j *job) error {
	select {
	case db.jobs <- j:
	case <-j.ctx.Done():
		return j.ctx.Err()
	case <-db.closing:
		return fs.ErrClosed
	}

	select {
	case <-j.done:
	case <-j.ctx.Done():
		// If the job has not begun, the writer now skips it. Otherwise wait for its result.
		if j.taken.CompareAndSwap(false, true) {
			return j.ctx.Err()
		}
		<-j.done
	}
	return nil
}

// write runs the jobs of queue until the database is closed. It then keeps the turn: no further job can run.
func (db *database) write() {
	for {
		select {
		case j := <-db.jobs:
			db.turn <- struct{}{}
			db.writer.run(db.waiting(j)) // with the jobs that arrived during the wait for the turn
			<-db.turn
		case <-db.closing:
			db.turn <- struct{}{}
			if db.writer.conn != nil {
				db.closed = db.writer.conn.close()
			}
			return
		}
	}
}

// waiting returns j and the jobs waiting now, at most maxJobs.
func (db *database) waiting(j *job) []*job {
	jobs := []*job{j}
	for len(jobs) < maxJobs {
		select {
		case j := <-db.jobs:
			jobs = append(jobs, j)
		default:
			return jobs
		}
	}
	return jobs
}

// writer runs jobs on the connection for writing.
type writer struct {
	db   *database
	conn *connection // nil after it was lost
}

// run runs jobs: readers one by one, and writers in one transaction. It skips jobs without a waiting caller.
func (w *writer) run(jobs []*job) {
	if err := w.reconnect(); err != nil {
		for _, j := range jobs {
			j.end(err)
		}
		return
	}

	var writes []*job
	for _, j := range jobs {
		switch {
		case !j.taken.CompareAndSwap(false, true): // given up
		case j.read != nil:
			j.end(j.call(func() error { return j.read(w.conn) }))
		default:
			writes = append(writes, j)
		}
	}

	// A transaction may fail because of one job. Alone, the others succeed.
	if len(writes) > 0 && !w.together(writes) {
		for _, j := range writes {
			j.end(w.single(j))
		}
	}

	if w.conn.broken {
		_ = w.conn.close() // it is lost anyway
		w.conn = nil
	}
}

// reconnect opens the connection again if it was lost.
func (w *writer) reconnect() error {
	if w.conn != nil {
		return nil
	}

	// Check before connecting: a new connection would recreate a deleted file, or switch another file to WAL.
	if err := w.db.checkFile(); err != nil {
		return err
	}
	conn, _, err := w.db.connectWriter(context.Background())
	if err == nil {
		w.conn = conn
	}
	return err
}

// together runs jobs in one transaction, each in a savepoint, and ends them. It reports false if there is only one job,
// or if the transaction failed: nothing is changed then, and no job has ended.
func (w *writer) together(jobs []*job) bool {
	if len(jobs) == 1 || w.begin() != nil {
		return false
	}

	errs := make([]error, len(jobs))
	for i, j := range jobs {
		ok := false
		if ok, errs[i] = w.inSavepoint(j); !ok {
			w.rollback()
			return false
		}
	}
	if w.conn.run(`COMMIT`) != nil {
		w.rollback()
		return false
	}

	// No caller returns before the commit.
	w.db.commits(len(jobs))
	for i, j := range jobs {
		j.end(errs[i])
	}
	return true
}

// inSavepoint runs a job in a savepoint and returns its error. If the job fails, its writes are undone. It reports
// false if the whole transaction has failed.
func (w *writer) inSavepoint(j *job) (ok bool, err error) {
	if w.conn.run(`SAVEPOINT job`) != nil {
		return false, nil
	}
	err = w.call(j)

	// Some errors, such as a full disk, undo the whole transaction. Then there is no savepoint any more.
	if err != nil && w.conn.run(`ROLLBACK TO job`) != nil {
		return false, nil
	}
	return w.conn.run(`RELEASE job`) == nil, err
}

// single runs a job in a transaction of its own, and returns its error.
func (w *writer) single(j *job) error {
	j.fault = nil // it may have run before, in a failed transaction
	if err := w.begin(); err != nil {
		return err
	}

	err := w.call(j)
	if err == nil {
		err = w.conn.run(`COMMIT`)
	}
	if err != nil {
		w.rollback()
		return err
	}
	w.db.commits(1)
	return nil
}

// call calls the function of a writing job.
func (w *writer) call(j *job) error {
	defer w.conn.release()
	return j.call(func() error { return j.write(steady{w.conn}) })
}

// begin begins a writing transaction. It locks out other writers at once, not at the first write: none can change data
// already read by the transaction.
func (w *writer) begin() error {
	if err := w.db.checkFile(); err != nil {
		return err
	}
	limit := w.db.opts.BusyTimeout
	if err := w.conn.run(busyTimeout(0)); err != nil {
		return err
	}
	err := untilFree(context.Background(), limit, func() error { return w.conn.run(`BEGIN IMMEDIATE`) })
	if w.conn.run(busyTimeout(limit)) != nil {
		w.conn.broken = true // after this transaction
	}
	return err
}

// rollback ends a failed transaction. SQLite may have ended it already: then ROLLBACK is an error, and the next
// transaction begins without one.
func (w *writer) rollback() {
	if w.conn.run(`ROLLBACK`) == nil {
		return
	}

	if w.begin() == nil {
		_ = w.conn.run(`ROLLBACK`)
	}
}

// call calls f. It recovers a panic, and do panics again on the goroutine of the caller.
func (j *job) call(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			j.fault, err = r, errors.New("the job has panicked")
		}
	}()
	return f()
}

func (j *job) end(err error) {
	j.err = err
	close(j.done)
}
