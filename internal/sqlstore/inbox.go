package sqlstore

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/plait-dev/plait/store"
)

// InboxRow is a row of the inbox, of executor/durable.
type InboxRow struct {
	// Conversation is the key of the conversation, and Head the name of the head that the row is for.
	Conversation, Head string
	// Call is the key of the call of a reply, and empty for a message. Payload is the reply or the message.
	Call    string
	Payload []byte
	// Taken is 1 while a run adds the row to the conversation. Arrived is a time, in microseconds since 1970.
	Taken, Arrived int64
}

// Sum returns the column sum of the row. It covers all others, so that a row has no effect at another head, for another
// call or a second time.
func (r InboxRow) Sum() store.Sum {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(r.Conversation), []byte(r.Head), []byte(r.Call), r.Payload} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(r.Taken)))
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(r.Arrived)))
	return store.Sum(h.Sum(nil))
}
