package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	sdk "github.com/coder/acp-go-sdk"
)

// Limits of a connection.
const (
	maxMessage = 16 << 20 // bytes of a message
	maxHead    = 4 << 10  // bytes of a longer message that are searched for its ID
	maxServing = 256      // requests of the other side under way
	maxID      = 256      // bytes of the ID of a request
)

// ErrGone: the other side has ended the connection, or its program has ended.
var ErrGone = errors.New("acp: the other side has ended the connection")

// message is a request, a notification or a response of JSON-RPC 2.0.
type message struct {
	JSONRPC string            `json:"jsonrpc"`
	ID      json.RawMessage   `json:"id,omitempty"`
	Method  string            `json:"method,omitempty"`
	Params  json.RawMessage   `json:"params,omitempty"`
	Result  json.RawMessage   `json:"result,omitempty"`
	Error   *sdk.RequestError `json:"error,omitempty"`
}

// handler begins a request or a notification of the other side, and returns the rest of the work. It is called in the
// order of the messages, so what it does itself is done before the next message is read. The rest of a request runs on
// a goroutine of its own.
type handler func(ctx context.Context, method string, params json.RawMessage) (rest func() (any, error))

// conn is a connection of JSON-RPC 2.0 with one message a line, in both directions.
//
// The connection of the SDK is not used: it starts any number of requests, ends at the 1,024th waiting notification and
// at a message of 10 MB, lets a second prompt cancel the first, and may handle a cancel before its prompt.
type conn struct {
	begin handler
	out   chan []byte
	ctx   context.Context // ends with the connection; the context of all requests
	end   context.CancelCauseFunc
	gone  chan struct{} // closed when nothing is written any more

	mu      sync.Mutex // guards the fields below
	last    int        // the number of the last own request
	waiting map[string]chan message
	serving map[string]context.CancelCauseFunc
	closed  bool // no request begins any more
	work    sync.WaitGroup
}

func newConn(begin handler) *conn {
	c := &conn{
		begin: begin, out: make(chan []byte), gone: make(chan struct{}),
		waiting: map[string]chan message{}, serving: map[string]context.CancelCauseFunc{},
	}
	c.ctx, c.end = context.WithCancelCause(context.Background())
	return c
}

// run reads and writes messages until the other side ends the connection (nil), or ctx ends. Then it cancels the requests
// under way, waits for them and closes both.
func (c *conn) run(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	read, written := make(chan error, 1), make(chan struct{})
	go func() { read <- c.read(in) }()
	go func() {
		defer close(written)
		c.write(out)
	}()

	var err error
	select {
	case err = <-read:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-c.ctx.Done(): // the other side does not read any more
	}
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.end(ErrGone)

	// A client may still read the responses after it has written its last request.
	finished := make(chan struct{})
	go func() {
		c.work.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-ctx.Done():
	}
	close(c.gone)
	select {
	case <-written:
	case <-ctx.Done(): // the writer may wait for a client that does not read
	}
	err = errors.Join(err, in.Close(), out.Close())
	<-finished
	return err
}

// write writes messages. After an error the rest is dropped.
func (c *conn) write(out io.Writer) {
	broken := false
	for {
		select {
		case line := <-c.out:
			if broken {
				continue
			}
			if _, err := out.Write(line); err != nil {
				broken = true
				c.end(fmt.Errorf("%w: %w", ErrGone, err))
			}
		case <-c.gone:
			return
		}
	}
}

// read reads messages up to the end of the input.
func (c *conn) read(in io.Reader) error {
	lines := bufio.NewReaderSize(in, 32<<10)
	for c.ctx.Err() == nil {
		line, size, err := readLine(lines)
		switch {
		case size > maxMessage:
			if !c.tooLong(line, size) {
				return fmt.Errorf("acp: a message of %d bytes has no ID in its first %d", size, maxHead)
			}
		case len(bytes.TrimSpace(line)) > 0 && err == nil:
			c.take(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrGone, err)
		}
	}
	return nil
}

// readLine returns the next line and its size. Of a line of more than maxMessage bytes, it returns the beginning.
func readLine(r *bufio.Reader) (line []byte, size int, err error) {
	var whole bytes.Buffer
	for {
		part, err := r.ReadSlice('\n')
		size += len(part)
		switch {
		case size <= maxMessage:
			whole.Write(part)
		case whole.Len() > maxHead:
			whole = *bytes.NewBuffer(bytes.Clone(whole.Bytes()[:maxHead])) // frees the rest
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return whole.Bytes(), size, err
		}
	}
}

// tooLong answers a message that is too long. It returns false if the beginning does not tell what the message is.
func (c *conn) tooLong(head []byte, size int) bool {
	m := headOf(head)
	if m.ID == nil {
		return m.Method != "" // a notification is dropped
	}
	m.Error = invalid("a message of %d bytes is longer than %d", size, maxMessage)
	if m.Method == "" {
		c.deliver(m)
		return true
	}
	return c.respond(m.ID, nil, m.Error) == nil
}

// headOf returns what the beginning of a message has of its ID and method.
func headOf(head []byte) (m message) {
	tokens := json.NewDecoder(bytes.NewReader(head))
	_, _ = tokens.Token() // the opening brace
	for tokens.More() {
		name, _ := tokens.Token()
		var value json.RawMessage
		if tokens.Decode(&value) != nil {
			break // the value that is cut off
		}
		switch name {
		case "id":
			m.ID = value
		case "method":
			_ = json.Unmarshal(value, &m.Method)
		}
	}
	return m
}

// take handles a message.
func (c *conn) take(line []byte) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		_ = c.respond(json.RawMessage("null"), nil, sdk.NewParseError(nil))
		return
	}
	switch {
	case len(m.ID) > maxID || len(m.ID) > 0 && (m.ID[0] == '{' || m.ID[0] == '['):
		_ = c.respond(json.RawMessage("null"), nil, invalid("the ID is no number and no short text"))
	case m.Method == "":
		c.deliver(m)
	case m.Method == "$/cancel_request":
		c.cancel(m.Params)
	case m.ID == nil:
		if rest := c.begin(c.ctx, m.Method, m.Params); rest != nil {
			_, _ = rest()
		}
	default:
		if err := c.accept(m); err != nil {
			_ = c.respond(m.ID, nil, err)
		}
	}
}

// accept begins a request.
func (c *conn) accept(m message) error {
	id := string(m.ID)
	ctx, cancel := context.WithCancelCause(c.ctx)
	err := func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case c.closed:
			return ErrGone
		case c.serving[id] != nil:
			return invalid("the request with this ID is not answered yet")
		case len(c.serving) == maxServing:
			return invalid("more than %d requests are not answered yet", maxServing)
		}
		c.serving[id] = cancel
		c.work.Add(1)
		return nil
	}()
	if err != nil {
		cancel(nil)
		return err
	}

	rest := c.begin(ctx, m.Method, m.Params)
	go func() {
		defer c.work.Done()
		result, err := rest()
		c.mu.Lock()
		delete(c.serving, id)
		c.mu.Unlock()
		cancel(nil)
		_ = c.respond(m.ID, result, err) // without a client nobody needs the response
	}()
	return nil
}

// cancel cancels a request of the other side.
func (c *conn) cancel(params json.RawMessage) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.serving[string(p.RequestID)]; cancel != nil {
		cancel(errCancelled)
	}
}

// respond sends the response to a request.
func (c *conn) respond(id json.RawMessage, result any, err error) error {
	m := message{ID: id}
	if err != nil {
		m.Error = errorOf(err)
		return c.send(m)
	}
	data, err := json.Marshal(result)
	if err != nil {
		return c.respond(id, nil, err)
	}
	m.Result = data
	return c.send(m)
}

// deliver hands a response to the request that waits for it. A response to anything else is dropped.
func (c *conn) deliver(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.waiting[string(m.ID)]; answer != nil {
		answer <- m // has room for one
		delete(c.waiting, string(m.ID))
	}
}

// send writes a message. It waits as long as the other side does not read.
func (c *conn) send(m message) error {
	m.JSONRPC = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("acp: %w", err)
	}
	select {
	case c.out <- append(line, '\n'):
		return nil
	case <-c.gone:
		return ErrGone
	}
}

// notify sends a notification.
func (c *conn) notify(method string, params any) error {
	data, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("acp: %w", err)
	}
	return c.send(message{Method: method, Params: data})
}

// call sends a request and returns its result. If ctx ends first, the request is cancelled, and the error is the cause
// of ctx. Its other errors are an *sdk.RequestError of the other side, and ErrGone.
func call[T any](ctx context.Context, c *conn, method string, params any) (result T, err error) {
	data, err := json.Marshal(params)
	if err != nil {
		return result, fmt.Errorf("acp: %w", err)
	}
	answer := make(chan message, 1)
	c.mu.Lock()
	c.last++
	id := fmt.Sprint(c.last)
	c.waiting[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
	}()

	if err := c.send(message{ID: json.RawMessage(id), Method: method, Params: data}); err != nil {
		return result, err
	}
	select {
	case m := <-answer:
		return result, m.read(method, &result)
	case <-c.ctx.Done():
		err = context.Cause(c.ctx)
	case <-ctx.Done():
		_ = c.notify("$/cancel_request", map[string]json.RawMessage{"requestId": json.RawMessage(id)})
		err = context.Cause(ctx)
	}

	// The response may have come with the end of the connection.
	select {
	case m := <-answer:
		return result, m.read(method, &result)
	default:
		return result, err
	}
}

// read decodes the result of a response.
func (m message) read(method string, result any) error {
	if m.Error != nil {
		return m.Error
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		return fmt.Errorf("acp: the result of %s: %w", method, err)
	}
	return nil
}

// do decodes the parameters of a request, and returns the rest of its work: a call of f.
func do[In, Out any](ctx context.Context, params json.RawMessage, f func(context.Context, In) (Out, error)) func() (any, error) {
	in, err := decode[In](params)
	if err != nil {
		return refuse(err)
	}
	return func() (any, error) { return f(ctx, in) }
}

// decode decodes and checks the parameters of a request or notification.
func decode[In any](params json.RawMessage) (in In, err error) {
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	err = json.Unmarshal(params, &in)
	if v, ok := any(&in).(interface{ Validate() error }); ok && err == nil {
		err = v.Validate()
	}
	if err != nil {
		return in, sdk.NewInvalidParams(map[string]any{"error": err.Error()})
	}
	return in, nil
}

// refuse returns the rest of the work of a request that is refused.
func refuse(err error) func() (any, error) { return func() (any, error) { return nil, err } }

// invalid returns the error for a request that makes no sense now.
func invalid(format string, args ...any) *sdk.RequestError {
	return &sdk.RequestError{Code: -32600, Message: fmt.Sprintf(format, args...)}
}
