// Command size counts what a reader of the tree has to know: lines of code, exported names, and words of documents.
//
//	GOWORK=off go run -C .ci/size .            # the working tree
//	GOWORK=off go run -C .ci/size . v0.1.0     # and the difference to a commit
//
// The rules:
//
//   - Files are those that git has, and those that it does not have yet and does not ignore.
//   - A line of code is a line of a Go file with something on it that is not a comment.
//   - A test is a file with the suffix _test.go, or below a testdata folder. Equipment is what only tests use: see
//     equipmentFolders. Tools are below .ci. Everything else is the product, but for bench and examples.
//   - Exported names are the constants, types, variables and functions of packages that a program can import, at the top
//     level. Methods are the exported methods of exported types. Tests, commands, equipment and internal packages have
//     none.
//   - Documents are the Markdown files outside examples and .ci, without CHANGELOG.md. A word is what stands between
//     spaces.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// equipmentFolders are the folders with nothing but test equipment.
var equipmentFolders = []string{
	"api/apitest", "store/storetest", "internal/testkit", "viz/internal/viztest",
}

func main() {
	flag.Usage = func() { fmt.Fprintln(flag.CommandLine.Output(), "usage: size [COMMIT]") }
	flag.Parse()
	if err := size(os.Stdout, "../..", flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

// size prints the counts of the working tree below root, beside those of a commit if it is not "".
func size(w io.Writer, root, commit string) error {
	names, err := git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	now, err := countFiles(split(names), func(name string) ([]byte, error) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			return nil, nil // removed, and git does not know it yet
		}
		return text, err
	})
	if err != nil || commit == "" {
		now.print(w, nil)
		return err
	}

	then, err := countCommit(root, commit)
	if err != nil {
		return err
	}
	now.print(w, then)
	return nil
}

// countCommit counts the files of a commit.
func countCommit(root, commit string) (*counts, error) {
	names, err := git(root, "ls-tree", "-r", "-z", "--name-only", commit)
	if err != nil {
		return nil, err
	}
	return countFiles(split(names), func(name string) ([]byte, error) {
		if !counted(name) {
			return nil, nil // one process for each file: leave out what is not needed
		}
		return git(root, "show", commit+":"+name)
	})
}

func split(names []byte) []string {
	return strings.Split(strings.TrimSuffix(string(names), "\x00"), "\x00")
}

// git returns the output of a git command in a folder.
func git(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(failure.Bytes()))
	}
	return out, nil
}
