package roundtrip

// LinesOf is Lines with another limit.
var LinesOf = linesOf
