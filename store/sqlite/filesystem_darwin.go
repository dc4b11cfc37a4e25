package sqlite

import (
	"os"
	"syscall"
)

// networks are the network file systems.
var networks = map[string]bool{"nfs": true, "smbfs": true, "afpfs": true, "webdav": true, "ftp": true}

// networkOf returns the name of the network file system of a file or folder, or "" for a local one.
func networkOf(path string) (string, error) {
	var system syscall.Statfs_t
	if err := syscall.Statfs(path, &system); err != nil {
		return "", &os.PathError{Op: "statfs", Path: path, Err: err}
	}

	// The name is a C string in an array: a zero ends it.
	var name []byte
	for _, c := range system.Fstypename {
		if c == 0 {
			break
		}
		name = append(name, byte(c))
	}
	if !networks[string(name)] {
		return "", nil
	}
	return string(name), nil
}
