package roundtrip

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/batch"
	"github.com/plait-dev/plait/api/internal/idle"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/secret"
	"github.com/plait-dev/plait/internal/wire"
)

// InBatch yields the events of a request that is sent in a batch. Read reads its response.
func InBatch(
	ctx context.Context, b *batch.Batches, d batch.Driver, body *wire.Parts,
	read func(*http.Response) iter.Seq2[api.Event, error],
) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		response, err := b.Do(ctx, d, body.Bytes())
		if err != nil {
			yield(nil, err)
			return
		}
		read(&http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(bytes.NewReader(response)),
		})(yield)
	}
}

// Step does a step of a batch, which may send several requests with the context of the watch. Its error is one that
// Stream could yield.
func (t Trip) Step(ctx context.Context, name string, do func(*idle.Watch) error) error {
	var secrets secret.Set
	watch := idle.NewWatch(secret.Collecting(ctx, &secrets), idle.Whole, api.ErrStalled)
	defer watch.Stop()
	if err := do(watch); err != nil {
		return withoutSecrets(t.failure(ctx, watch, name, err), &secrets)
	}
	return nil
}

// Results returns the function Results of a driver: do adds the results.
func (t Trip) Results(
	name string, do func(watch *idle.Watch, id string, keys []string, add func(batch.Line)) error,
) func(ctx context.Context, id string, keys []string) iter.Seq2[batch.Line, error] {
	return func(ctx context.Context, id string, keys []string) iter.Seq2[batch.Line, error] {
		return func(yield func(batch.Line, error) bool) {
			left := false
			add := func(line batch.Line) { left = left || !yield(line, nil) }
			err := t.Step(ctx, name, func(watch *idle.Watch) error { return do(watch, id, keys, add) })
			if err != nil && !left {
				yield(batch.Line{}, err)
			}
		}
	}
}

// MaxResults limits a file of results, in bytes, and maxLine one line of it.
const (
	MaxResults = 64 << 30
	maxLine    = 64 << 20
)

// Lines calls take with each line of a file of results. A last line that is not JSON was cut off.
func Lines(name string, file io.Reader, take func(line []byte) error) error {
	return linesOf(name, file, maxLine, take)
}

func linesOf(name string, file io.Reader, limit int, take func(line []byte) error) error {
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, limit)
	for more := lines.Scan(); more; {
		line := bytes.Clone(bytes.TrimSpace(lines.Bytes()))
		if more = lines.Scan(); len(line) == 0 {
			continue
		}
		switch {
		case content.JSON(line).Valid():
			if err := take(line); err != nil {
				return err
			}
		case more:
			return Protocol(name, "a line of the results is not JSON")
		default:
			return Cut(name, errors.Join(lines.Err(), errors.New("the results end in the middle of a line")))
		}
	}
	if err := lines.Err(); err != nil {
		return Cut(name, err)
	}
	return nil
}
