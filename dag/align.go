package dag

import "slices"

// Limits of align. They keep the time near-linear for any lists. Beyond them it finds fewer common elements, but never
// wrong ones.
const (
	maxEdits  = 128 // maximum length of an edit path that is searched
	maxSplits = 6   // maximum depth of splitting a span
)

// span is a range of each of two lists: [a, aEnd) and [b, bEnd).
type span struct{ a, aEnd, b, bEnd, splits int }

// align finds common elements of two lists. It returns, for each index in a, the index of an equal element in b or -1;
// the indexes rise. It finds a longest common subsequence of lists that differ little, and a shorter one of others.
func align(a, b []int) []int {
	to := slices.Repeat([]int{-1}, len(a))
	spans := []span{{aEnd: len(a), bEnd: len(b)}}
	for len(spans) > 0 {
		s := spans[len(spans)-1]
		spans = spans[:len(spans)-1]

		// Skip a common beginning and a common end.
		for ; s.a < s.aEnd && s.b < s.bEnd && a[s.a] == b[s.b]; s.a, s.b = s.a+1, s.b+1 {
			to[s.a] = s.b
		}
		for ; s.a < s.aEnd && s.b < s.bEnd && a[s.aEnd-1] == b[s.bEnd-1]; s.aEnd, s.bEnd = s.aEnd-1, s.bEnd-1 {
			to[s.aEnd-1] = s.bEnd - 1
		}

		equal := func(i, j int) { to[s.a+i] = s.b + j }
		if s.a == s.aEnd || s.b == s.bEnd || shortest(a[s.a:s.aEnd], b[s.b:s.bEnd], equal) {
			continue
		}
		if s.splits < maxSplits {
			spans = s.split(spans, a, b)
		}
	}
	return to
}

// shortest finds a shortest edit path from a to b, by the algorithm of Myers ("An O(ND) Difference Algorithm and Its
// Variations", 1986). It calls equal for each pair of elements that the path keeps. It returns false if the path is
// longer than maxEdits.
func shortest(a, b []int, equal func(i, j int)) bool {
	const zero = maxEdits + 1
	var reach [2*zero + 1]int // the furthest index in a on each diagonal, from -zero to zero
	var trace [][]int         // reach before edit n, on the diagonals from -n-1 to n+1

	for n := range maxEdits + 1 {
		trace = append(trace, slices.Clone(reach[zero-n-1:zero+n+2]))
		for k := -n; k <= n; k += 2 {
			// Continue from the neighbor that has reached further.
			from := comesFrom(trace[n], n, k)
			i := reach[zero+from]
			if from < k {
				i++
			}

			// Equal elements cost no edit.
			for i < len(a) && i-k < len(b) && a[i] == b[i-k] {
				i++
			}
			reach[zero+k] = i

			// Both lists are at their end.
			if i >= len(a) && i-k >= len(b) {
				backtrack(trace, len(a), len(b), equal)
				return true
			}
		}
	}
	return false
}

// comesFrom returns the best diagonal for edit n to reach diagonal k. It is the one above, by adding an element, or the
// one to the left, by removing an element; the one that has reached further wins.
func comesFrom(reach []int, n, k int) int {
	left, above := reach[k+n], reach[k+n+2]
	if k == -n || k < n && left < above {
		return k + 1
	}
	return k - 1
}

// backtrack follows the shortest path from its end to its beginning.
func backtrack(trace [][]int, i, j int, equal func(i, j int)) {
	for n := len(trace) - 1; n > 0; n-- {
		from := comesFrom(trace[n], n, i-j)
		before := trace[n][from+n+1]

		// The path came from diagonal from by one edit, and then along equal elements.
		for i > before && j > before-from {
			i, j = i-1, j-1
			equal(i, j)
		}
		i, j = before, before-from
	}

	// Before the first edit both lists are equal.
	for ; i > 0; i-- {
		equal(i-1, i-1)
	}
}

// split cuts a span at elements that occur once in each of its lists, and appends the parts to spans.
func (s span) split(spans []span, a, b []int) []span {
	// Find the elements that occur once in both lists. An element that occurs twice may be paired wrongly.
	type seen struct{ times, a, b int }
	counts := map[int]seen{}
	for i := s.a; i < s.aEnd; i++ {
		c := counts[a[i]]
		counts[a[i]] = seen{c.times + 1, i, -1}
	}

	// An element that has an index in b already occurs twice there.
	for j := s.b; j < s.bEnd; j++ {
		if c, in := counts[b[j]]; in && c.times == 1 && c.b < 0 {
			counts[b[j]] = seen{1, c.a, j}
		} else if in {
			counts[b[j]] = seen{times: 2}
		}
	}

	// Cut at as many of them as have the same order in both lists.
	var once []int      // indexes in a of the elements that occur once
	at := map[int]int{} // their indexes in b
	for i := s.a; i < s.aEnd; i++ {
		if c := counts[a[i]]; c.times == 1 && c.b >= 0 {
			once, at[i] = append(once, i), c.b
		}
	}

	cuts := rising(once, at)
	if len(cuts) == 0 {
		return spans
	}

	// Each cut becomes a span of one equal pair, with smaller spans between the cuts.
	from := s
	for _, i := range cuts {
		spans = append(spans,
			span{from.a, i, from.b, at[i], s.splits + 1},
			span{i, i + 1, at[i], at[i] + 1, s.splits + 1})
		from.a, from.b = i+1, at[i]+1
	}
	return append(spans, span{from.a, s.aEnd, from.b, s.bEnd, s.splits + 1})
}

// rising returns a longest subsequence of list with rising values.
func rising(list []int, value map[int]int) []int {
	var ends []int          // for each length, the last element of the subsequence with the least last value
	before := map[int]int{} // the element before each element in its subsequence
	for _, p := range list {
		n, _ := slices.BinarySearchFunc(ends, value[p], func(end, v int) int { return value[end] - v })
		before[p] = -1
		if n > 0 {
			before[p] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, p)
		}
		ends[n] = p
	}

	if len(ends) == 0 {
		return nil
	}

	// Go back from the end of the longest subsequence.
	var out []int
	for p := ends[len(ends)-1]; p >= 0; p = before[p] {
		out = append(out, p)
	}
	slices.Reverse(out)
	return out
}
