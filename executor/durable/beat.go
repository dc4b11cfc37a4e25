package durable

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/plait-dev/plait/store"
)

// lapse is after how many heartbeats without a renewal a process counts as lost. fresh is for how many a process may
// rely on its own last one: less, so that it never begins something when others may count it as lost.
const (
	lapse = 3.0
	fresh = 2.5
)

// lapseTime returns the time after which a process counts as lost, in microseconds.
func (e *Engine) lapseTime() int64 {
	return (time.Duration(lapse * float64(e.Heartbeat))).Microseconds()
}

// firstBeat inserts the row of the process.
func (p *process) firstBeat(ctx context.Context) error {
	return p.retry(ctx, func(ctx context.Context) error {
		var now int64
		sent := p.clock()
		err := p.db.Update(ctx, func(tx store.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO plait_beats (id, beat) VALUES ($1, `+tx.Now()+`) ON CONFLICT DO NOTHING`, p.id)
			if err != nil {
				return err
			}
			return query(ctx, tx, `SELECT `+tx.Now(), nil, func(rows store.Rows) error { return rows.Scan(&now) })
		})
		p.noteBeat(sent, now, err)
		return err
	})
}

// lastBeat deletes the row of the process: it has no jobs any more. If that fails, the row lapses.
func (p *process) lastBeat(ctx context.Context) {
	err := p.db.Update(ctx, func(tx store.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM plait_beats WHERE id = $1`, p.id)
		return err
	})
	if err != nil {
		p.Log.WarnContext(ctx, "durable: cannot delete the heartbeat", "error", err)
	}
}

// noteBeat notes a successful beat, and the time of the database. Both count from before the beat was sent.
func (p *process) noteBeat(sent time.Duration, now int64, err error) {
	if err != nil {
		return
	}
	p.time.set(sent, time.UnixMicro(now))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beat = sent
}

// alive reports whether no other process can count this one as lost at this moment.
func (p *process) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clock()-p.beat < time.Duration(fresh*float64(p.Heartbeat))
}

// untilAlive waits until the process is alive. It returns the cause of ctx if the process has lapsed or ends.
func (p *process) untilAlive(ctx context.Context) error {
	for !p.alive() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(p.Heartbeat / 8):
		}
	}
	return nil
}

// beatUntilDone renews the row of the process every heartbeat until ctx is done. It reports whether the process has
// lapsed.
func (p *process) beatUntilDone(ctx context.Context) (lapsed bool) {
	healthy := 0                   // the number of beats in a row that succeeded in time
	since := rand.IntN(strayBeats) // the number of healthy beats since this process looked for strays
	var unknown []int64            // the jobs that it did not know then
	for {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(p.Heartbeat):
		}

		timely := p.alive()
		sent := p.clock()
		seen, err := p.beatOnce(context.WithoutCancel(ctx))
		p.noteBeat(sent, seen.now, err)
		switch {
		case err != nil:
			p.Log.WarnContext(ctx, "durable: cannot renew the heartbeat", "error", err)
			healthy = 0
			continue
		case !seen.own:
			return true
		case !timely:
			healthy = 0
		default:
			healthy++
		}
		p.dropLost(seen)

		// After an interruption of the database, give the others the time for a beat: only those who miss it are lost.
		if healthy < 2 {
			continue
		}
		lost := seen.lapsed
		if since++; since >= strayBeats {
			since = 0
			var ids []string
			var err error
			if ids, unknown, err = p.strays(ctx, unknown); err != nil && ctx.Err() == nil {
				p.Log.WarnContext(ctx, "durable: cannot look for jobs that nobody executes", "error", err)
			}
			lost = append(lost, ids...)
		}
		for _, id := range lost {
			if err := p.handBack(ctx, id); err != nil && ctx.Err() == nil {
				p.Log.WarnContext(ctx, "durable: cannot hand back the jobs of a lost process", "process", id, "error", err)
			}
		}
	}
}

// strays looks for running jobs that no process executes:
//
//   - A process may be frozen while it fetches a job: the fetch is committed when it wakes up, after its jobs were handed
//     back. If it dies then, nobody else finds the job. strays returns the processes with running jobs and without a row.
//   - The reply to River's fetch may be lost: the job is unknown in its own process. For a moment after its fetch, and
//     after its last step, each job is. So those are handed back that were unknown before too. strays returns those that
//     are unknown now.
func (p *process) strays(ctx context.Context, before []int64) (processes []string, unknown []int64, err error) {
	d := p.queue.dialect()
	err = p.db.View(ctx, func(tx store.Tx) error {
		processes, unknown = nil, nil
		return query(ctx, tx, `SELECT id, worker FROM (
			SELECT id, `+d.worker+` AS worker FROM `+d.jobs+` WHERE state = 'running' AND kind IN `+kinds+`) AS held
			WHERE worker = $1 OR worker NOT IN (SELECT id FROM plait_beats)`, []any{p.id}, func(rows store.Rows) error {
			var job int64
			var worker string
			err := rows.Scan(&job, &worker)
			switch {
			case worker != p.id && !slices.Contains(processes, worker):
				processes = append(processes, worker)
			case worker == p.id && !p.knows(job):
				unknown = append(unknown, job)
			}
			return err
		})
	})
	lost := func(id int64) bool { return slices.Contains(before, id) && !p.knows(id) }
	if err != nil || !slices.ContainsFunc(unknown, lost) {
		return processes, unknown, err
	}

	return processes, unknown, p.db.Update(ctx, func(tx store.Tx) error {
		_, err := p.replaceAll(ctx, tx, p.id, lost)
		return err
	})
}

// strayBeats is after how many heartbeats a process looks for strays.
const strayBeats = 15

// seen is what a beat has found.
type seen struct {
	own     bool     // the row of this process is there
	now     int64    // the time of the database, in microseconds
	lapsed  []string // the processes whose row has lapsed
	asked   []int64  // the running jobs of this process, as it knows them
	running []int64  // those of them that are running in the database
}

// beatOnce renews the row of the process, and looks for lapsed rows and for its own jobs.
func (p *process) beatOnce(ctx context.Context) (s seen, err error) {
	p.mu.Lock()
	for id := range p.work {
		s.asked = append(s.asked, id)
	}
	p.mu.Unlock()

	read := func(rows store.Rows) error {
		var what, job int64
		var id string
		err := rows.Scan(&what, &id, &job)
		switch what {
		case 1:
			s.own = true
		case 2:
			s.lapsed = append(s.lapsed, id)
		case 3:
			s.running = append(s.running, job)
		case 4:
			s.now = job
		}
		return err
	}

	d := p.queue.dialect()
	others := func(now string) string {
		return ` UNION ALL SELECT 4, '', ` + now + `
			UNION ALL SELECT 2, id, 0 FROM plait_beats WHERE id <> $1 AND beat < ` + now + ` - $2`
	}
	running := func(parameter string) string {
		return ` UNION ALL SELECT 3, '', id FROM ` + d.jobs + ` WHERE ` + d.listed(parameter) + ` AND state = 'running'`
	}

	// PostgreSQL: one statement without a transaction, because all processes send it all the time.
	if d.writesInWith {
		err = p.db.View(ctx, func(tx store.Tx) error {
			return query(ctx, tx, `WITH own AS (UPDATE plait_beats SET beat = `+tx.Now()+` WHERE id = $1 RETURNING id)
				SELECT 1, id, 0 FROM own`+others(tx.Now())+running("$3"),
				[]any{p.id, p.lapseTime(), list(s.asked)}, read)
		})
		return s, err
	}

	asked := s.asked
	err = p.db.Update(ctx, func(tx store.Tx) error {
		s = seen{asked: asked}
		if _, err := tx.Exec(ctx, `UPDATE plait_beats SET beat = `+tx.Now()+` WHERE id = $1`, p.id); err != nil {
			return err
		}
		return query(ctx, tx, `SELECT 1, id, 0 FROM plait_beats WHERE id = $1`+others(tx.Now())+running("$3"),
			[]any{p.id, p.lapseTime(), list(asked)}, read)
	})
	return s, err
}

// dropLost ends the contexts of jobs that are no longer running in the database: they were cancelled. A job that ends
// at this moment may be among them; its context does not matter any more.
func (p *process) dropLost(s seen) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range s.asked {
		if cancel := p.work[id]; cancel != nil && !slices.Contains(s.running, id) {
			cancel(errLost)
		}
	}
}

// lostJob is a running job of a lost process.
type lostJob struct {
	id             int64
	kind           string
	args, metadata string
	queue          string
	priority       int64
}

// rawArgs are the arguments of a job as they are stored.
type rawArgs struct {
	kind string
	json.RawMessage
}

// Kind implements river.JobArgs.
func (a rawArgs) Kind() string { return a.kind }

// handBack gives the jobs of a lost process to others, unless its row is current. The first process that calls it discards
// each job and inserts another one: if the same job were made available again, the lost process could still finish it when
// it wakes up.
func (p *process) handBack(ctx context.Context, lost string) error {
	jobs := 0
	err := p.db.Update(ctx, func(tx store.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM plait_beats WHERE id = $1 AND beat < `+tx.Now()+` - $2`, lost, p.lapseTime())
		if err != nil {
			return err
		}
		back := false
		err = query(ctx, tx, `SELECT id FROM plait_beats WHERE id = $1`, []any{lost}, func(store.Rows) error {
			back = true
			return nil
		})
		if err != nil || back {
			return err // it has come back
		}

		jobs, err = p.replaceAll(ctx, tx, lost, func(int64) bool { return true })
		return err
	})
	if err == nil && jobs > 0 {
		p.Log.WarnContext(ctx, "durable: the jobs of a lost process were handed back", "process", lost, "jobs", jobs)
	}
	return err
}

// replaceAll replaces the running jobs of a worker that are lost. It returns their number.
func (p *process) replaceAll(ctx context.Context, tx store.Tx, worker string, lost func(id int64) bool) (int, error) {
	d := p.queue.dialect()
	var found []lostJob
	err := query(ctx, tx, `SELECT id, kind, `+d.args+`, `+d.metadata+`, queue, priority FROM `+d.jobs+`
		WHERE state = 'running' AND kind IN `+kinds+` AND `+d.worker+` = $1 ORDER BY id`+d.lock, []any{worker},
		func(rows store.Rows) error {
			var j lostJob
			err := rows.Scan(&j.id, &j.kind, &j.args, &j.metadata, &j.queue, &j.priority)
			if lost(j.id) {
				found = append(found, j)
			}
			return err
		})
	for _, j := range found {
		if err == nil {
			err = p.replace(ctx, tx, j)
		}
	}
	return len(found), err
}

// knows reports whether this process works a job.
func (p *process) knows(job int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.work[job] != nil
}

// replace discards a job of a lost process, and inserts another one in its place.
func (p *process) replace(ctx context.Context, tx store.Tx, j lostJob) error {
	d := p.queue.dialect()
	n, err := tx.Exec(ctx, `UPDATE `+d.jobs+` SET state = '`+string(rivertype.JobStateDiscarded)+`', finalized_at = `+d.now+`
		WHERE id = $1 AND state = 'running'`, j.id)
	if err != nil || n == 0 {
		return err
	}
	switch j.kind {
	case kindRun:
		return p.replaceRun(ctx, tx, j)
	case kindCall:
		return p.replaceCall(ctx, tx, j)
	}
	_, err = p.insertAgain(ctx, tx, j)
	return err
}

// insertAgain inserts a job with the arguments and the metadata of a lost one, and returns its ID.
func (p *process) insertAgain(ctx context.Context, tx store.Tx, j lostJob) (int64, error) {
	ids, err := p.queue.insert(ctx, tx, []river.InsertManyParams{{
		Args: rawArgs{j.kind, json.RawMessage(j.args)}, InsertOpts: &river.InsertOpts{
			Queue: j.queue, Priority: int(j.priority), MaxAttempts: p.Attempts, Metadata: []byte(j.metadata),
		},
	}})
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// replaceCall inserts the job of a call again, with one loss more.
func (p *process) replaceCall(ctx context.Context, tx store.Tx, j lostJob) error {
	var before noted
	if err := json.Unmarshal([]byte(j.metadata), &before); err != nil {
		return err
	}
	before.Losses++
	metadata, err := json.Marshal(before)
	if err != nil {
		return err
	}
	j.metadata = string(metadata)
	_, err = p.insertAgain(ctx, tx, j)
	return err
}

// replaceRun inserts the job of a run again, or parks the run if too many processes were lost in the same step.
func (p *process) replaceRun(ctx context.Context, tx store.Tx, j lostJob) error {
	var args runJob
	if err := json.Unmarshal([]byte(j.args), &args); err != nil {
		return err
	}
	runs, err := queryRuns(ctx, tx, `id = $1 AND busy = 1 AND job = $2`+p.queue.dialect().lock, args.Run, j.id)
	if err != nil || len(runs) == 0 {
		return err // it has ended, or has another job
	}
	r := runs[0]

	// A step since the last loss shows that the run does not crash its processes.
	var version uint64
	h, err := tx.Head(ctx, r.Conversation, r.Head)
	if err == nil {
		version = h.Version
	}
	var now noted
	if err := json.Unmarshal([]byte(j.metadata), &now); err != nil {
		return err
	}
	if now.Version != version {
		now = noted{Version: version}
	}
	now.Losses++
	if now.Losses > p.Losses {
		return p.park(ctx, tx, r, j.id, textLosses(now.Losses))
	}

	metadata, err := json.Marshal(now)
	if err != nil {
		return err
	}
	j.metadata = string(metadata)
	job, err := p.insertAgain(ctx, tx, j)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE plait_index SET job = $1 WHERE id = $2`, job, r.ID)
	return err
}

// park parks a run whose job was discarded. The job becomes pending, and is no longer that of the lost process.
func (p *process) park(ctx context.Context, tx store.Tx, r Run, job int64, reason string) error {
	d := p.queue.dialect()
	_, err := tx.Exec(ctx, `UPDATE `+d.jobs+` SET state = 'pending', finalized_at = NULL WHERE id = $1`, job)
	if err != nil {
		return err
	}
	if err := p.note(ctx, tx, job, noted{Parked: reason}); err != nil {
		return err
	}
	_, err = setState(ctx, tx, r.ID, Parked, reason, job)
	return err
}
