package png

import (
	"slices"
	"strings"

	"golang.org/x/text/unicode/bidi"
)

// piece is a part of a line with one direction. Its text is in the order in which it is read.
type piece struct {
	text      string
	fromRight bool
}

// pieces cuts a line that reads in the given direction into pieces, in the order in which they are drawn from left to
// right.
func pieces(line string, fromRight bool) []piece {
	if !fromRight && !strings.ContainsFunc(line, reorders) {
		return []piece{{text: line}}
	}

	text := []rune(line)
	order := levels(text, fromRight)
	var list []piece
	var at []int8 // by piece: its level
	for i, r := range text {
		if i > 0 && order[i] == order[i-1] {
			list[len(list)-1].text += string(r)
			continue
		}
		list, at = append(list, piece{string(r), order[i]%2 == 1}), append(at, order[i])
	}

	// Rule L2: from the highest level down, reverse each sequence of pieces of that level or a higher one.
	for level := slices.Max(at); level > 0; level-- {
		for from := 0; from < len(at); from++ {
			to := from
			for to < len(at) && at[to] >= level {
				to++
			}
			slices.Reverse(list[from:to])
			slices.Reverse(at[from:to])
			from = to
		}
	}
	return list
}

// reorders reports whether a character may change the order of a line that reads from left to right.
func reorders(r rune) bool {
	if r < 0x590 {
		return false
	}
	props, _ := bidi.LookupRune(r)
	return props.Class() == bidi.R || props.Class() == bidi.AL || props.Class() == bidi.AN
}

// levels returns the level of each character of a line, by the Unicode bidirectional algorithm (UAX #9, whose rules are
// named below). Even levels read from left to right, odd ones from right to left. x/text has the classes of characters,
// and a Paragraph that returns directions without levels: "אב 12 ab" cannot be put in order from them. A line has no
// direction signs, so there are no explicit levels: safetext replaces the signs.
func levels(text []rune, fromRight bool) []int8 {
	l := reading{text: text, class: make([]bidi.Class, len(text)), base: bidi.L}
	if fromRight {
		l.base = bidi.R
	}
	for i, r := range text {
		props, _ := bidi.LookupRune(r)
		l.class[i] = props.Class()
	}

	original := slices.Clone(l.class)
	l.weak()
	l.brackets(original)
	l.neutral()
	return l.levels(original)
}

// reading is a line whose order is computed. The class of a character changes from rule to rule; base is the direction of
// the line.
type reading struct {
	text  []rune
	class []bidi.Class
	base  bidi.Class
}

// weak applies the rules W1 to W7: to marks, numbers, and the signs in and beside numbers.
func (l *reading) weak() {
	before, strong := l.base, l.base
	for i, c := range l.class {
		switch {
		case c == bidi.NSM: // W1
			c = before
		case c == bidi.EN && strong == bidi.AL: // W2
			c = bidi.AN
		case c == bidi.L || c == bidi.R || c == bidi.AL:
			strong = c
		}
		l.class[i], before = c, c
	}

	for i, c := range l.class {
		switch c {
		case bidi.AL: // W3
			l.class[i] = bidi.R
		case bidi.ES, bidi.CS: // W4
			if a := l.at(i - 1); a == l.at(i+1) && (a == bidi.EN || a == bidi.AN && c == bidi.CS) {
				l.class[i] = a
			}
		}
	}

	for i, c := range l.class {
		switch c {
		case bidi.ET: // W5, W6
			// Signs before a number have its class after the sequence; those after it, from the left on.
			if l.at(i-1) == bidi.EN || l.at(l.end(i, bidi.ET)) == bidi.EN {
				l.class[i] = bidi.EN
			} else {
				l.class[i] = bidi.ON
			}
		case bidi.ES, bidi.CS: // W6
			l.class[i] = bidi.ON
		}
	}

	strong = l.base
	for i, c := range l.class {
		switch {
		case c == bidi.L || c == bidi.R:
			strong = c
		case c == bidi.EN && strong == bidi.L: // W7
			l.class[i] = bidi.L
		}
	}
}

// maxOpen is the number of open brackets after which the algorithm stops looking for pairs.
const maxOpen = 63

// brackets applies rule N0: both brackets of a pair have one direction. original holds the classes before rule W1.
func (l *reading) brackets(original []bidi.Class) {
	type pair struct{ open, shut int }
	var open []int
	var pairs []pair
	for i, r := range l.text {
		props, _ := bidi.LookupRune(r)
		switch {
		case !props.IsBracket() || l.class[i] != bidi.ON:
		case props.IsOpeningBracket():
			if open = append(open, i); len(open) > maxOpen {
				return
			}
		default:
			for k := len(open) - 1; k >= 0; k-- {
				if l.text[open[k]] == mirrored(r) {
					pairs = append(pairs, pair{open[k], i})
					open = open[:k]
					break
				}
			}
		}
	}

	slices.SortFunc(pairs, func(a, b pair) int { return a.open - b.open })
	for _, p := range pairs {
		c := l.bracket(p.open, p.shut)
		if c == bidi.ON {
			continue
		}
		for _, i := range []int{p.open, p.shut} {
			l.class[i] = c
			for i++; i < len(original) && original[i] == bidi.NSM; i++ {
				l.class[i] = c
			}
		}
	}
}

// bracket returns the direction of a pair of brackets: that of the line if there is such a letter between them, and
// otherwise that of the letters between them and before them, if they agree. Without letters it returns ON.
func (l *reading) bracket(open, shut int) bidi.Class {
	other := false
	for i := open + 1; i < shut; i++ {
		switch c := l.strong(i); {
		case c == l.base:
			return l.base
		case c != bidi.ON:
			other = true
		}
	}
	if !other {
		return bidi.ON
	}

	for i := open - 1; i >= 0; i-- {
		if c := l.strong(i); c != bidi.ON {
			return c
		}
	}
	return l.base
}

// neutral applies the rules N1 and N2: spaces and signs between two directions.
func (l *reading) neutral() {
	for i := 0; i < len(l.class); i++ {
		if l.strong(i) != bidi.ON {
			continue
		}

		end := i
		for end < len(l.class) && l.strong(end) == bidi.ON {
			end++
		}
		c := l.base
		if before := l.strong(i - 1); before == l.strong(end) {
			c = before
		}
		l.fill(i, end, c)
		i = end - 1
	}
}

// levels applies the rules I1, I2 and L1.
func (l *reading) levels(original []bidi.Class) []int8 {
	base := int8(0)
	if l.base == bidi.R {
		base = 1
	}
	levels := make([]int8, len(l.class))
	for i, c := range l.class {
		levels[i] = base
		switch {
		case c == bidi.R:
			levels[i] = 1
		case c == bidi.L && base == 1 || c == bidi.EN || c == bidi.AN:
			levels[i] = 2
		}
	}

	for i := len(levels) - 1; i >= 0 && original[i] == bidi.WS; i-- {
		levels[i] = base
	}
	return levels
}

// at returns the class of a character, or that of the line beyond its ends.
func (l *reading) at(i int) bidi.Class {
	if i < 0 || i >= len(l.class) {
		return l.base
	}
	return l.class[i]
}

// strong returns L or R for a character with that direction, and R for a number. It returns ON for others.
func (l *reading) strong(i int) bidi.Class {
	switch c := l.at(i); c {
	case bidi.L, bidi.R:
		return c
	case bidi.EN, bidi.AN:
		return bidi.R
	}
	return bidi.ON
}

// end returns the end of the sequence of characters of a class that begins at i.
func (l *reading) end(i int, c bidi.Class) int {
	for i < len(l.class) && l.class[i] == c {
		i++
	}
	return i
}

func (l *reading) fill(from, to int, c bidi.Class) {
	for i := from; i < to; i++ {
		l.class[i] = c
	}
}

// signs are signs with a mirror image that are no brackets, each beside its image.
var signs = []rune("<>«»‹›≤≥")

// mirrored returns the mirror image of a bracket or sign, for a piece from right to left, and other characters unchanged.
func mirrored(r rune) rune {
	if i := slices.Index(signs, r); i >= 0 {
		return signs[i^1]
	}
	if props, _ := bidi.LookupRune(r); props.IsBracket() {
		return []rune(bidi.ReverseString(string(r)))[0]
	}
	return r
}
