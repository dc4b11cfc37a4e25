package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/batch"
	"github.com/plait-dev/plait/api/internal/idle"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/wire"
)

// driver returns OpenAI's Batch API. See developers.openai.com/api/docs/guides/batch.
func (t *transport) driver(o Options) batch.Driver {
	trip := roundtrip.Trip{Explain: func(error) *api.Error { return nil }}
	return batch.Driver{
		API: t.api, Model: t.model, Requests: 50_000, Bytes: 200 << 20,
		Create: func(ctx context.Context, requests []batch.Line) (id string, err error) {
			var file, made batchState
			err = trip.Step(ctx, t.api, func(watch *idle.Watch) error {
				kind, body := t.batchFile(requests)
				return t.ask(watch, &file, http.MethodPost, "files", kind, body, o)
			})
			if err != nil {
				return "", fmt.Errorf("%w: %w", batch.ErrNotCreated, err)
			}
			err = trip.Step(ctx, t.api, func(watch *idle.Watch) error {
				body := `{"input_file_id":` + string(jsonx.Quote(file.ID)) + `,"endpoint":"/v1/` + t.path + `","completion_window":"24h"}`
				return t.ask(watch, &made, http.MethodPost, "batches", "application/json", wire.NewParts([]byte(body)), o)
			})
			return made.ID, err
		},
		Results: trip.Results(t.api, func(watch *idle.Watch, id string, keys []string, add func(batch.Line)) error {
			return t.results(watch, id, keys, o, add)
		}),
	}
}

// batchState is a response about a batch or a file.
type batchState struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Output string `json:"output_file_id"`
	Failed string `json:"error_file_id"`
	Errors struct {
		Data []struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"data"`
	} `json:"errors"`
}

// ask sends a request and decodes the response.
func (t *transport) ask(watch *idle.Watch, into *batchState, method, path, kind string, body *wire.Parts, o Options) error {
	res, err := t.call(watch, method, path, kind, body, o)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return roundtrip.Cut(t.api, err)
	}
	if err := json.Unmarshal(text, into, jsonx.Lenient); err != nil {
		return roundtrip.Protocol(t.api, "the response is not a batch: %w", err)
	} else if into.ID == "" {
		return roundtrip.Protocol(t.api, "the response about a batch does not name it")
	}
	return nil
}

// batchFile returns the file with the requests, as a form, and its content type. It shares the bodies of the requests.
func (t *transport) batchFile(requests []batch.Line) (kind string, form *wire.Parts) {
	// The keys are hashes of the requests, so none contains the boundary by chance.
	boundary := "plait-" + requests[0].Key
	parts := [][]byte{[]byte("--" + boundary + "\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--" + boundary +
		"\r\nContent-Disposition: form-data; name=\"file\"; filename=\"plait.jsonl\"\r\nContent-Type: application/jsonl\r\n\r\n")}
	for _, r := range requests {
		begin := `{"custom_id":"` + r.Key + `","method":"POST","url":"/v1/` + t.path + `","body":`
		parts = append(parts, []byte(begin), r.Body, []byte("}\n"))
	}
	return "multipart/form-data; boundary=" + boundary, wire.NewParts(append(parts, []byte("\r\n--"+boundary+"--\r\n"))...)
}

// results adds the results of a batch. Those of a batch that did not end by itself are not whole.
func (t *transport) results(watch *idle.Watch, id string, keys []string, o Options, add func(batch.Line)) error {
	var b batchState
	if err := t.ask(watch, &b, http.MethodGet, "batches/"+url.PathEscape(id), "", nil, o); err != nil {
		return err
	}

	var rest error
	switch b.Status {
	case "validating", "in_progress", "finalizing", "cancelling":
		return batch.ErrRunning
	case "completed":
	case "expired":
		rest = &api.Error{Kind: batch.ErrExpired, API: t.api}
	case "cancelled":
		rest = &api.Error{Kind: batch.ErrCancelled, API: t.api}
	case "failed":
		var problems []string
		for _, e := range b.Errors.Data[:min(3, len(b.Errors.Data))] {
			problems = append(problems, e.Message)
		}
		rest = &api.Error{Kind: api.ErrInvalidRequest, API: t.api, Message: "the batch failed: " + strings.Join(problems, "; ")}
	default:
		return roundtrip.Protocol(t.api, "the batch has the unknown status %q", b.Status)
	}

	found := map[string]bool{}
	for _, file := range []string{b.Output, b.Failed} {
		if file == "" {
			continue
		}
		res, err := t.call(watch, http.MethodGet, "files/"+url.PathEscape(file)+"/content", "", nil, o)
		if err != nil {
			return err
		}
		err = roundtrip.Lines(t.api, res.Body, func(text []byte) error {
			line, err := t.batchLine(text)
			found[line.Key] = true
			add(line)
			return err
		})
		if err = errors.Join(err, res.Body.Close()); err != nil {
			return err
		}
	}
	for _, key := range keys {
		if rest != nil && !found[key] {
			add(batch.Line{Key: key, Err: rest})
		}
	}
	return nil
}

// batchLine reads a line of the results.
func (t *transport) batchLine(text []byte) (batch.Line, error) {
	var r struct {
		ID       string `json:"custom_id"`
		Response *struct {
			Status    int       `json:"status_code"`
			RequestID string    `json:"request_id"`
			Body      jsonx.Raw `json:"body"`
		} `json:"response"`
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if err := json.Unmarshal(text, &r, jsonx.Lenient); err != nil {
		return batch.Line{}, roundtrip.Protocol(t.api, "a line of the results: %w", err)
	}

	line := batch.Line{Key: r.ID}
	switch {
	case r.Response != nil && r.Response.Status < 300:
		line.Body = r.Response.Body
	case r.Response != nil:
		line.Err = newError(t.api, r.Response.Status, http.Header{"X-Request-Id": {r.Response.RequestID}}, r.Response.Body)
	case r.Error.Code == "batch_expired":
		line.Err = &api.Error{Kind: batch.ErrExpired, API: t.api}
	case r.Error.Code == "batch_cancelled":
		line.Err = &api.Error{Kind: batch.ErrCancelled, API: t.api}
	default:
		line.Err = newError(t.api, http.StatusOK, nil, text)
	}
	return line, nil
}
