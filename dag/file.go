package dag

// header is what a saved file says of the whole conversation.
type header struct{}
