package dag

import "slices"

// Bounds of the search for what two lists have in common. They keep the time near-linear, whatever the lists hold: what they cut
// off is a worse alignment, never a wrong one.
const (
	maxEdits  = 128 // the most that is searched for a shortest way
	maxSplits = 6   // how often a part of a list is cut at what is there once
)

// span is a part of two lists.
type span struct{ a, aEnd, b, bEnd, splits int }

// align finds what two lists have in common: for each place in a the place of its equal in b, or -1, the places in order. It is
// the most they have in common where they differ in little, and a good part of it elsewhere.
func align(a, b []int) []int {
	to := slices.Repeat([]int{-1}, len(a))
	spans := []span{{aEnd: len(a), bEnd: len(b)}}
	for len(spans) > 0 {
		s := spans[len(spans)-1]
		spans = spans[:len(spans)-1]
		for ; s.a < s.aEnd && s.b < s.bEnd && a[s.a] == b[s.b]; s.a, s.b = s.a+1, s.b+1 {
			to[s.a] = s.b
		}
		for ; s.a < s.aEnd && s.b < s.bEnd && a[s.aEnd-1] == b[s.bEnd-1]; s.aEnd, s.bEnd = s.aEnd-1, s.bEnd-1 {
			to[s.aEnd-1] = s.bEnd - 1
		}
		if s.a == s.aEnd || s.b == s.bEnd || shortest(a[s.a:s.aEnd], b[s.b:s.bEnd], func(i, j int) { to[s.a+i] = s.b + j }) {
			continue
		}
		if s.splits < maxSplits {
			spans = s.split(spans, a, b)
		}
	}
	return to
}

// shortest finds the shortest way from a to b, by the algorithm of Myers ("An O(ND) Difference Algorithm and Its Variations",
// 1986), and calls equal for each pair that it leaves as it is. It reports false where the way takes more than maxEdits.
func shortest(a, b []int, equal func(i, j int)) bool {
	const zero = maxEdits + 1
	var reach [2*zero + 1]int // how far in a one gets on each diagonal, from -zero to zero
	var trace [][]int         // of the diagonals that edit n can come from, before it: from -n-1 to n+1
	for n := range maxEdits + 1 {
		trace = append(trace, slices.Clone(reach[zero-n-1:zero+n+2]))
		for k := -n; k <= n; k += 2 {
			from := comesFrom(trace[n], n, k)
			i := reach[zero+from]
			if from < k {
				i++
			}
			for i < len(a) && i-k < len(b) && a[i] == b[i-k] {
				i++
			}
			reach[zero+k] = i
			if i >= len(a) && i-k >= len(b) {
				wayBack(trace, len(a), len(b), equal)
				return true
			}
		}
	}
	return false
}

// comesFrom is the diagonal from which edit n gets furthest on diagonal k: from above, which adds, or from the left, which removes.
func comesFrom(reach []int, n, k int) int {
	left, above := reach[k+n], reach[k+n+2]
	if k == -n || k < n && left < above {
		return k + 1
	}
	return k - 1
}

// wayBack goes the way that was found from its end to its beginning.
func wayBack(trace [][]int, i, j int, equal func(i, j int)) {
	for n := len(trace) - 1; n > 0; n-- {
		from := comesFrom(trace[n], n, i-j)
		before := trace[n][from+n+1]
		for i > before && j > before-from {
			i, j = i-1, j-1
			equal(i, j)
		}
		i, j = before, before-from
	}
	for ; i > 0; i-- {
		equal(i-1, i-1)
	}
}

// split cuts a span at what is once in both of its lists, as far as it is in order there, and adds what is between the cuts.
func (s span) split(spans []span, a, b []int) []span {
	type seen struct{ times, a, b int }
	counts := map[int]seen{}
	for i := s.a; i < s.aEnd; i++ {
		c := counts[a[i]]
		counts[a[i]] = seen{c.times + 1, i, -1}
	}
	for j := s.b; j < s.bEnd; j++ {
		if c, in := counts[b[j]]; in && c.times == 1 && c.b < 0 {
			counts[b[j]] = seen{1, c.a, j}
		} else if in {
			counts[b[j]] = seen{times: 2}
		}
	}
	var once []int // places in a, and where they are in b
	at := map[int]int{}
	for i := s.a; i < s.aEnd; i++ {
		if c := counts[a[i]]; c.times == 1 && c.b >= 0 {
			once, at[i] = append(once, i), c.b
		}
	}
	cuts := rising(once, at)
	if len(cuts) == 0 {
		return spans
	}
	from := s
	for _, i := range cuts {
		spans = append(spans, span{from.a, i, from.b, at[i], s.splits + 1}, span{i, i + 1, at[i], at[i] + 1, s.splits + 1})
		from.a, from.b = i+1, at[i]+1
	}
	return append(spans, span{from.a, s.aEnd, from.b, s.bEnd, s.splits + 1})
}

// rising returns a longest part of places whose values rise.
func rising(places []int, value map[int]int) []int {
	var ends []int // the place that ends a rising part of each length, the one of the least value
	before := map[int]int{}
	for _, p := range places {
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
	var out []int
	for p := ends[len(ends)-1]; p >= 0; p = before[p] {
		out = append(out, p)
	}
	slices.Reverse(out)
	return out
}
