//go:build !unix

package crashtest

import (
	"errors"
	"os"
)

func awaitThaw(ready func()) { ready() }

func freeze(*os.Process) error { return errors.ErrUnsupported }

func thaw(*os.Process) error { return errors.ErrUnsupported }
