// Package oauth tests logins of MCP servers (mcp.OAuth, and "plait mcp login") against the authorization server of
// github.com/zitadel/oidc.
package oauth
