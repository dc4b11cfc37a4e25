package describe

import (
	"bytes"
	"encoding/hex"
	"slices"

	"github.com/plait-dev/plait/node"
)

// minName is the number of digits in a short name of a node, unless two nodes share them. It is that of node.ShortID.
const minName = 8

// NameLength returns how many of the last digits distinguish the IDs of the nodes, at least 8. Nodes with one ID have
// one name.
func NameLength(nodes []*node.Node) int {
	// In the order of the reversed IDs, the IDs with the longest common end are neighbors.
	reversed := make([]node.ID, len(nodes))
	for i, n := range nodes {
		id := n.ID()
		slices.Reverse(id[:])
		reversed[i] = id
	}
	slices.SortFunc(reversed, func(a, b node.ID) int { return bytes.Compare(a[:], b[:]) })
	reversed = slices.Compact(reversed)

	length := minName
	for i := 1; i < len(reversed); i++ {
		a, b := reversed[i-1], reversed[i]
		same := 0
		for a[same] == b[same] {
			same++
		}

		// A byte is two digits, the last one first.
		digits := 2*same + 1
		if a[same]&0xf == b[same]&0xf {
			digits++
		}
		length = max(length, digits)
	}
	return length
}

// Name returns that many of the last digits of an ID, at most all 32: a short name of the node.
func Name(id node.ID, digits int) string {
	all := hex.EncodeToString(id[:])
	return all[max(len(all)-digits, 0):]
}
