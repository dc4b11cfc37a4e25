package report

import "slices"

// Texts limits the memory for the texts of steps. Each row made with it ([Options]) keeps the texts of its first steps.
// [StepShare] gives their number: the more rows, the fewer texts for each. A new row may drop texts of earlier ones.
// The zero value is ready to use. It is not safe for concurrent use.
type Texts struct {
	lists []*stepList // of the rows
	kept  int         // how many texts they have at most
}

// StepShare returns, for a number of rows, how many steps of each row keep their texts: an equal share of 100,000, but
// at least 20 and at most 400.
func StepShare(rows int) int { return min(max(100_000/max(rows, 1), 20), maxSteps) }

// share returns the number of texts to keep in the next row.
func (t *Texts) share() int {
	if t == nil {
		return maxSteps
	}
	return StepShare(len(t.lists) + 1)
}

// add counts a row, and cuts all rows to their share when they have more than twice as many texts.
func (t *Texts) add(list *stepList) {
	if t == nil {
		return
	}
	t.lists = append(t.lists, list)
	t.kept += len(list.texts)

	// Cutting all rows takes time, so it is put off until there is twice too much.
	share := StepShare(len(t.lists))
	if t.kept <= 2*share*len(t.lists) {
		return
	}

	t.kept = 0
	for _, list := range t.lists {
		if len(list.texts) > share {
			list.texts = slices.Clone(list.texts[:share])
		}
		t.kept += len(list.texts)
	}
}
