// Package unwrap finds what a wrapped value is inside.
package unwrap

// As returns v as a T, or the first value inside v that is one. A method "Unwrap() W" returns the next value inside.
func As[T, W any](v any) (found T, ok bool) {
	for v != nil {
		if found, ok = v.(T); ok {
			return found, true
		}
		wrapper, wraps := v.(interface{ Unwrap() W })
		if !wraps {
			break
		}
		v = wrapper.Unwrap()
	}
	return found, false
}
