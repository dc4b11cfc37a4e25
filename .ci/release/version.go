package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// writeVersion makes the modules of the tree require each other at version, and makes go.work replace that version.
func (t tree) writeVersion(version string) error {
	if !semver.IsValid(version) || module.CheckPathMajor(version, "") != nil {
		return errors.New(version + " is no version of a module below v2, such as v0.2.0")
	}

	var errs []error
	for _, m := range t.modules {
		errs = append(errs, m.require(t.root, version))
	}
	return errors.Join(append(errs, t.replaceInWork(version))...)
}

// require writes version into the module's requirements of our other modules.
func (m nested) require(top, version string) error {
	name := filepath.Join(top, m.dir, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	mod, err := modfile.Parse(name, text, nil)
	if err != nil {
		return err
	}

	for _, r := range mod.Require {
		if ours(r.Mod.Path) {
			err = errors.Join(err, mod.AddRequire(r.Mod.Path, version))
		}
	}
	return errors.Join(err, os.WriteFile(name, modfile.Format(mod.Syntax), 0o644))
}

// replaced matches a replace line of go.work up to the arrow, with its version.
var replaced = regexp.MustCompile(`(?m)^(\s*` + regexp.QuoteMeta(root) + `\S*) \S+ =>`)

// replaceInWork writes version into the replace lines of go.work.
func (t tree) replaceInWork(version string) error {
	name := filepath.Join(t.root, "go.work")
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return os.WriteFile(name, replaced.ReplaceAll(text, []byte("$1 "+version+" =>")), 0o644)
}
