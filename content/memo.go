package content

// Remember caches a value derived from the list, such as its encoding in a provider's format. The value is kept as long
// as the list is. The cache has these rules:
//
//   - A new value replaces the previous one for the key. A nil value only removes the previous one.
//   - A list keeps values for a few keys only, the latest ones, and the empty list keeps none. The caller must
//     therefore be able to compute the value again.
//   - Keys are compared as those of a map: a key that is not comparable panics.
func (b Blocks) Remember(key, value any) {
	if b.list != nil {
		b.list.memo.Put(key, value)
	}
}

// Recall returns the value cached for the key, or nil if there is none. It is safe for concurrent use, as is Remember.
func (b Blocks) Recall(key any) any {
	if b.list == nil {
		return nil
	}
	return b.list.memo.Get(key)
}

// Forget drops all values cached with the list.
func (b Blocks) Forget() {
	if b.list != nil {
		b.list.memo.Clear()
	}
}
