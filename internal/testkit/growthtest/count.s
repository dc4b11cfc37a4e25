//go:build countstatements

// Empty: it lets count.go declare a function without a body.
