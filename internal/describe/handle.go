package describe

// minHandle is the minimum length of an abbreviated digest.
const minHandle = 8

// HandleLength returns the number of hex digits needed to distinguish the digests, at least 8. Digests of equal content
// are equal at any length.
func HandleLength(digests []string) int {
	// Equal digests need not be distinguished, so compare each only once.
	whole := make(map[string]bool, len(digests))
	for _, d := range digests {
		whole[d] = true
	}

	for length := minHandle; ; length++ {
		cut := make(map[string]bool, len(whole))
		for d := range whole {
			// No more digits are needed than a digest has.
			if length >= len(d) {
				return len(d)
			}
			cut[d[:length]] = true
		}
		if len(cut) == len(whole) {
			return length
		}
	}
}
