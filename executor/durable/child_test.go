package durable

// childMain runs this test program as a child of a test, if it is one.
func childMain() {}
