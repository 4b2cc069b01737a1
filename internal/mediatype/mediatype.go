// Package mediatype tells MIME types by content.
package mediatype

import (
	"path/filepath"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

// HeadSize is how many bytes of a file's start Detect wants. A shorter head is
// taken for the whole file.
const HeadSize = 4096

const plain = "text/plain"

// Detect returns the MIME type of a file by its first bytes, without
// parameters; name only refines the label where they say no more than
// text/plain. An empty file is text/plain.
func Detect(head []byte, name string) string {
	if len(head) == 0 {
		return plain
	}
	head = head[:min(len(head), HeadSize)]
	label := quick(head)
	if label == "" {
		label = bare(mimetype.Detect(head).String())
	}
	if label == plain {
		return labelOf(name)
	}
	return label
}

// IsText reports whether content of type mime, parameters ignored, is text for
// reading: the types that descend from text/plain, and the common formats of
// data and programs that are written in text.
func IsText(mime string) bool {
	mime = strings.ToLower(bare(mime))
	if strings.HasPrefix(mime, "text/") {
		return true
	}
	// The common ones are not looked up, which takes microseconds.
	switch mime {
	case "application/json", "application/x-ndjson", "image/svg+xml",
		"application/yaml", "application/x-yaml", "application/toml", "application/sql", "application/graphql",
		"application/ecmascript", "application/typescript", "application/x-httpd-php", "application/jsonc",
		"application/json5", "application/jsonl", "application/x-tex", "application/x-www-form-urlencoded":
		return true
	case octets, "image/png", "image/jpeg", "image/gif", "application/gzip", "application/tzif", "application/x-elf",
		"application/x-object", "application/x-executable", "application/x-sharedlib", "application/x-coredump",
		"application/x-bytecode.python", "application/zip", "application/pdf":
		return false
	}
	if m := mimetype.Lookup(mime); m != nil {
		for ; m != nil; m = m.Parent() {
			if bare(m.String()) == plain {
				return true
			}
		}
		return false
	}
	return strings.HasSuffix(mime, "+json") || strings.HasSuffix(mime, "+xml") || strings.HasSuffix(mime, "+yaml")
}

func bare(mime string) string {
	mime, _, _ = strings.Cut(mime, ";")
	return strings.TrimSpace(mime)
}

// labelOf names the kind of a plain text by its file name. It is a switch and
// not a map, which would be filled at every start of the program.
func labelOf(name string) string {
	switch base := strings.ToLower(filepath.Base(name)); base {
	case "dockerfile", "containerfile":
		return "text/x-dockerfile"
	case "makefile", "gnumakefile":
		return "text/x-makefile"
	}
	switch strings.ToLower(filepath.Ext(name)) {
	case ".md", ".markdown":
		return "text/markdown"
	case ".html", ".htm":
		return "text/html"
	case ".xml", ".xsd", ".xsl", ".xslt":
		return "text/xml"
	case ".css":
		return "text/css"
	case ".scss":
		return "text/x-scss"
	case ".less":
		return "text/x-less"
	case ".csv":
		return "text/csv"
	case ".tsv":
		return "text/tab-separated-values"
	case ".json", ".jsonc", ".json5":
		return "application/json"
	case ".ndjson", ".jsonl":
		return "application/x-ndjson"
	case ".yaml", ".yml":
		return "application/yaml"
	case ".toml":
		return "application/toml"
	case ".js", ".mjs", ".cjs", ".jsx":
		return "text/javascript"
	case ".ts", ".tsx", ".mts", ".cts":
		return "text/x-typescript"
	case ".go":
		return "text/x-go"
	case ".py", ".pyi":
		return "text/x-python"
	case ".rb":
		return "text/x-ruby"
	case ".pl", ".pm":
		return "text/x-perl"
	case ".php":
		return "text/x-php"
	case ".lua":
		return "text/x-lua"
	case ".r":
		return "text/x-r"
	case ".sh", ".bash", ".zsh":
		return "text/x-shellscript"
	case ".ps1":
		return "text/x-powershell"
	case ".c", ".h":
		return "text/x-c"
	case ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx":
		return "text/x-c++"
	case ".cs":
		return "text/x-csharp"
	case ".java":
		return "text/x-java"
	case ".kt", ".kts":
		return "text/x-kotlin"
	case ".scala":
		return "text/x-scala"
	case ".swift":
		return "text/x-swift"
	case ".rs":
		return "text/x-rust"
	case ".dart":
		return "text/x-dart"
	case ".ex", ".exs":
		return "text/x-elixir"
	case ".hs":
		return "text/x-haskell"
	case ".sql":
		return "application/sql"
	case ".graphql", ".gql":
		return "application/graphql"
	case ".proto":
		return "text/x-protobuf"
	case ".tex":
		return "text/x-tex"
	case ".rst":
		return "text/x-rst"
	case ".diff", ".patch":
		return "text/x-diff"
	}
	return plain
}
