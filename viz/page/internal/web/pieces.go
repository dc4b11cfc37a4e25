package web

import "iter"

// pieceNodes is the number of nodes in a piece: a browser reads one in a few milliseconds.
const pieceNodes = 1000

// IsLong reports whether a patch has more nodes than a piece.
func (p Patch) IsLong() bool { return len(p.Nodes) > pieceNodes }

// Pieces cuts a whole conversation, a patch with Reset, into patches that a page receives one after the other. All but
// the last have More set. The first one shows the beginning of the conversation by itself: its head is the last of its
// nodes. Other patches, and short conversations, are one piece.
func (p Patch) Pieces() iter.Seq[Patch] {
	return func(yield func(Patch) bool) {
		if !p.Reset || !p.IsLong() {
			yield(p)
			return
		}

		places := make(map[int]Place, len(p.Places))
		for _, place := range p.Places {
			places[place.Key] = place
		}
		for from := 0; from < len(p.Nodes); from += pieceNodes {
			nodes := p.Nodes[from:min(from+pieceNodes, len(p.Nodes))]
			piece := Patch{Nodes: nodes, More: true}
			if from+len(nodes) == len(p.Nodes) {
				// Everything else refers to nodes of all pieces.
				piece = p
				piece.Reset, piece.Nodes, piece.Places, piece.Folds = false, nodes, nil, nil
			}

			for _, n := range nodes {
				if place, ok := places[n.Key]; ok {
					piece.Places = append(piece.Places, place)
				}
			}
			if from == 0 {
				piece.Reset, piece.Folds, piece.Heads = true, p.Folds, []int{nodes[len(nodes)-1].Key}
			}
			if !yield(piece) {
				return
			}
		}
	}
}
