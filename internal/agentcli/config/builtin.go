package config

// builtIn returns the agents known without a configuration. They may edit files
// in the directory of the task and are asked for nothing beyond: no flag here
// switches an agent's own sandbox or approvals off. The prompt goes through the
// standard input, where neither the length of arguments nor other users' ps
// matters.
func builtIn() map[string]Provider {
	m := map[string]Provider{
		"codex": {
			Binary:       "codex",
			Args:         []string{"exec", "--json", "--skip-git-repo-check", "--sandbox", "workspace-write", "-"},
			OutputFormat: "codex-jsonl",
			EnvAllow:     []string{"CODEX_HOME", "CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"},
			HealthCheck:  HealthCheck{AuthArgs: []string{"login", "status"}},
		},
		"claude": {
			Binary:       "claude",
			Args:         []string{"-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits"},
			OutputFormat: "claude-stream",
			EnvAllow: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR",
				"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER"},
			HealthCheck: HealthCheck{AuthArgs: []string{"auth", "status"}, AuthOutputMode: AuthJSON},
		},
		"gemini": {
			Binary:       "gemini",
			Args:         []string{"--output-format", "stream-json", "--approval-mode", "auto_edit"},
			OutputFormat: "gemini-stream",
			EnvAllow: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT",
				"GOOGLE_CLOUD_LOCATION", "GOOGLE_GENAI_USE_VERTEXAI", "GEMINI_CLI_TRUST_WORKSPACE"},
		},
		"opencode": {
			Binary:       "opencode",
			Args:         []string{"run", "--format", "json"},
			OutputFormat: "opencode-jsonl",
			EnvAllow:     []string{"OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"},
		},
	}
	for id, p := range m {
		p.Type, p.InputMode = JSONCLI, Stdin
		m[id] = p.complete()
	}
	return m
}

// Usual are the variables that every agent sees where the server has them: what
// programs need to find their files, their user and the network. Anything else
// is kept from agents unless runner.envAllow or the provider names it.
var Usual = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "TMPDIR",
	"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
	"SystemRoot", "SystemDrive", "ComSpec", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "USERNAME", "APPDATA", "LOCALAPPDATA",
	"ProgramData", "ProgramFiles", "ProgramFiles(x86)", "HOMEDRIVE", "HOMEPATH", "WINDIR",
}
