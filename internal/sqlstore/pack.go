package sqlstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// errPacked is the reason for a packed value in an unknown form, or with another seal.
var errPacked = fmt.Errorf("%w: a value of the table is damaged", store.ErrRecord)

// A seal is a sum over values of a row, at the end of one of them: it finds damage in what decides. Its size is enough for
// that, and not against somebody who computes it again.
const sealSize = 8

// seal appends a seal over data and other values of the row.
func seal(data []byte, others ...[]byte) []byte {
	sum := sha256.New()
	for _, value := range append([][]byte{data}, others...) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(value)))
		sum.Write(size[:])
		sum.Write(value)
	}
	return append(slices.Clip(data), sum.Sum(nil)[:sealSize]...)
}

// unseal returns the data of seal, and errPacked for another seal.
func unseal(sealed []byte, others ...[]byte) ([]byte, error) {
	size := len(sealed) - sealSize
	if size < 0 || !bytes.Equal(seal(sealed[:size:size], others...), sealed) {
		return nil, errPacked
	}
	return sealed[:size:size], nil
}

// sealHead returns the column nodes of a head: the IDs, sealed with its names and its version.
func sealHead(conversation, name string, version uint64, ids []byte) []byte {
	return seal(ids, []byte(conversation), []byte(name), binary.BigEndian.AppendUint64(nil, version))
}

// sealHeader returns the column header of a head.
func sealHeader(conversation, name string, header []byte) []byte {
	return seal(header, []byte(conversation), []byte(name))
}

// readHead returns a head with these columns.
func readHead(conversation, name string, version int64, nodes, header []byte) (h store.Head, err error) {
	h = store.Head{Name: name, Version: uint64(version)}
	ids, err := unseal(nodes, []byte(conversation), []byte(name), binary.BigEndian.AppendUint64(nil, h.Version))
	if err == nil {
		h.Nodes, err = unpackIDs(ids)
	}
	if err == nil {
		h.Header, err = unseal(header, []byte(conversation), []byte(name))
	}
	if err != nil {
		return store.Head{}, fmt.Errorf("store: %q: head %q: %w", conversation, name, err)
	}
	h.Header = orNil(h.Header)
	return h, nil
}

// packSum returns the column sum of a record: its sum, sealed with the ID and the links.
func packSum(r store.Record) []byte {
	return seal(r.Sum[:], r.ID[:], packIDs(r.Links))
}

// packIDs returns the IDs one after the other.
func packIDs(ids []node.ID) []byte {
	packed := make([]byte, 0, len(ids)*len(node.ID{}))
	for _, id := range ids {
		packed = append(packed, id[:]...)
	}
	return packed
}

func unpackIDs(packed []byte) ([]node.ID, error) {
	const size = len(node.ID{})
	if len(packed)%size != 0 {
		return nil, errPacked
	}
	if len(packed) == 0 {
		return nil, nil
	}

	ids := make([]node.ID, len(packed)/size)
	for i := range ids {
		copy(ids[i][:], packed[i*size:])
	}
	return ids, nil
}

// cloneIDs returns a copy; nil for no IDs, as unpackIDs.
func cloneIDs(ids []node.ID) []node.ID { return append([]node.ID(nil), ids...) }

func unpackID(packed []byte) (id node.ID, err error) {
	if copy(id[:], packed) != len(packed) || len(packed) != len(id) {
		return id, errPacked
	}
	return id, nil
}

func unpackSum(packed []byte) (sum store.Sum, err error) {
	if copy(sum[:], packed) != len(packed) || len(packed) != len(sum) {
		return sum, errPacked
	}
	return sum, nil
}
