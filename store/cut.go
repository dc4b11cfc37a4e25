package store

import (
	"bytes"
	"fmt"
)

// defaultCut is the default of Options.Cut.
const defaultCut = 32 << 10

// cutLine cuts the contents of string literals of at least limit bytes out of a line. It returns the rest of the line,
// the cuts, and the contents as blobs. Contents stay escaped: the line can be restored byte by byte.
func cutLine(line []byte, limit int) (rest []byte, cuts []Cut, blobs []Blob) {
	if len(line) < limit {
		return line, nil, nil
	}

	// Outside its literals, JSON has no quotes, so each quote found by the loop opens a literal. Both quotes stay in
	// rest; the cut lies between them.
	kept := 0 // line[:kept] is in rest or in a blob
	for i := 0; i < len(line); i++ {
		if line[i] != '"' {
			continue
		}
		end := i + 1 + literalEnd(line[i+1:])
		if content := line[i+1 : end]; len(content) >= limit {
			rest = append(rest, line[kept:i+1]...)
			kept = end
			b := Blob{Sum: SumOf(content), Data: content}
			cuts, blobs = append(cuts, Cut{Offset: len(rest), Sum: b.Sum}), append(blobs, b)
		}
		i = end
	}

	if cuts == nil {
		return line, nil, nil
	}
	return append(rest, line[kept:]...), cuts, blobs
}

// literalEnd returns the index of the quote at the end of a string literal, or len(text) if there is none.
func literalEnd(text []byte) int {
	for end := 0; ; {
		quote := bytes.IndexByte(text[end:], '"')
		if quote < 0 {
			return len(text)
		}
		end += quote

		// A quote after an odd number of backslashes is escaped.
		before := len(text[:end]) - len(bytes.TrimRight(text[:end], `\`))
		if before%2 == 0 {
			return end
		}
		end++
	}
}

// restored returns the whole line of a record, and checks its sum.
func (r Record) restored(blobs map[Sum][]byte) ([]byte, error) {
	line := r.Line
	if len(r.Cuts) > 0 {
		// The record comes from the database: a damaged offset must be an error here, not a panic below.
		if err := r.checkCuts(); err != nil {
			return nil, err
		}

		line = nil
		from := 0 // r.Line[:from] is in line
		for _, c := range r.Cuts {
			line = append(append(line, r.Line[from:c.Offset]...), blobs[c.Sum]...)
			from = c.Offset
		}
		line = append(line, r.Line[from:]...)
	}

	// The sum covers the cuts too, so it also finds a wrong or missing blob.
	if sum := SumOf(line); sum != r.Sum {
		return nil, fmt.Errorf("its sum is %s instead of %s: it was changed", sum, r.Sum)
	}
	return line, nil
}

// sums returns the sums of the records' blobs, each once.
func sums(records []Record) []Sum {
	var list []Sum
	seen := map[Sum]bool{}
	for _, r := range records {
		for _, c := range r.Cuts {
			if !seen[c.Sum] {
				seen[c.Sum] = true
				list = append(list, c.Sum)
			}
		}
	}
	return list
}
