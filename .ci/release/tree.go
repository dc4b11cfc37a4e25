package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// root is the path of the root module. The nested modules are below it.
const root = "github.com/plait-dev/plait"

// tree is the checkout to release.
type tree struct {
	root     string // the folder
	revision string // a commit with its content, uncommitted changes included
	version  string // the version at which the modules require each other
	modules  []nested
}

// nested is a module of the tree.
type nested struct {
	path string // the module path, as in its go.mod
	dir  string // below the root, with slashes; "" for the root module
}

// readTree finds the modules of the checkout around the working directory. Their go.mod files must require each other
// at one version, and must not have a replace line, because "go install" refuses a module with one.
func readTree() (tree, error) {
	top, err := git("", "rev-parse", "--show-toplevel")
	if err != nil {
		return tree{}, err
	}
	t := tree{root: top}

	// Without changes "stash create" prints nothing, and the last commit is the content of the tree.
	if t.revision, err = git(t.root, "stash", "create"); err != nil {
		return tree{}, err
	}
	if t.revision == "" {
		t.revision = "HEAD"
	}

	files, err := git(t.root, "ls-files", "*go.mod")
	if err != nil {
		return tree{}, err
	}

	var problems []error
	for _, name := range strings.Fields(files) {
		if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "bench/peers/") {
			continue // a tool of CI, or a program of the benchmark with another library
		}
		problems = append(problems, t.add(name))
	}
	return t, errors.Join(problems...)
}

// add adds the module of a go.mod file.
func (t *tree) add(name string) error {
	text, err := os.ReadFile(filepath.Join(t.root, name))
	if err != nil {
		return err
	}
	mod, err := modfile.Parse(name, text, nil)
	if err != nil {
		return err
	}
	if len(mod.Replace) > 0 {
		return fmt.Errorf("%s: a replace line, which makes go install refuse the module; go.work joins the modules", name)
	}

	// The first version found is that of all.
	for _, r := range mod.Require {
		if !ours(r.Mod.Path) {
			continue
		}
		if t.version == "" {
			t.version = r.Mod.Version
		}
		if r.Mod.Version != t.version {
			return fmt.Errorf("%s requires %s, where other modules require %s", name, r.Mod, t.version)
		}
	}

	dir, _ := strings.CutSuffix(name, "go.mod")
	t.modules = append(t.modules, nested{path: mod.Module.Mod.Path, dir: strings.TrimSuffix(dir, "/")})
	return nil
}

// ours reports whether path is the path of one of our modules.
func ours(path string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// writeProxy writes the modules of a checkout in the layout of a module proxy, and returns the folder.
func (t tree) writeProxy(folder, checkout string) (string, error) {
	for _, m := range t.modules {
		escaped, err := module.EscapePath(m.path)
		if err != nil {
			return "", err
		}

		versions := filepath.Join(folder, escaped, "@v")
		if err := os.MkdirAll(versions, 0o755); err != nil {
			return "", err
		}

		if err := t.writeModule(m, filepath.Join(checkout, m.dir), filepath.Join(versions, t.version)); err != nil {
			return "", fmt.Errorf("%s: %w", m.path, err)
		}
		if err := os.WriteFile(filepath.Join(versions, "list"), []byte(t.version+"\n"), 0o644); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// writeModule writes the three files of one version: .info, .mod and .zip. Base is their path without the extension;
// dir contains the module.
func (t tree) writeModule(m nested, dir, base string) error {
	info, err := json.Marshal(map[string]string{"Version": t.version, "Time": "2026-01-01T00:00:00Z"})
	if err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}

	archive, err := os.Create(base + ".zip")
	if err != nil {
		return err
	}
	defer archive.Close()

	// The archive has the files of this module alone: CreateFromDir leaves out modules in subfolders.
	return errors.Join(
		os.WriteFile(base+".info", info, 0o644),
		os.WriteFile(base+".mod", mod, 0o644),
		zip.CreateFromDir(archive, module.Version{Path: m.path, Version: t.version}, dir),
		archive.Close(),
	)
}

// checkout writes the files in git to a separate folder, without go.work, and returns the folder. So no check writes
// into the tree, and files outside git are not released.
func (t tree) checkout(folder string) (string, error) {
	if err := os.Mkdir(folder, 0o755); err != nil {
		return "", err
	}

	archive := exec.Command("git", "-C", t.root, "archive", t.revision)
	unpack := exec.Command("tar", "-x", "-C", folder)
	pipe, err := archive.StdoutPipe()
	if err != nil {
		return "", err
	}
	unpack.Stdin = pipe

	// Wait for git last: it closes the pipe, which tar must have read to its end.
	if err := archive.Start(); err != nil {
		return "", err
	}
	err = unpack.Run()

	// Read what tar has left, if it is missing or ended early: git would wait for room in the pipe.
	_, rest := io.Copy(io.Discard, pipe)
	return folder, errors.Join(err, rest, archive.Wait(), os.Remove(filepath.Join(folder, "go.work")))
}

// check tidies and builds the module by itself. The tidied files may differ only in the sums of our own modules. Those
// sums are unknown before the modules are published.
func (m nested) check(env environment, alone string) error {
	dir := filepath.Join(alone, m.dir)
	before, err := readModFiles(dir)
	if err != nil {
		return err
	}

	if _, err := env.run(dir, "go", "mod", "tidy"); err != nil {
		return err
	}

	after, err := readModFiles(dir)
	if err != nil {
		return err
	}
	if before != after.withoutOurs() {
		return errors.New("go.mod or go.sum is not tidy: run .ci/release-check -tidy")
	}

	_, err = env.run(dir, "go", "build", "./...")
	return err
}

// writeTidied writes the tidied go.mod and go.sum to the tree.
func (m nested) writeTidied(env environment, alone, to string) error {
	dir := filepath.Join(alone, m.dir)
	if _, err := env.run(dir, "go", "mod", "tidy"); err != nil {
		return err
	}

	files, err := readModFiles(dir)
	if err != nil {
		return err
	}
	files = files.withoutOurs()
	return errors.Join(
		os.WriteFile(filepath.Join(to, m.dir, "go.mod"), []byte(files.mod), 0o644),
		os.WriteFile(filepath.Join(to, m.dir, "go.sum"), []byte(files.sum), 0o644),
	)
}

// modFiles are the go.mod and the go.sum of a module.
type modFiles struct{ mod, sum string }

func readModFiles(dir string) (modFiles, error) {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return modFiles{}, err
	}
	sum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	return modFiles{string(mod), string(sum)}, err
}

// withoutOurs returns the files without the sums of our own modules.
func (f modFiles) withoutOurs() modFiles {
	lines := slices.DeleteFunc(strings.SplitAfter(f.sum, "\n"), func(line string) bool {
		path, _, _ := strings.Cut(line, " ")
		return ours(path)
	})
	return modFiles{f.mod, strings.Join(lines, "")}
}

// git runs a git command and returns its output without spaces around it.
func git(dir string, args ...string) (string, error) {
	var errs bytes.Buffer
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stderr = dir, &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, &errs)
	}
	return strings.TrimSpace(string(out)), nil
}
