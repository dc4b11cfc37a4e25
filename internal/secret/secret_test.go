package secret_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/secret"
)

// request is a request with this key as a bearer token.
func request(t *testing.T, key, address string) *secret.Set {
	t.Helper()
	var s secret.Set
	req, err := http.NewRequestWithContext(secret.Collecting(context.Background(), &s), http.MethodPost, address, nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	secret.Collect(req)
	return &s
}

func TestAKeyIsFoundInEveryForm(t *testing.T) {
	const key = `sk-te/st+"1234\äöx99`
	s := request(t, key, "http://localhost")
	quoted, err := json.Marshal(map[string]string{"error": "bad key " + key})
	require.NoError(t, err)
	twice, err := json.Marshal(string(quoted))
	require.NoError(t, err)
	percent := ""
	for _, b := range []byte(key) {
		percent += "%" + string("0123456789abcdef"[b>>4]) + string("0123456789ABCDEF"[b&15])
	}

	for name, text := range map[string]string{
		"plain": "Incorrect API key: " + key + ".", "JSON": string(quoted), "JSON in JSON": string(twice),
		"URL": "?a=" + url.QueryEscape(key), "percent": percent, "path": url.PathEscape(key),
		"lines":       "key: " + key[:7] + "\r\n    " + key[7:11] + "\n" + key[11:] + "\nend",
		"lines, JSON": strings.ReplaceAll(string(quoted), "1234", `12\n34`),
		"base64":      base64.StdEncoding.EncodeToString([]byte(key)),
		"basic":       "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+key)),
		"basic, URL":  base64.URLEncoding.EncodeToString([]byte("user:" + key)),
	} {
		clean := s.Text(text)
		require.Contains(t, clean, secret.Redacted, name)
		require.NotContains(t, clean, "1234", name)
		require.False(t, s.Holds(clean), name)
		require.Less(t, len(clean), len(text)+len(secret.Redacted), name)
	}
	require.Equal(t, "key: REDACTED\nend", s.Text("key: "+key[:7]+"\n  "+key[7:]+"\nend"))
	require.Equal(t, "nothing here", s.Text("nothing here"))
}

func TestAShortKeyErasesNothing(t *testing.T) {
	for _, key := range []string{"", "a", "e", "none", "key"} {
		s := request(t, key, "http://u:p@localhost/?key=a&token=")
		const text = "a key is none of these: invalid x-api-key, see the page"
		require.Equal(t, text, s.Text(text), key)
	}
	var none secret.Set
	none.Add("")
	require.Equal(t, "text", none.Text("text"))
}

func TestAddressesAreShownWithoutTheirSecrets(t *testing.T) {
	for address, want := range map[string]string{
		"http://localhost:8080/v1":                       "http://localhost:8080/v1",
		"https://me:pa55@host/v1":                        "https://REDACTED@host/v1",
		"https://sk-token@host":                          "https://REDACTED@host",
		"https://host/v1?key=AIza&alt=sse":               "https://host/v1?alt=sse&key=REDACTED",
		"https://host/?api-key=1&Access_Token=2&model=m": "https://host/?Access_Token=REDACTED&api-key=REDACTED&model=m",
		"https://host/?max_tokens=5":                     "https://host/?max_tokens=5",
		"me:pa55@host:80/v1":                             "REDACTED@host:80/v1",
		"http://me:pa55@[bad/?key=AIza":                  "http://REDACTED@[bad/?key=REDACTED",
		"":                                               "",
	} {
		require.Equal(t, want, secret.URL(address), address)
		require.Equal(t, want, secret.URL(want))
	}
	require.Equal(t, `Post "http://REDACTED@host/v1?key=REDACTED&alt=sse": EOF; mail me@host`,
		secret.InText(`Post "http://me:pa:55@host/v1?key=AIza&alt=sse": EOF; mail me@host`))
	require.Equal(t, "me@host, ?key=1", secret.InText("me@host, ?key=1"), "no address")
}

func TestAnErrorKeepsItsChainWithoutTheSecret(t *testing.T) {
	s := request(t, "sk-12345678", "http://localhost")
	err := s.Err(&url.Error{Op: "Post", URL: "http://localhost/?x=sk-12345678", Err: io.ErrUnexpectedEOF})
	require.EqualError(t, err, `Post "http://localhost/?x=REDACTED": unexpected EOF`)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)

	plain := errors.New("no secret")
	require.Same(t, plain, s.Err(plain))
	require.NoError(t, s.Err(nil))
}

func FuzzText(f *testing.F) {
	f.Add("key sk-1234567 \\u0073k-1234567 %73k-123\n4567", "sk-1234567")
	f.Fuzz(func(t *testing.T, text, key string) {
		var s secret.Set
		s.Add(key)
		clean := s.Text(text)
		if !s.Holds(text) {
			require.Equal(t, text, clean)
		}
	})
}
