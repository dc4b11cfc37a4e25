package sqlite

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Local file systems, among them those of containers, are used. The numbers are those of statfs(2).
func TestLocalFileSystemsAreUsed(t *testing.T) {
	for name, number := range map[string]uint32{
		"ext4": 0xEF53, "xfs": 0x58465342, "btrfs": 0x9123683E, "zfs": 0x2FC12FC1, "overlayfs": 0x794C7630, "tmpfs": 0x01021994,
		"ramfs": 0x858458F6, "f2fs": 0xF2F52010, "bcachefs": 0xCA451A4E, "9p": 0x01021997, "fuse": fuse, "ntfs": 0x5346544E, "vfat": 0x4D44,
	} {
		require.Empty(t, networks[number], name)
	}
	for _, path := range []string{t.TempDir(), "/proc"} {
		network, err := networkOf(path)
		require.NoError(t, err)
		require.Empty(t, network, path)
	}
}

func TestFuseIsRefusedByTheNameOfItsProgram(t *testing.T) {
	const mounts = `22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
36 22 0:31 / /mnt/remote rw shared:1 - fuse.sshfs host:/dir rw,user_id=0
37 22 0:32 / /mnt/disk rw - fuseblk /dev/sdb1 rw
38 22 0:33 / /mnt/shared rw - virtiofs host rw
39 22 0:34 / /mnt/bucket rw - fuse.rclone remote: rw
`
	require.Equal(t, "fuse.sshfs", fuseNetwork(mounts, "0:31"))
	require.Equal(t, "fuse.rclone", fuseNetwork(mounts, "0:34"))
	for _, device := range []string{"254:0", "0:32", "0:33", "0:99"} {
		require.Empty(t, fuseNetwork(mounts, device), device)
	}
}
