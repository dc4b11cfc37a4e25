package dialect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/idle"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/wire"
)

// Provider is an api.Provider for an API with JSON over HTTP. It takes the steps that the providers of Plait have in
// common: it merges and checks the options, repairs the messages, sends the request, limits the silence, and returns
// typed errors. Body and Read add the form of the API.
//
//   - A note reports each option that does not change the body, and tokens of Thinking that do not. Header, Idle and
//     Body need nothing from Body.
//   - A member of api.Options.Body is added to the body, unless the body has one of that name.
type Provider struct {
	// Target is what the API accepts. Its API names the API in responses and errors.
	Target Target
	// URL is the address for requests.
	URL string
	// Client sends the requests. Defaults to http.DefaultClient.
	Client *http.Client
	// Options are the defaults for the options of a request. A key belongs in their Header.
	Options api.Options
	// Body returns the body of a request, to be written as JSON. The messages, tools and options of the request are those
	// that the API accepts. Body changes nothing in the request, and returns the same for the same one: it is called again
	// to find the options that it leaves out.
	Body func(req api.Request) any
	// Read reads a successful response and yields its events, until yield returns false. An error that is no *api.Error
	// means api.ErrCut, and so does a response without an api.Finish.
	Read func(body io.Reader, yield func(api.Event) bool) error
}

// Stream sends the request and yields the events of its response, by the rules of api.Provider.
func (p Provider) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	return roundtrip.Trip{
		Prepare: func() (roundtrip.Call, error) { return p.prepare(req) },
		Ask:     p.ask,
		Explain: func(error) *api.Error { return nil },
	}.Stream(ctx)
}

// prepare makes the request acceptable and writes its body.
func (p Provider) prepare(req api.Request) (c roundtrip.Call, err error) {
	name := p.Target.API
	o, notes := p.Target.Options(req.Options, p.Options)
	if o, err = roundtrip.Checked(name, o); err != nil {
		return c, err
	}
	messages, repairs := Repair(req.Messages, Rules{Accept: p.Target.Accept, ID: p.Target.FitsID})
	if len(messages) == 0 {
		return c, &api.Error{Kind: api.ErrNothing, API: name}
	}

	b := roundtrip.Builder{Notes: append(notes, repairs...)}
	b.KeepTools(req.Tools, 0, p.Target.Tool, func(t content.Tool) string { return t.Name })
	o.ToolChoice, _ = b.Choice(o.ToolChoice, b.Tools)
	if o.Output.JSON != "" {
		o.Output.JSON = b.Form(p.Target.Form(o.Output.JSON))
	}

	fit := api.Request{System: b.System(req.System), Tools: b.Tools, Messages: messages, Options: o}
	body, err := p.body(fit, &b)
	if err != nil {
		return c, &api.Error{Kind: api.ErrInvalidRequest, API: name, Err: err}
	}
	return roundtrip.Call{API: name, Options: o, Body: wire.NewParts(body), Notes: b.Notes}, nil
}

// body returns the body of a request with the members of Options.Body, and notes the options that are not in it.
func (p Provider) body(req api.Request, b *roundtrip.Builder) ([]byte, error) {
	whole, err := content.ToJSON(p.Body(req))
	if err != nil {
		return nil, err
	}
	if err := p.noteUnsent(req, b); err != nil || req.Options.Body == "" {
		return []byte(whole), err
	}

	own, err := jsonx.Members(whole)
	if err != nil {
		b.Note("option", "Options.Body is left out: the body of the API is not an object")
		return []byte(whole), nil
	}
	if b.Further, err = jsonx.Members(req.Options.Body); err != nil {
		return nil, err
	}
	for _, m := range own {
		b.LeaveOut(m.Name)
	}
	return []byte(jsonx.Object(append(own, b.Further...))), nil
}

// handled are the options that are sent without Body.
var handled = map[string]bool{"Idle": true, "Header": true, "Body": true, "BodyAPI": true}

// noteUnsent notes the options without which the body is the same. A short conversation shows it.
func (p Provider) noteUnsent(req api.Request, b *roundtrip.Builder) error {
	req.Messages = []content.Message{{Role: content.User, Blocks: content.Words("Hello")}}
	with, err := content.ToJSON(p.Body(req))
	if err != nil {
		return err
	}

	options := reflect.ValueOf(&req.Options).Elem()
	for i := range options.NumField() {
		field, name := options.Field(i), options.Type().Field(i).Name
		if field.IsZero() || handled[name] {
			continue
		}
		given := reflect.ValueOf(field.Interface())
		field.SetZero()
		without, err := content.ToJSON(p.Body(req))
		if err != nil {
			return err
		}
		if field.Set(given); with == without {
			b.Note("option", "%s is left out: the API has no such option", name)
		} else if name == "Thinking" {
			if err := p.noteBudget(req, with, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// noteBudget notes that a budget for thinking is sent as a mere wish to think: with another one the body is the same.
func (p Provider) noteBudget(req api.Request, with content.JSON, b *roundtrip.Builder) error {
	n := req.Options.Thinking.Tokens()
	if n == 0 {
		return nil
	}
	req.Options.Thinking = api.ThinkTokens(n + 1)
	other, err := content.ToJSON(p.Body(req))
	if err == nil && other == with {
		b.Note("option", "Thinking is sent without its tokens: the API has no such option")
	}
	return err
}

// ask sends the request and yields the events of its response.
func (p Provider) ask(watch *idle.Watch, c roundtrip.Call) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		res, err := p.post(watch.Context, c)
		if err != nil {
			yield(nil, err)
			return
		}
		defer res.Body.Close()
		res.Body = wire.Bounded(watch.Body(res.Body))

		switch {
		case res.StatusCode < 200 || res.StatusCode > 299:
			yield(nil, p.refused(res))
		case roundtrip.IsPage(res):
			roundtrip.Page(c.API, res)(yield)
		default:
			p.read(res.Body, yield)
		}
	}
}

// post sends the request.
func (p Provider) post(ctx context.Context, c roundtrip.Call) (*http.Response, error) {
	if err := wire.CheckAddress(p.URL); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", wire.ErrAddress, err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, values := range c.Options.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	c.Body.Send(req)
	if err := wire.Ready(req); err != nil {
		return nil, err
	}
	return cmp.Or(p.Client, http.DefaultClient).Do(req)
}

// refused returns the error for a response that is not a success.
func (p Provider) refused(res *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(res.Body, wire.MaxError))
	e := &api.Error{
		Kind: roundtrip.KindOf(res.StatusCode), API: p.Target.API, Status: res.StatusCode, Err: err,
		Message: strings.TrimSpace(string(text)), Body: string(text),
		RequestID:  cmp.Or(res.Header.Get("X-Request-Id"), res.Header.Get("Request-Id")),
		RetryAfter: wire.RetryAfter(res.Header, time.Now()),
	}
	if e.Kind == nil {
		e.Kind = api.ErrProtocol // a redirect without an address, for example
	}
	return e
}

// read yields the events of a response, and ErrCut if it has no end.
func (p Provider) read(body io.Reader, yield func(api.Event, error) bool) {
	left, finished := false, false
	err := p.Read(body, func(e api.Event) bool {
		if left || finished {
			return false
		}
		if f, is := e.(api.Finish); is {
			f.API = cmp.Or(f.API, p.Target.API)
			e, finished = f, true
		}
		left = !yield(e, nil)
		return !left && !finished
	})

	var ours *api.Error
	switch {
	case left || finished:
	case err == nil, err == io.EOF: // io.EOF is that of a decoder that looks for more
		yield(nil, roundtrip.Cut(p.Target.API, errors.New("it came without an end: no api.Finish was read from it")))
	case errors.As(err, &ours):
		yield(nil, err)
	default:
		yield(nil, roundtrip.Cut(p.Target.API, err))
	}
}
