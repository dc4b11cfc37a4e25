package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/plait-dev/plait/node"
)

// id returns the id of the node that the file calls name: name itself where it is a UUID that is free, and otherwise a UUIDv8 of the
// time, which ids sort by, and a hash of the format, the session and the name.
func (im *importer) id(name string, at time.Time) node.ID {
	if len(name) == 36 {
		if id, err := uuid.Parse(name); err == nil && id != uuid.Nil && !im.used[id] {
			im.used[id] = true
			return id
		}
	}
	for again := 0; ; again++ {
		sum := sha256.Sum256([]byte(string(im.format) + "\x00" + im.session + "\x00" + name + "\x00" + strconv.Itoa(again)))
		id := uuid.UUID(sum[:16])
		ms := max(at.UnixMilli(), 0)
		for i := range 6 {
			id[i] = byte(ms >> (40 - 8*i))
		}
		id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
		if !im.used[id] {
			im.used[id] = true
			return id
		}
	}
}

// made is a node to be made.
type made struct {
	name    string // in the file
	line    int
	where   string
	time    time.Time // the zero time: that of the first parent
	payload node.Payload
	meta    node.Meta
	parents []*node.Node
}

func (im *importer) make(m made) (*node.Node, error) {
	if m.time.IsZero() {
		m.time = im.opts.Time
		if len(m.parents) > 0 {
			m.time = m.parents[0].Time()
		}
	}
	id := im.id(m.name, m.time)
	src := node.Source{Now: func() time.Time { return m.time }, NewID: func() node.ID { return id }}
	n, err := node.New(src, m.payload, m.meta, m.parents...)
	if err != nil {
		return nil, im.errorf(m.line, m.where, errors.Join(ErrShape, err), "")
	}
	return n, nil
}

// fingerprint stands for the session of a file that names none.
func (im *importer) fingerprint() string { return hex.EncodeToString(im.sum.Sum(nil)[:16]) }
