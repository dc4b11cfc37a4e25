//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// owner returns the user for the cluster, or nil for the user of this program.
func owner() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}

	// The server refuses to run as root. Debian's packages make the user postgres; nobody is on most systems.
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(found.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(found.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, fmt.Errorf("the tests run as root, and there is neither a user postgres nor nobody")
}

// give makes the owner of the cluster the owner of a folder.
func give(dir string) error {
	o, err := owner()
	if o == nil || err != nil {
		return err
	}
	return os.Chown(dir, int(o.Uid), int(o.Gid))
}

// asOwner lets a command run as the owner of the cluster.
func asOwner(cmd *exec.Cmd) {
	if o, err := owner(); o != nil && err == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: o}
	}
}
