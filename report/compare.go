package report

// Comparison shows several conversations side by side, from their first different step.
type Comparison struct {
	// Names are the names of the rows.
	Names []string `json:"names"`
	// Same counts the steps at the beginning with the same content in all conversations. Last is the last of these
	// steps, or nil.
	Same int   `json:"same"`
	Last *Step `json:"last"`
	// Lines are the steps after these. A line has one entry for each conversation, in the order of Names: a step, or
	// nil. Steps with one label share a line as far as their order allows.
	Lines [][]*Step `json:"lines"`
	// Cut reports whether a conversation has more than 400 steps. Only the first 400 are compared.
	Cut bool `json:"cut,omitempty"`
}

// Compare compares conversations from their common ancestor. Its time is quadratic in the number of steps.
func Compare(rows []Row) Comparison {
	c := Comparison{Lines: [][]*Step{}}
	var lists [][]Step
	for _, r := range rows {
		c.Names = append(c.Names, r.Name)
		lists = append(lists, r.Steps())
		c.Cut = c.Cut || r.NumSteps > maxSteps
	}
	if len(rows) == 0 {
		return c
	}

	// It suffices to compare each list with the first.
	c.Same = len(lists[0])
	for _, r := range rows[1:] {
		c.Same = min(c.Same, common(rows[0].steps(), r.steps(), func(a, b step) bool { return a.content == b.content }))
	}

	if c.Same > 0 {
		c.Last = &lists[0][c.Same-1]
	}

	for i, list := range lists {
		c.add(i, list[c.Same:])
	}
	return c
}

// add adds the steps of conversation number i to the lines.
func (c *Comparison) add(i int, steps []Step) {
	labels := make([]string, len(c.Lines)) // of the lines; the steps of a line have one
	for k, line := range c.Lines {
		for _, s := range line {
			if s != nil {
				labels[k] = s.Label
			}
		}
	}

	// Before each pair with a common label come the lines of the others alone, and then the steps of this conversation
	// alone. The last pair is the end of both.
	lines := make([][]*Step, 0, max(len(labels), len(steps)))
	line, at := 0, 0
	for _, pair := range append(longestCommon(labels, steps), [2]int{len(labels), len(steps)}) {
		for ; line < pair[0]; line++ {
			lines = append(lines, append(c.Lines[line], nil))
		}
		for ; at < pair[1]; at++ {
			lines = append(lines, append(make([]*Step, i), &steps[at]))
		}
		if line < len(labels) && at < len(steps) {
			lines = append(lines, append(c.Lines[line], &steps[at]))
			line, at = line+1, at+1
		}
	}
	c.Lines = lines
}

// longestCommon returns a longest common subsequence of labels, as pairs of indexes.
func longestCommon(labels []string, steps []Step) (pairs [][2]int) {
	// best[i*width+k] is the length of the longest common subsequence of labels[i:] and steps[k:].
	width := len(steps) + 1
	best := make([]uint16, (len(labels)+1)*width)
	for i := len(labels) - 1; i >= 0; i-- {
		for k := len(steps) - 1; k >= 0; k-- {
			if labels[i] == steps[k].Label {
				best[i*width+k] = best[(i+1)*width+k+1] + 1
			} else {
				best[i*width+k] = max(best[(i+1)*width+k], best[i*width+k+1])
			}
		}
	}

	// Follow the best choices from the beginning.
	for i, k := 0, 0; i < len(labels) && k < len(steps); {
		switch {
		case labels[i] == steps[k].Label:
			pairs = append(pairs, [2]int{i, k})
			i, k = i+1, k+1
		case best[(i+1)*width+k] >= best[i*width+k+1]:
			i++
		default:
			k++
		}
	}
	return pairs
}
