package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/wire"
)

func TestAddressWithoutASchemeIsRefusedWithWhatToWrite(t *testing.T) {
	for address, want := range map[string]string{
		"http://localhost:8080":          "",
		"https://api.example.com/v1":     "",
		"HTTP://127.0.0.1:1/v1":          "",
		"http://[::1]:8080":              "",
		"http://user:pass@localhost/v1":  "",
		"localhost:8080":                 "write http://localhost:8080",
		"127.0.0.1:8080/v1":              "write http://127.0.0.1:8080/v1",
		"api.example.com/v1":             "write https://api.example.com/v1",
		"//localhost:8080":               "write http://localhost:8080",
		"ftp://localhost:8080":           "write http:// or https:// in place of ftp://",
		"http://":                        "it names no host: write it like http://localhost:8080",
		"http:///v1":                     "it names no host: write it like http://localhost:8080",
		"http:localhost:8080":            "it names no host: write it like http://localhost:8080",
		"http://:8080":                   "it names no host: write it like http://localhost:8080",
		"":                               "it is no URL: write it like http://localhost:8080",
		"http://local host":              "it contains a space or a control character",
		" http://localhost":              "it contains a space or a control character",
		"http://localhost/\x1b[2J":       "it contains a space or a control character",
		"http://localhost:port":          "it is no URL: write it like http://localhost:8080",
		"http://[::1":                    "it is no URL: write it like http://localhost:8080",
		"user:hunter22@localhost:8080":   "write http://REDACTED@localhost:8080",
		"ftp://user:hunter22@host?key=k": "write http:// or https:// in place of ftp://",
	} {
		err := wire.CheckAddress(address)
		if want == "" {
			require.NoError(t, err, address)
			continue
		}
		require.ErrorIs(t, err, wire.ErrAddress, address)
		require.ErrorContains(t, err, want, address)
		require.NotContains(t, err.Error(), "hunter22")
		require.NotContains(t, err.Error(), "\x1b")
	}
}
