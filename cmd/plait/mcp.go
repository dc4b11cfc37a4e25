package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/executor/mcp"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/secret"
)

func mcpCommand(s *streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Log in to MCP servers that require it (OAuth)",
		Long: `Logs in to MCP servers that require it. The tokens are in the user's
configuration folder, in a file for each server that only the user may read.
The commands with --mcp use and renew them.`,
		Example: `  plait mcp login https://mcp.example.com/mcp
  plait mcp list
  plait chat talk.json --model gpt-5 --mcp https://mcp.example.com/mcp
  plait mcp logout https://mcp.example.com/mcp`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(mcpLoginCommand(s), mcpListCommand(s), mcpLogoutCommand(s))
	return cmd
}

// loginFlags are the flags of plait mcp login.
type loginFlags struct {
	client    string
	hosts     []string
	port      int
	noBrowser bool
}

// clientSecret is the environment variable with the secret of --client-id.
const clientSecret = "PLAIT_MCP_CLIENT_SECRET"

func mcpLoginCommand(s *streams) *cobra.Command {
	var f loginFlags
	cmd := &cobra.Command{
		Use:   "login URL",
		Short: "Log in to a server",
		Long: `Opens the server's login page in a browser ($BROWSER, or that of the system) and
waits up to 10 minutes. Without a browser, open the printed address on any
machine; if its last page cannot be reached, paste that page's address here.`,
		Example: `  plait mcp login https://mcp.example.com/mcp
  plait mcp login https://mcp.example.com/mcp --no-browser`,
		Args: takes("one URL", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return s.login(cmd.Context(), args[0], f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.client, "client-id", "",
		"the `ID` of a client registered beforehand; its secret,\nif any, is in $"+clientSecret)
	flags.IntVar(&f.port, "port", 0, "the login page comes back to port `N` of this machine\n(any free one)")
	flags.BoolVar(&f.noBrowser, "no-browser", false, "only print the address")
	flags.StringArrayVar(&f.hosts, "allow-host", nil,
		"the login may also use this `HOST`, if the server's\nmetadata names it; may be given several times")
	return cmd
}

// login logs in to a server.
func (s *streams) login(ctx context.Context, server string, f loginFlags) error {
	const patience = 10 * time.Minute
	if !isAddress(server) {
		return fmt.Errorf("%s is no URL of a server", safetext.Quote(server, 200))
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", f.port))
	if err != nil {
		return fmt.Errorf("port %d, to which the login page comes back, is not free: choose another by --port", f.port)
	}
	defer listener.Close()

	asked := false
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	file := loginOf(server)
	connected, err := mcp.Connect(ctx, mcp.URL(server, &mcp.URLOptions{OAuth: &mcp.OAuth{
		Redirect: "http://127.0.0.1:" + port + "/callback",
		Login: func(ctx context.Context, address string) (url.Values, error) {
			asked = true
			return s.sendPerson(ctx, listener, address, !f.noBrowser)
		},
		Tokens:   file.update,
		ClientID: f.client, ClientSecret: os.Getenv(clientSecret), Hosts: f.hosts,
	}}), &mcp.Options{Timeout: patience})
	if err != nil {
		return err
	}
	defer connected.Close()

	tools := describe.Count(len(connected.Tools()), "tool")
	_, err = os.Stat(file.path)
	switch {
	case asked:
		s.say("logged in: the server has %s", tools)
	case err == nil:
		s.say("you are logged in already: the server has %s", tools)
	default:
		s.say("the server requires no login: it has %s", tools)
	}
	return nil
}

// isAddress reports whether the text of --mcp is a URL, and no command.
func isAddress(spec string) bool {
	return strings.HasPrefix(spec, "http://") || strings.HasPrefix(spec, "https://")
}

// sendPerson sends the user to an address, and returns the parameters with which the page comes back to the listener, or
// those of an address that the user pastes.
func (s *streams) sendPerson(ctx context.Context, listener net.Listener, address string, browser bool) (url.Values, error) {
	login, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	answers := make(chan url.Values, 1)
	answer := func(back url.Values) bool {
		// Any page and any program on this machine may call, and there may be another login.
		if state := login.Query().Get("state"); state == "" || back.Get("state") != state {
			return false
		}
		select {
		case answers <- back:
		default: // the first one counts
		}
		return true
	}

	serving := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: callback(answer)}
	go func() { _ = serving.Serve(listener) }()
	defer func() {
		ending, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = serving.Shutdown(ending) // lets the last page out
	}()

	s.say("log in at %s", address)
	if command := browserCommand(address); browser && command != nil && command.Start() == nil {
		go func() { _ = command.Wait() }()
	} else {
		s.say("and, if its last page cannot be reached, paste that page's address here")
		go s.readAnswer(answer)
	}
	select {
	case back := <-answers:
		return back, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// callback returns the handler of the page after the login.
func callback(answer func(url.Values) bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Referrer-Policy", "no-referrer") // the address has the code
		if !answer(r.URL.Query()) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintln(w, "This is the answer of another login.")
			return
		}
		fmt.Fprintln(w, "You can close this page: plait continues.")
	})
	return mux
}

// readAnswer reads the address of the last page from standard input. The read ends with the program.
func (s *streams) readAnswer(answer func(url.Values) bool) {
	lines := bufio.NewScanner(s.in)
	for lines.Scan() {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		page, err := url.Parse(text)
		if err == nil && answer(page.Query()) {
			return
		}
		s.say("this is not the address of that page")
	}
}

// browserCommand returns the command that opens an address in a browser, or nil if there is no browser.
func browserCommand(address string) *exec.Cmd {
	if own := os.Getenv("BROWSER"); own != "" {
		return exec.Command(own, address)
	}
	switch runtime.GOOS {
	case "darwin":
		return exec.Command("open", address)
	case "windows":
		return exec.Command("rundll32", "url.dll,FileProtocolHandler", address)
	}
	if cmp.Or(os.Getenv("DISPLAY"), os.Getenv("WAYLAND_DISPLAY")) == "" {
		return nil
	}
	return exec.Command("xdg-open", address)
}

func mcpListCommand(s *streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the servers that you are logged in to",
		Long: `Lists the servers that you are logged in to, with the end of each token. A
token that is renewed has no end that matters. Tokens are not printed.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return s.listLogins(asJSON) },
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// listedLogin is a login in the output of mcp list --json.
type listedLogin struct {
	Server  string     `json:"server"`
	Ends    *time.Time `json:"ends"` // nil: unknown
	Renewed bool       `json:"renewed"`
	Scopes  []string   `json:"scopes"`
	// Problem is why the file cannot be used, or "".
	Problem string `json:"problem,omitempty"`
}

// listLogins prints the servers with a file.
func (s *streams) listLogins(asJSON bool) error {
	dir, err := loginFolder()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	all := []listedLogin{} // not nil: JSON has an empty list, not null
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".json" {
			continue
		}
		saved, err := loginFile{path: filepath.Join(dir, entry.Name())}.read()
		listed := listedLogin{Server: secret.URL(saved.Server), Renewed: saved.Token.Refresh != "", Scopes: saved.Token.Scopes}
		if !saved.Token.Ends.IsZero() {
			listed.Ends = &saved.Token.Ends
		}
		if err != nil {
			listed = listedLogin{Problem: err.Error()}
		}
		all = append(all, listed)
	}
	if asJSON {
		return s.printJSON(all)
	}

	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	for _, l := range all {
		end := "no known end"
		switch {
		case l.Problem != "":
			fmt.Fprintln(w, safetext.Escape(l.Problem, 1000))
			continue
		case l.Renewed:
			end = "renewed"
		case l.Ends != nil:
			end = "ends " + l.Ends.Local().Format(time.DateTime)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", safetext.Escape(l.Server, 300), end, safetext.Escape(strings.Join(l.Scopes, " "), 300))
	}
	return w.Flush()
}

func mcpLogoutCommand(s *streams) *cobra.Command {
	return &cobra.Command{
		Use:   "logout URL",
		Short: "Revoke and remove the token of a server",
		Long: `Revokes the token at the server's authorization server, and removes it from this
machine, also one that cannot be revoked or read. If it is not revoked, a
warning says so: end the login there, if somebody else may have the token.`,
		Args: takes("one URL", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return s.logout(cmd.Context(), args[0]) },
	}
}

// logout revokes and removes the token of a server.
func (s *streams) logout(ctx context.Context, server string) error {
	file := loginOf(server)
	revoking := (&mcp.OAuth{Tokens: file.update}).Revoke(ctx, server)
	err := os.Remove(file.path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no login at %s", safetext.Escape(secret.URL(server), 200))
	}
	if err != nil {
		return err
	}

	if revoking != nil {
		s.say("the token is removed, but not revoked: %v", revoking)
		return nil
	}
	s.say("logged out")
	return nil
}
