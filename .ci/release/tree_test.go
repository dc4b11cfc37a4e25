package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckoutWithoutTarIsAnError(t *testing.T) {
	// The archive does not fit into the pipe to tar.
	top := t.TempDir()
	for name, text := range map[string]string{"go.work": "go 1.26.0\n", "big": strings.Repeat("text\n", 200_000)} {
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	author := []string{"-c", "user.name=a", "-c", "user.email=a@example.com"}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, append(author, "commit", "-q", "-m", "first")} {
		if _, err := git(top, args...); err != nil {
			t.Fatal(err)
		}
	}
	tr := tree{root: top, revision: "HEAD"}
	folder, err := tr.checkout(filepath.Join(t.TempDir(), "tree"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "big")); err != nil {
		t.Fatal(err)
	}

	// A PATH with git alone.
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, "git")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	if _, err := tr.checkout(filepath.Join(t.TempDir(), "tree")); err == nil || !strings.Contains(err.Error(), `"tar"`) {
		t.Fatalf("the error is %v", err)
	}
}

func TestLessonsAreWholePrograms(t *testing.T) {
	page := "```go\nx := 1\n```\n```sh\nno\n```\n```go\npackage main\nA\n```\nwords\n```sh\ngo run .\n```\n```text\nout\n```\n"
	all := lessonsOf(page)
	if len(all) != 1 || all[0] != (lesson{"package main\nA\n", "go run .\n", "out\n"}) {
		t.Errorf("%q", all)
	}

	log := "■ stop      end_turn · 2 turns · 1 tool call"
	if slow := strings.ReplaceAll(log, "turns", "turns 4ms · 1.5s"); timeless(slow+"\n") != log {
		t.Errorf("%q", timeless(slow))
	}
}
