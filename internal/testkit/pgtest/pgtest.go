// Package pgtest gives tests a PostgreSQL server of their own: a throw-away cluster, reachable only for users of this
// machine, through a socket in a temporary folder.
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }
//
//	func TestSomething(t *testing.T) {
//		url := pgtest.Database(t)
//	}
//
// The server's programs must be installed, on the PATH or at the location of Debian's packages. Otherwise tests skip
// with this reason; with PLAIT_POSTGRES=1 they fail.
package pgtest

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// errNoServer is the reason for tests to skip.
var errNoServer = errors.New("no PostgreSQL server is installed: initdb is neither on the PATH nor in /usr/lib/postgresql")

// Cluster is a running server.
type Cluster struct {
	// Socket is the folder with the server's socket.
	Socket string

	bin    string // the folder with the server's programs
	noSync bool   // a crash of the machine would destroy it

	mu         sync.Mutex // guards used and made
	used, made int        // how many schemas are used, and how many there are
}

// shared is the cluster of Database.
var shared struct {
	sync.Mutex
	cluster *Cluster
	err     error
}

// Missing reports whether tests must skip because no server is installed. With PLAIT_POSTGRES it is false, and they
// fail.
func Missing() bool {
	_, err := programs()
	return err != nil && os.Getenv("PLAIT_POSTGRES") == ""
}

// Database returns the URL of a new, empty schema in a cluster shared by all tests of the program. To be quick, its
// server does not sync: use [Start] to measure, and to crash it.
func Database(t testing.TB) string {
	t.Helper()
	if Missing() {
		t.Skipf("SKIPPED: %v", errNoServer)
	}
	address, err := URL()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// URL is [Database] for examples.
func URL() (string, error) {
	// A failed start is not repeated for each test.
	shared.Lock()
	if shared.cluster == nil && shared.err == nil {
		shared.cluster, shared.err = start(true)
	}
	cluster, err := shared.cluster, shared.err
	shared.Unlock()

	if err != nil {
		return "", err
	}
	return cluster.Database()
}

// Run runs the tests and stops the shared cluster. It returns the exit code.
func Run(m *testing.M) int {
	code := m.Run()
	if err := Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

// Stop stops and removes the shared cluster.
func Stop() error {
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster == nil {
		return nil
	}
	err := shared.cluster.Remove()
	shared.cluster = nil
	return err
}

// Start makes a cluster and starts its server. It belongs to an unprivileged user if the program runs as root, because
// the server refuses to run as root.
func Start() (*Cluster, error) { return start(false) }

func start(noSync bool) (*Cluster, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "plait-pg-") // t.TempDir may be longer than the path of a socket can be
	if err != nil {
		return nil, err
	}

	// The server's user, perhaps another one than the tests', writes into the folder.
	c := &Cluster{Socket: dir, bin: bin, noSync: noSync}
	if err := errors.Join(os.Chmod(dir, 0o755), give(dir)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}

	err = c.run("initdb", "--pgdata", c.data(), "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	if err == nil {
		err = c.Restart()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return c, nil
}

// programs returns the folder with the programs of the newest server.
func programs() (string, error) {
	if found, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(found); err == nil {
			return filepath.Dir(real), nil
		}
	}

	// Debian keeps the programs of each version off the PATH.
	installed, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is good
	newest, version := "", 0
	for _, path := range installed {
		n := 0 // the version is a number: 9 is older than 16
		_, err := fmt.Sscan(filepath.Base(filepath.Dir(filepath.Dir(path))), &n)
		if err == nil && n > version {
			newest, version = filepath.Dir(path), n
		}
	}
	if newest == "" {
		return "", errNoServer
	}
	return newest, nil
}

func (c *Cluster) data() string { return filepath.Join(c.Socket, "data") }

// run runs a program of the server as the owner of the cluster.
func (c *Cluster) run(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.Socket
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PGHOST="+c.Socket, "PGUSER=postgres")

	// A file, not a pipe: the server started by pg_ctl would keep a pipe open.
	log, err := os.CreateTemp(c.Socket, name+"-*.log")
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log

	asOwner(cmd)
	if err := cmd.Run(); err != nil {
		output, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%s: %w\n%s", name, err, output)
	}
	return nil
}

// patience is the number of seconds for pg_ctl to wait. On a busy machine the server takes long.
const patience = "300"

// Restart starts the server after [Cluster.Stop].
func (c *Cluster) Restart() error {
	// A test may lose connections without closing them; 300 are enough for all.
	settings := []string{"-c listen_addresses=''", "-c max_connections=300", "-k '" + c.Socket + "'"}
	if c.noSync {
		settings = append(settings, "-c fsync=off")
	}
	return c.run("pg_ctl", "--pgdata", c.data(), "--log", filepath.Join(c.Socket, "server.log"), "--wait", "--timeout", patience,
		"--options", strings.Join(settings, " "), "start")
}

// Stop stops the server. With crash it stops as if the machine had: without a checkpoint, and without telling anybody.
func (c *Cluster) Stop(crash bool) error {
	mode := "fast"
	if crash {
		mode = "immediate"
	}
	return c.run("pg_ctl", "--pgdata", c.data(), "--wait", "--timeout", patience, "--mode", mode, "stop")
}

// Remove stops the server and removes the cluster.
func (c *Cluster) Remove() error { return errors.Join(c.Stop(true), os.RemoveAll(c.Socket)) }

// Database returns the URL of a new, empty schema, the first of the search path. Making one takes less time than making
// a database.
func (c *Cluster) Database() (string, error) {
	name, err := c.schema()
	if err != nil {
		return "", err
	}
	query := url.Values{"host": {c.Socket}, "user": {"postgres"}, "options": {"-c search_path=" + name}}
	return (&url.URL{Scheme: "postgres", Path: "/postgres", RawQuery: strings.ReplaceAll(query.Encode(), "+", "%20")}).String(), nil
}

// schema returns the name of a schema that nobody has used. Most of the time for one is that of starting psql, so it
// makes many.
func (c *Cluster) schema() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used == c.made {
		const many = 50
		var statements strings.Builder
		for n := range many {
			fmt.Fprintf(&statements, "CREATE SCHEMA test%d; ", c.made+n)
		}
		if err := c.run("psql", "--no-psqlrc", "--command", statements.String()); err != nil {
			return "", err
		}
		c.made += many
	}
	c.used++
	return fmt.Sprint("test", c.used-1), nil
}
