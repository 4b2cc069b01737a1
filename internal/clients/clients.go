// Package clients writes the configuration with which MCP clients start the
// server, for each client in its own format.
package clients

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Name is what the server is called in clients.
const Name = "conduit"

// A Server is how a client starts the server.
type Server struct {
	Command string
	Env     map[string]string // settings; those of the client's own environment are not needed
}

// A Client is a program that starts servers.
type Client struct {
	ID    string   // as doctor --client takes it
	Title string   // as people know it
	Files []string // where its configuration is, a place an entry
	TOML  bool     // rather than JSON

	entry func(s Server) any // nil for TOML
}

// All are the clients that are known, sorted by title.
var All = []Client{
	{ID: "claude-code", Title: "Claude Code", Files: []string{"`.mcp.json` in a project", "`~/.claude.json` for all of them (`claude mcp add` writes it)"}, entry: in("mcpServers", "type", "stdio")},
	{ID: Default, Title: "Claude Desktop", Files: []string{"macOS: `~/Library/Application Support/Claude/claude_desktop_config.json`", "Windows: `%APPDATA%\\Claude\\claude_desktop_config.json`", "Linux: `~/.config/Claude/claude_desktop_config.json`"}, entry: in("mcpServers")},
	{ID: "cline", Title: "Cline", Files: []string{"`cline_mcp_settings.json`, which MCP Servers > Configure opens"}, entry: in("mcpServers", "args", []string{}, "disabled", false)},
	{ID: "codex", Title: "Codex", Files: []string{"`~/.codex/config.toml` (Windows: `%USERPROFILE%\\.codex\\config.toml`)", "`.codex/config.toml` in a project that is trusted"}, TOML: true},
	{ID: "copilot-cli", Title: "Copilot CLI", Files: []string{"`~/.copilot/mcp-config.json` (Windows: `%USERPROFILE%\\.copilot\\mcp-config.json`)"}, entry: in("mcpServers", "type", "local", "args", []string{}, "tools", []string{"*"})},
	{ID: "cursor", Title: "Cursor", Files: []string{"`~/.cursor/mcp.json` (Windows: `%USERPROFILE%\\.cursor\\mcp.json`)", "`.cursor/mcp.json` in a project"}, entry: in("mcpServers")},
	{ID: "gemini", Title: "Gemini CLI", Files: []string{"`~/.gemini/settings.json` (Windows: `%USERPROFILE%\\.gemini\\settings.json`)", "`.gemini/settings.json` in a project"}, entry: in("mcpServers")},
	{ID: "jetbrains", Title: "JetBrains AI Assistant", Files: []string{"Settings > Tools > AI Assistant > Model Context Protocol (MCP) > Add > As JSON"}, entry: in("mcpServers", "args", []string{})},
	{ID: "lm-studio", Title: "LM Studio", Files: []string{"`~/.lmstudio/mcp.json` (Windows: `%USERPROFILE%\\.lmstudio\\mcp.json`), which Program > Install > Edit mcp.json opens"}, entry: in("mcpServers")},
	{ID: "opencode", Title: "opencode", Files: []string{"`~/.config/opencode/opencode.json`", "`opencode.json` in a project"}, entry: func(s Server) any {
		return map[string]any{"mcp": map[string]any{Name: map[string]any{
			"type": "local", "command": []string{s.Command}, "enabled": true, "environment": s.Env}}}
	}},
	{ID: "vscode", Title: "VS Code", Files: []string{"`.vscode/mcp.json` in a project", "the user's `mcp.json`, which the command MCP: Open User Configuration opens"}, entry: in("servers", "type", "stdio")},
	{ID: "windsurf", Title: "Windsurf", Files: []string{"`~/.codeium/windsurf/mcp_config.json` (Windows: `%USERPROFILE%\\.codeium\\windsurf\\mcp_config.json`)"}, entry: in("mcpServers")},
	{ID: "zed", Title: "Zed", Files: []string{"`~/.config/zed/settings.json` (Windows: `%APPDATA%\\Zed\\settings.json`)"}, entry: in("context_servers", "args", []string{})},
}

// Default is the client whose format most others take too.
const Default = "claude-desktop"

// Find returns the client with an ID.
func Find(id string) (Client, bool) {
	i := slices.IndexFunc(All, func(c Client) bool { return c.ID == id })
	if i < 0 {
		return Client{}, false
	}
	return All[i], true
}

// IDs are those of [All].
func IDs() []string {
	var list []string
	for _, c := range All {
		list = append(list, c.ID)
	}
	return list
}

// Where tells the places of the client's configuration for a terminal.
func (c Client) Where() string {
	return strings.ReplaceAll(strings.Join(c.Files, "; "), "`", "")
}

// in makes the entry that most clients have, below key, with further members
// given as names and values.
func in(key string, more ...any) func(s Server) any {
	return func(s Server) any {
		entry := map[string]any{"command": s.Command, "env": s.Env}
		for i := 0; i < len(more); i += 2 {
			entry[more[i].(string)] = more[i+1]
		}
		return map[string]any{key: map[string]any{Name: entry}}
	}
}

// Snippet is what goes into the client's configuration to have it start s: JSON
// or TOML without a line break at the end.
func (c Client) Snippet(s Server) string {
	if s.Env == nil {
		s.Env = map[string]string{}
	}
	if !c.TOML {
		return quote(c.entry(s), "  ")
	}
	var b strings.Builder
	b.WriteString("[mcp_servers." + Name + "]\ncommand = " + quote(s.Command, "") + "\n\n[mcp_servers." + Name + ".env]")
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		b.WriteString("\n" + name + " = " + quote(s.Env[name], ""))
	}
	return b.String()
}

// quote is v as JSON. A string of JSON is one of TOML as well but for DEL.
func quote(v any, indent string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		panic(err) // of strings and maps alone
	}
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007f`)
}
