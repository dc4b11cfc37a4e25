package web

import (
	"github.com/plait-dev/plait/internal/memo"
	"github.com/plait-dev/plait/node"
)

// Patch holds the changes for a page with all former patches. The package comment has its JSON.
type Patch struct {
	Reset    bool      `json:"reset,omitempty"`
	More     bool      `json:"more,omitempty"`
	Nodes    []Node    `json:"nodes,omitempty"`
	Places   []Place   `json:"places,omitempty"`
	Folds    []Fold    `json:"folds,omitempty"`
	Edges    []Edge    `json:"edges,omitempty"`
	Cut      [][2]int  `json:"cut,omitempty"`
	Gone     []int     `json:"gone,omitempty"`
	Frames   []Frame   `json:"frames,omitzero"`
	Rooms    []Room    `json:"rooms,omitzero"`
	Width    int       `json:"width,omitempty"`
	Height   int       `json:"height,omitempty"`
	Note     *string   `json:"note,omitempty"`
	Heads    []int     `json:"heads,omitzero"`
	Refs     []Ref     `json:"refs,omitzero"`
	Problems []Problem `json:"problems,omitzero"`
	Totals   []Total   `json:"totals,omitzero"`
}

// isEmpty reports whether there are no changes.
func (p Patch) isEmpty() bool {
	return !p.Reset && p.Nodes == nil && p.Places == nil && p.Folds == nil && p.Edges == nil && p.Cut == nil && p.Gone == nil &&
		p.Frames == nil && p.Rooms == nil && p.Width == 0 && p.Height == 0 && p.Note == nil && p.Heads == nil &&
		p.Refs == nil && p.Problems == nil && p.Totals == nil
}

// Node is the content of a node and its connections.
type Node struct {
	Key     int      `json:"key"`
	ID      string   `json:"id"`
	Sort    string   `json:"sort"`
	Label   string   `json:"label"`
	Call    string   `json:"call,omitempty"`
	Line    string   `json:"line,omitempty"`
	Parts   []Part   `json:"parts,omitempty"`
	Raw     Saved    `json:"raw"`
	Parents []int    `json:"parents,omitempty"`
	Opens   []int    `json:"opens,omitempty"`
	Usage   [5]int64 `json:"usage,omitzero"`
	State   string   `json:"state,omitempty"`
	Least   bool     `json:"least,omitempty"`
	Model   string   `json:"model,omitempty"`
	At      float64  `json:"at,omitempty"`
	MS      float64  `json:"ms,omitempty"`
	Cost    *float64 `json:"cost,omitempty"`
	Cache   *Cache   `json:"cache,omitempty"`
}

// Saved is the saved form of a node. It is encoded only when needed: a patch then does not hold a long conversation a
// second time.
type Saved struct {
	node *node.Node
	text string // set in a decoded patch
}

// String returns the saved form; it is empty for the zero value.
func (s Saved) String() string {
	text, _ := s.MarshalText()
	return string(text)
}

// MarshalText returns the saved form.
func (s Saved) MarshalText() ([]byte, error) {
	if s.node == nil {
		return []byte(s.text), nil
	}
	return memo.AppendNode(s.node, make([]byte, 0, 512)), nil
}

// UnmarshalText keeps the text.
func (s *Saved) UnmarshalText(text []byte) error {
	*s = Saved{text: string(text)}
	return nil
}

// Place is the position and the look of a node's box.
type Place struct {
	Key   int    `json:"key"`
	N     int    `json:"n"`
	In    int    `json:"in,omitempty"`
	X     int    `json:"x"`
	Y     int    `json:"y"`
	W     int    `json:"w"`
	H     int    `json:"h"`
	Style string `json:"style"`
	Text  string `json:"text"`
	Right int64  `json:"right,omitempty"`
	Head  int    `json:"head,omitempty"`
	Frame int    `json:"frame"`
	Of    int    `json:"of,omitempty"` // never 0: a call follows a message
}

// Fold is a box with several nodes, and the size of the picture inside it.
type Fold struct {
	Key    int    `json:"key"`
	In     int    `json:"in,omitempty"`
	First  int    `json:"first"`
	Nodes  int    `json:"nodes"`
	X      int    `json:"x"`
	Y      int    `json:"y"`
	W      int    `json:"w"`
	H      int    `json:"h"`
	Style  string `json:"style"`
	Text   string `json:"text"`
	Right  int64  `json:"right,omitempty"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
}

// Edge is the line between two boxes.
type Edge struct {
	From   int   `json:"from"`
	To     int   `json:"to"`
	Points []int `json:"points"`
	Dashed bool  `json:"dashed,omitempty"`
}

// Frame is the conversation of a node, usually that of a sub-agent.
type Frame struct {
	Title string `json:"title"`
	Owner int    `json:"owner"`
	Outer int    `json:"outer"`
}

// Room is the rectangle around the boxes of a Frame's conversation.
type Room struct {
	Title string `json:"title"`
	In    int    `json:"in,omitempty"`
	X     int    `json:"x"`
	Y     int    `json:"y"`
	W     int    `json:"w"`
	H     int    `json:"h"`
}

// Ref is a ref and its heads.
type Ref struct {
	Name string `json:"name"`
	Keys []int  `json:"keys"`
}

// Problem is something about a node that needs a person's attention.
type Problem struct {
	Key   int    `json:"key"`
	What  string `json:"what"`
	Grave bool   `json:"grave,omitempty"` // a failure, not just unusual
	Waits bool   `json:"waits,omitempty"` // a call without a result, normal during a run
}
