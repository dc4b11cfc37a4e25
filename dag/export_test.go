package dag

import "github.com/plait-dev/plait/internal/filelock"

// LocksFiles reports whether this platform has file locks.
const LocksFiles = filelock.Supported
