package node

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/goccy/go-json/jsontext"
	"github.com/plait-dev/plait/internal/jsonx/plain"
	"github.com/plait-dev/plait/internal/safetext"
)

var (
	// ErrSum marks a saved node whose checksum does not match its line: the line was changed.
	ErrSum = errors.New("wrong checksum")
	// ErrNoSum marks a saved node without a checksum. It cannot be checked.
	ErrNoSum = errors.New("no checksum")
)

// A line ends with sumMember, the digits of its checksum, and sumEnd.
const (
	sumMember = `,"sum":"sha256:`
	sumEnd    = `"}`
	sumTail   = len(sumMember) + 2*sha256.Size + len(sumEnd)
)

// sum is the SHA-256 of a line without its last member.
type sum = [sha256.Size]byte

// appendSum appends the last member and the end of the line dst[begin:]. The checksum is held, if the node was read with
// one, and else that of the line.
func appendSum(dst []byte, begin int, held *sum) []byte {
	s := held
	if s == nil {
		of := sha256.Sum256(dst[begin:])
		s = &of
	}
	return append(hex.AppendEncode(append(dst, sumMember...), s[:]), sumEnd...)
}

// readSum reads the last member and the end of a line.
func readSum(r *plain.Reader) sum {
	r.Expect(sumMember)
	s := r.Hash()
	r.Expect(sumEnd)
	return s
}

// Verify checks the checksum of the node's saved form: the member "sum" of its line. It covers every other member, also
// those of a redacted node, of an unknown kind and of unknown members. The errors:
//
//   - ErrSum for a node from a file that was changed after it was written;
//   - ErrNoSum for a node from a file without a checksum;
//   - ErrRedaction, alone or beside one of these, for a node that is marked as redacted and has content.
//
// A node that was not read is correct. Another program may have written the line in another form, with spaces or
// escapes: the forms written by Append and by MarshalJSON count too. A checksum finds damage. It does not protect against
// somebody who computes it again.
func (n *Node) Verify() error {
	err := n.whole().verifySum()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, n)
	}
	if n.seldom().claimed && !n.Redacted() {
		err = errors.Join(err, fmt.Errorf("%w: %s", ErrRedaction, n))
	}
	return err
}

func (n *Node) verifySum() error {
	line, recorded := []byte(n.line.get()), n.hash().sum
	if recorded == nil {
		// Append has remembered the line of a node that was not read, with its checksum.
		if len(line) > 0 && !endsInSum(line) {
			return ErrNoSum
		}
		return nil
	}

	covers := func(line []byte) bool {
		return len(line) > sumTail && sha256.Sum256(line[:len(line)-sumTail]) == *recorded
	}
	compact := jsontext.Value(bytes.Clone(line))
	if covers(line) || compact.Compact() == nil && covers(compact) || covers(portable(line)) || covers(n.encode(nil)) {
		return nil
	}
	return ErrSum
}

// portable returns a line in a form that JSON packages do not change when it is a value in other JSON: without spaces,
// and each string with the fewest escapes. It returns nil for a line without such a form.
func portable(line []byte) []byte {
	form := jsontext.Value(bytes.Clone(line))
	if form.Format() != nil {
		return nil
	}
	return form
}

// appendPortable appends the line in the portable form, with the checksum of that form. A line without a checksum, or
// with a wrong one, keeps what it has. So does a line with another member behind the checksum.
func (n *Node) appendPortable(dst []byte) []byte {
	line := n.Append(nil)
	form := portable(line)
	if !endsInSum(form) || bytes.Equal(form, line) || n.whole().verifySum() != nil {
		return append(dst, line...)
	}
	return appendSum(append(dst, form[:len(form)-sumTail]...), len(dst), nil)
}

// endsInSum reports whether a line ends with a checksum.
func endsInSum(line []byte) bool {
	r := plain.Read(line[max(len(line)-sumTail, 0):])
	readSum(&r)
	return r.Done()
}

// appendHash appends a hash as a JSON string.
func appendHash(dst []byte, hash [sha256.Size]byte) []byte {
	return append(hex.AppendEncode(append(dst, `"sha256:`...), hash[:]), '"')
}

// parseHash reads a hash in the form of appendHash, without the quotes.
func parseHash(text string) (hash [sha256.Size]byte, err error) {
	r := plain.Read([]byte(text))
	r.Expect("sha256:")
	if hash = r.Hash(); !r.Done() {
		return hash, fmt.Errorf("%s is not sha256: and 64 lower-case digits", safetext.Quote(text, 80))
	}
	return hash, nil
}
