// Command release checks that the tree can be released, by doing with it what users do.
//
// It makes a module proxy from the last commit and the uncommitted changes. Then, with an empty module cache, it
//
//   - tidies and builds every module by itself, without the workspace;
//   - installs the command with "go install …@version" and checks the version that it prints;
//   - makes a new module for the core, for each provider and for viz/png, gets that module, and compiles and runs the
//     README's quick start in it;
//   - does what docs/first-hour.md says, for a script, a local server and each provider;
//   - does the same for store/sqlite and store/postgres, with a program that keeps a conversation and executes a durable
//     run. Without a PostgreSQL server the latter is only compiled; with PLAIT_POSTGRES=1 this is an error.
//
// With -version it only writes a new version into every go.mod and into go.work. With -tidy it only tidies each module
// and writes the result back to the tree. "go mod tidy" alone fails before a version is published, because it does not
// read go.work.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/plait-dev/plait/internal/testkit/pgtest"
)

func main() {
	tidy := flag.Bool("tidy", false, "tidy the go.mod and go.sum of every module, and check nothing else")
	keep := flag.Bool("keep", false, "keep the temporary folder: proxy, module cache and programs")
	version := flag.String("version", "", "write this version into every module, and check nothing")
	flag.Parse()

	if err := run(*tidy, *keep, *version); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(tidy, keep bool, version string) (err error) {
	tree, err := readTree()
	if err != nil {
		return err
	}
	if version != "" {
		return tree.writeVersion(version)
	}

	temp, err := os.MkdirTemp("", "plait-release-")
	if err != nil {
		return err
	}
	env := environment{temp: temp}
	if keep {
		fmt.Println("kept in", temp)
	} else {
		defer func() { err = errors.Join(err, env.remove()) }()
	}

	// All checks use copies: of the tree without its workspace, and of its modules in a proxy.
	fmt.Printf("proxy of %d modules at %s\n", len(tree.modules), tree.version)

	alone, err := tree.checkout(filepath.Join(temp, "tree"))
	if err != nil {
		return err
	}
	if env.proxy, err = tree.writeProxy(filepath.Join(temp, "proxy"), alone); err != nil {
		return err
	}

	for _, m := range tree.modules {
		fmt.Println("module", m.path)
		if tidy {
			err = m.writeTidied(env, alone, tree.root)
		} else {
			err = m.check(env, alone)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
	}
	if tidy {
		return nil
	}

	fmt.Println("go install cmd/plait")
	if err := installCommand(env, tree.version); err != nil {
		return err
	}

	// The newcomers share one PostgreSQL server. The first program that needs one starts it.
	defer func() { err = errors.Join(err, pgtest.Stop()) }()
	for _, n := range newcomers {
		fmt.Println("go get", n.module)
		if err := n.try(env, tree); err != nil {
			return fmt.Errorf("a program that gets %s: %w", n.module, err)
		}
	}
	return firstHour(env, tree)
}

// installCommand installs the command as a user does, and checks that it prints its version.
func installCommand(env environment, version string) error {
	bin := filepath.Join(env.temp, "bin")
	if _, err := env.with("GOBIN="+bin).run(env.temp, "go", "install", root+"/cmd/plait@"+version); err != nil {
		return err
	}

	out, err := env.run(env.temp, filepath.Join(bin, "plait"), "--version")
	if err != nil {
		return err
	}
	fmt.Print("  ", out)

	if !strings.Contains(out, version) {
		return fmt.Errorf("plait --version prints %q, without %s", out, version)
	}
	return nil
}
