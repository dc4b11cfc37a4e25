package sqlite

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// networks holds the file systems with files on another machine, by their number in statfs. 9p is not one of them:
// sandboxes for containers show their local disk as 9p.
var networks = map[uint32]string{
	0x00006969: "nfs",
	0x0000517B: "smb",
	0xFE534D42: "smb2",
	0xFF534D42: "cifs",
	0x0000564C: "ncp",
	0x5346414F: "afs",
	0x6B414653: "afs",
	0x73757245: "coda",
	0x00C36400: "ceph",
	0x0BD00BD0: "lustre",
	0x47504653: "gpfs",
	0x19830326: "beegfs",
}

// fuse is the number of all file systems in user space. Most of them are local.
const fuse = 0x65735546

// fuseNetworks holds the names of network file systems in user space.
var fuseNetworks = map[string]bool{
	"sshfs": true, "rclone": true, "s3fs": true, "mount-s3": true, "goofys": true, "gcsfuse": true, "blobfuse": true,
	"blobfuse2": true, "juicefs": true, "JuiceFS": true, "davfs": true, "davfs2": true, "curlftpfs": true, "glusterfs": true,
	"ceph-fuse": true, "smbnetfs": true, "mfs": true, "moosefs": true, "seaweedfs": true, "nfs": true,
}

// networkOf returns the name of the network file system of a file or folder, or "" for a local one.
func networkOf(path string) (string, error) {
	var system syscall.Statfs_t
	if err := syscall.Statfs(path, &system); err != nil {
		return "", &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	if uint32(system.Type) != fuse {
		return networks[uint32(system.Type)], nil
	}

	// Only the list of mounts has the name of the program.
	var file syscall.Stat_t
	if err := syscall.Stat(path, &file); err != nil {
		return "", &os.PathError{Op: "stat", Path: path, Err: err}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", nil // in a sandbox without /proc nobody can tell
	}
	device := uint64(file.Dev)
	major := device>>8&0xfff | device>>32&^0xfff
	minor := device&0xff | device>>12&^0xff
	return fuseNetwork(string(mounts), fmt.Sprintf("%d:%d", major, uint32(minor))), nil
}

// fuseNetwork returns the name of the network file system on a device, or "" if a list of mounts has no such one.
func fuseNetwork(mounts, device string) string {
	for line := range strings.Lines(mounts) {
		// 36 35 0:31 / /mnt rw,noatime shared:1 - fuse.sshfs host:/dir rw
		before, after, found := strings.Cut(line, " - ")
		mount, kind := strings.Fields(before), strings.Fields(after)
		if !found || len(mount) < 3 || len(kind) == 0 || mount[2] != device {
			continue
		}
		if name, isFuse := strings.CutPrefix(kind[0], "fuse."); isFuse && fuseNetworks[name] {
			return kind[0]
		}
	}
	return ""
}
