package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"

	"github.com/plait-dev/plait/executor/mcp"
	"github.com/plait-dev/plait/internal/filelock"
	"github.com/plait-dev/plait/internal/safetext"
)

// loginFile is the file with the token of one MCP server. Only the user may read it.
type loginFile struct{ server, path string }

// savedLogin is the content of a loginFile.
type savedLogin struct {
	Server string    `json:"server"`
	Token  mcp.Token `json:"token"`
}

// loginFolder returns the folder with the tokens of all servers, in the user's configuration folder.
func loginFolder() (string, error) {
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "plait", "mcp"), err
}

// loginOf returns the file for a server. Without a configuration folder, there is none to read.
func loginOf(server string) loginFile {
	dir, err := loginFolder()
	if err != nil {
		return loginFile{server: server}
	}
	return loginFile{server, filepath.Join(dir, fmt.Sprintf("%.16x.json", sha256.Sum256([]byte(server))))}
}

// update has the contract of mcp.OAuth.Tokens. Other programs wait meanwhile: a token is renewed once.
func (f loginFile) update(ctx context.Context, change func(mcp.Token) (mcp.Token, error)) error {
	// A server without logins leaves no file behind.
	_, err := os.Stat(f.path)
	if missing := f.path == "" || errors.Is(err, fs.ErrNotExist); !missing {
		unlock, err := f.lock(ctx)
		if err != nil {
			return err
		}
		defer unlock()
	}

	saved, err := f.read()
	if err != nil {
		return err
	}
	changed, err := change(saved.Token)
	if err != nil || reflect.DeepEqual(changed, saved.Token) {
		return err
	}
	return f.write(changed)
}

// lock waits for the file. The lock is a file of its own, because the other one is replaced.
func (f loginFile) lock(ctx context.Context) (unlock func(), err error) {
	lock, err := os.OpenFile(strings.TrimSuffix(f.path, ".json")+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := filelock.Wait(ctx, lock); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, errors.Join(err, lock.Close())
	}
	return func() { _ = lock.Close() }, nil
}

// read reads the file. If there is none, the token is zero. No error quotes it.
func (f loginFile) read() (savedLogin, error) {
	const longest = 1 << 20
	saved := savedLogin{Server: f.server}
	opened, err := os.Open(f.path)
	if f.path == "" || errors.Is(err, fs.ErrNotExist) {
		return saved, nil
	}
	if err != nil {
		return saved, f.unusable(err.Error())
	}
	defer opened.Close()

	about, err := opened.Stat()
	if err != nil {
		return saved, err
	}
	if mode := about.Mode(); !mode.IsRegular() || mode.Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		return saved, f.unusable(fmt.Sprintf("others may read or change it: its mode is %v", mode))
	}
	text, err := io.ReadAll(io.LimitReader(opened, longest))
	if err != nil {
		return saved, f.unusable(err.Error())
	}
	if json.Unmarshal(text, &saved) != nil || saved.Token.Access == "" {
		return saved, f.unusable("it is damaged")
	}
	if f.server != "" && saved.Server != f.server {
		return saved, f.unusable("it is of another server")
	}
	return saved, nil
}

// unusable returns the error for a file that cannot be used.
func (f loginFile) unusable(reason string) error {
	return fmt.Errorf("the file of a login, %s: %s; 'plait mcp logout' removes it", safetext.Escape(f.path, 300), reason)
}

// write replaces the file in one step.
func (f loginFile) write(token mcp.Token) (err error) {
	dir, err := loginFolder()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(savedLogin{f.server, token})
	if err != nil {
		return err
	}

	fresh, err := os.CreateTemp(dir, ".login-*") // for its owner only
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(fresh.Name())
		}
	}()
	_, err = fresh.Write(text)
	if err = errors.Join(err, fresh.Sync(), fresh.Close()); err != nil {
		return err
	}
	return os.Rename(fresh.Name(), f.path)
}
