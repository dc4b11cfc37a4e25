package api

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/plait-dev/plait/internal/safetext"
)

// The kinds of errors, for errors.Is.
var (
	// ErrRateLimited: too many requests or tokens for now. Retried.
	ErrRateLimited = errors.New("rate limited")
	// ErrOverloaded: the provider has no capacity for now. Retried.
	ErrOverloaded = errors.New("overloaded")
	// ErrServer: the provider failed. Retried.
	ErrServer = errors.New("server error")
	// ErrTransport: the connection failed. Retried.
	ErrTransport = errors.New("connection failed")
	// ErrCut: the response broke off before its end. Retried.
	ErrCut = errors.New("response cut off")
	// ErrStalled: the provider sent nothing for longer than Options.Idle. The error text has the time in seconds.
	// Retried.
	ErrStalled = errors.New("provider stalled")
	// ErrContextTooLong: the conversation does not fit the model's context window.
	ErrContextTooLong = errors.New("context too long")
	// ErrInvalidRequest: the provider does not accept the request.
	ErrInvalidRequest = errors.New("invalid request")
	// ErrAuth: the key is missing, wrong, or not allowed to do this.
	ErrAuth = errors.New("not authorized")
	// ErrQuota: the account has no credit, or has reached its limit of spending. Waiting does not help.
	ErrQuota = errors.New("quota exhausted")
	// ErrNotFound: no such model or resource.
	ErrNotFound = errors.New("not found")
	// ErrFiltered: a content filter refused the request.
	ErrFiltered = errors.New("content filtered")
	// ErrProtocol: the provider broke the rules of [Provider], or of its own API.
	ErrProtocol = errors.New("provider broke the protocol")
	// ErrNothing: the request holds no message to send.
	ErrNothing = errors.New("no message to send")
)

// Error is a failure of a model's API.
type Error struct {
	// Kind is one of the kinds above; errors.Is finds it.
	Kind error
	// API names the provider's API, such as "anthropic".
	API string
	// Status is the HTTP status: 0 if there was no response, 200 if the failure came inside a stream or a batch.
	Status int
	// Type and Message are the provider's own text. A careless server may repeat parts of the request in it. The
	// providers of Plait replace the key and the other secrets of the request by REDACTED, also in Body and Err.
	Type    string
	Message string
	// RequestID is the provider's ID of the request, for its support.
	RequestID string
	// RetryAfter is how long the provider requests to wait, or 0.
	RetryAfter time.Duration
	// Body is the whole error as the provider sent it, cut to 64 KiB.
	Body string
	// Err is the underlying error, or nil.
	Err error
}

// Error returns one line with the API, the kind, the status unless it is 200, the provider's text and the request ID.
// The provider's text has no control characters and is cut to 1,000 bytes; the fields hold it whole.
func (e *Error) Error() string {
	var b strings.Builder
	if e.API != "" {
		b.WriteString(safetext.Line(e.API, maxShown) + ": ")
	}
	if e.Kind == nil {
		b.WriteString("failed")
	} else {
		b.WriteString(e.Kind.Error())
	}

	// A status of 200 would look like a success: it belongs to the response in which the failure came.
	details := safetext.Line(e.Type, maxShown)
	if e.Status != 0 && e.Status != 200 {
		details = strings.TrimSpace(strconv.Itoa(e.Status) + " " + details)
	}
	if details != "" {
		b.WriteString(" (" + details + ")")
	}
	if e.Message != "" {
		b.WriteString(": " + safetext.Line(e.Message, maxShown))
	} else if e.Err != nil {
		b.WriteString(": " + safetext.Line(e.Err.Error(), maxShown))
	}
	if e.RequestID != "" {
		b.WriteString(" [request " + safetext.Line(e.RequestID, maxShown) + "]")
	}
	return b.String()
}

// maxShown limits each text from outside in the text of an error, in bytes.
const maxShown = 1000

// Unwrap returns the kind and the underlying error, each only if it is not nil.
func (e *Error) Unwrap() []error {
	var chain []error
	for _, err := range []error{e.Kind, e.Err} {
		if err != nil {
			chain = append(chain, err)
		}
	}
	return chain
}

// AttemptsError is the error of a request that was sent more than once. It unwraps to the error of the last attempt
// alone: errors.Is and [Retryable] decide by that one.
type AttemptsError struct {
	// Err is the error of the last attempt, or the reason why there was none. With [Fallback] it is the last one that may
	// pass, if any may.
	Err error
	// Earlier are the errors of the other attempts, in order.
	Earlier []error
}

// Error returns the text of Err, and after it those of the attempts before. Equal ones in a row are joined.
func (e *AttemptsError) Error() string {
	last := e.Err.Error()
	var list []string
	for i := 0; i < len(e.Earlier); {
		n := i + 1
		for n < len(e.Earlier) && e.Earlier[n].Error() == e.Earlier[i].Error() {
			n++
		}
		which := "attempt " + strconv.Itoa(i+1)
		if n > i+1 {
			which = fmt.Sprintf("attempts %d to %d", i+1, n)
		}
		list = append(list, which+": "+e.Earlier[i].Error())
		i = n
	}

	if len(list) == 1 && e.Earlier[0].Error() == last {
		return fmt.Sprintf("%s (%d attempts)", last, len(e.Earlier)+1)
	}
	return last + " (" + strings.Join(list, "; ") + ")"
}

// Unwrap returns Err.
func (e *AttemptsError) Unwrap() error { return e.Err }

// elsewhere reports whether another provider may accept the request after one failed with err. [Fallback] has the rule.
func elsewhere(err error) bool {
	for _, kind := range []error{ErrQuota, ErrAuth, ErrNotFound, ErrContextTooLong, ErrProtocol} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return Retryable(err)
}

// Retryable reports whether the same request may succeed later: whether ErrRateLimited, ErrOverloaded, ErrServer,
// ErrTransport, ErrCut or ErrStalled is in the chain of err.
func Retryable(err error) bool {
	for _, kind := range []error{ErrRateLimited, ErrOverloaded, ErrServer, ErrTransport, ErrCut, ErrStalled} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
