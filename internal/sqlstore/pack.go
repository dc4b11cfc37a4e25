package sqlstore

import (
	"encoding/binary"
	"errors"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// errPacked is the reason for a packed value in an unknown form.
var errPacked = errors.New("a value of the table is damaged")

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

// packCuts returns the offset, 8 bytes with the highest first, and the sum of each cut. It returns nil for no cuts.
func packCuts(cuts []store.Cut) []byte {
	var packed []byte
	for _, c := range cuts {
		packed = binary.BigEndian.AppendUint64(packed, uint64(c.Offset))
		packed = append(packed, c.Sum[:]...)
	}
	return packed
}

func unpackCuts(packed []byte) ([]store.Cut, error) {
	const size = 8 + len(store.Sum{})
	if len(packed)%size != 0 {
		return nil, errPacked
	}

	var cuts []store.Cut
	for ; len(packed) > 0; packed = packed[size:] {
		c := store.Cut{Offset: int(binary.BigEndian.Uint64(packed))}
		copy(c.Sum[:], packed[8:])
		cuts = append(cuts, c)
	}
	return cuts, nil
}
