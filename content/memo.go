package content

// Remember keeps something that was made of the list, such as its bytes in a provider's form, beside the list, for as long as the
// list itself is kept. What was remembered for the key before is forgotten; a nil value is only that. A list remembers for a few keys only, the latest
// ones, and the empty list nothing; so what is remembered must be something that can be made again. Keys are compared, as those of
// a map: one that cannot be compared panics.
func (b Blocks) Remember(key, value any) {
	if b.list != nil {
		b.list.memo.Put(key, value)
	}
}

// Recall returns what is remembered for the key; nil when nothing is. It is safe for concurrent use, as Remember is.
func (b Blocks) Recall(key any) any {
	if b.list == nil {
		return nil
	}
	return b.list.memo.Get(key)
}

// Forget drops everything that is remembered with the list. Whoever needs it makes it again.
func (b Blocks) Forget() {
	if b.list != nil {
		b.list.memo.Clear()
	}
}
