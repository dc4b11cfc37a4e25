package sessions

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/plait-dev/plait/node"
)

// id returns the ID of the node with this name in the file. An unused UUID as the name is the ID. Otherwise the ID is a
// UUIDv8: the time, to sort IDs by it, and a hash of the format, the session and the name.
func (im *importer) id(name string, at time.Time) node.ID {
	if len(name) == 36 {
		if id, err := uuid.Parse(name); err == nil && id != uuid.Nil && !im.used[id] {
			im.used[id] = true
			return id
		}
	}

	session := cmp.Or(im.session, im.opts.Session)

	// The same name a second time gets another ID, because again is part of the hash.
	for again := 0; ; again++ {
		sum := sha256.Sum256([]byte(string(im.format) + "\x00" + session + "\x00" + name + "\x00" + strconv.Itoa(again)))

		// 48 bits of time as in a UUIDv7, the version and the variant.
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

// nodeSpec describes a node to make.
type nodeSpec struct {
	name    string // its name in the file, for its ID
	line    int
	where   string
	time    time.Time // zero means the time of the first parent, or Options.Time
	payload node.Payload
	meta    node.Meta
	parents []*node.Node
}

// make makes a node.
func (im *importer) make(m nodeSpec) (*node.Node, error) {
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
		return nil, im.errorf(m.line, m.where, errors.Join(errShape, err), "")
	}
	return n, nil
}
