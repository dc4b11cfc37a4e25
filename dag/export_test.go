package dag

// LocksFiles reports whether this platform has file locks.
const LocksFiles = locksFiles
