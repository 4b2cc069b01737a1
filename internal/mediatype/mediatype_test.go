package mediatype_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/mediatype"
)

func TestDetect(t *testing.T) {
	list, err := json.Marshal(strings.Split(strings.Repeat("element ", 2000), " "))
	if err != nil {
		t.Fatal(err)
	}
	long := string(list[:mediatype.HeadSize])
	for _, c := range []struct {
		what, head, name, want string
		text                   bool
	}{
		{"empty", "", "a.bin", "text/plain", true},
		{"empty, told by nothing else", "", "a.go", "text/plain", true},
		{"plain", "just words\n", "a.txt", "text/plain", true},
		{"plain without a name", "just words\n", "", "text/plain", true},
		{"unknown extension", "just words\n", "a.unknown", "text/plain", true},
		{"Markdown", "# Title\n\nwords\n", "dir.py/README.md", "text/markdown", true},
		{"extension in capitals", "# Title\n", "README.MD", "text/markdown", true},
		{"Go", "package a\n", "a.go", "text/x-go", true},
		{"Python without shebang", "import os\n", "a.py", "text/x-python", true},
		{"shebang without extension", "#!/usr/bin/env python3\nimport os\n", "tool", "text/x-python", true},
		{"shell", "#!/bin/sh\necho\n", "tool", "text/x-shellscript", true},
		{"YAML", "a: 1\nb: 2\n", "a.yaml", "application/yaml", true},
		{"TOML", "[a]\nb = 2\n", "a.toml", "application/toml", true},
		{"Makefile", "all:\n\tgo build\n", "Makefile", "text/x-makefile", true},
		{"Dockerfile", "FROM scratch\n", "Dockerfile", "text/x-dockerfile", true},
		{"TypeScript, no video", "export const a = 1\n", "a.ts", "text/x-typescript", true},
		{"JSON", `{"a": [1, 2]}`, "a.txt", "application/json", true},
		{"JSON longer than the head", long, "a", "application/json", true},
		{"JSON with comments", "// note\n{\"a\": 1}\n", "a.json", "application/json", true},
		{"XML", `<?xml version="1.0"?><a/>`, "a", "text/xml", true},
		{"HTML", "<!DOCTYPE html><html><body>x</body></html>", "a", "text/html", true},
		{"SVG", `<svg xmlns="http://www.w3.org/2000/svg"></svg>`, "a.svg", "image/svg+xml", true},
		{"Latin-1", "caf\xe9 au lait\n", "a.txt", "text/plain", true},
		{"UTF-8 with BOM", "\xef\xbb\xbfwords\n", "a.go", "text/x-go", true},
		{"UTF-16LE with BOM", "\xff\xfew\x00o\x00r\x00d\x00", "a.txt", "text/plain", true},
		{"UTF-16BE with BOM", "\xfe\xff\x00w\x00o\x00r\x00d", "a.txt", "text/plain", true},
		{"content beats extension", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "a.txt", "image/png", false},
		{"PDF", "%PDF-1.7\n", "a.pdf", "application/pdf", false},
		{"ZIP", "PK\x03\x04\x14\x00\x00\x00\x08\x00", "a.zip", "application/zip", false},
		{"gzip", "\x1f\x8b\x08\x00", "a.tar.gz", "application/gzip", false},
		{"NUL in a text", "wo\x00rds\n", "a.txt", "application/octet-stream", false},
	} {
		got := mediatype.Detect([]byte(c.head), c.name)
		if got != c.want {
			t.Errorf("%s: Detect = %s, want %s", c.what, got, c.want)
		}
		if mediatype.IsText(got) != c.text {
			t.Errorf("%s: IsText(%s) = %t, want %t", c.what, got, !c.text, c.text)
		}
	}
}

func TestIsText(t *testing.T) {
	for mime, want := range map[string]bool{
		"text/plain; charset=utf-8":                 true,
		"TEXT/anything":                             true,
		"Application/JSON":                          true,
		"application/javascript":                    true,
		"application/xml":                           true,
		"application/x-sh":                          true,
		"Application/YAML":                          true,
		"application/toml":                          true,
		"application/x-ndjson":                      true,
		"application/ld+json":                       true,
		"application/problem+xml":                   true,
		"application/vnd.oai.openapi+yaml":          true,
		"image/svg+xml":                             true,
		"":                                          false,
		"image/png":                                 false,
		"audio/mpeg":                                false,
		"application/pdf":                           false,
		"application/zip":                           false,
		"application/octet-stream":                  false,
		"application/vnd.unheard-of":                false,
		"application/vnd.ms-visio.drawing.main+xml": false, // a ZIP file, whatever the name says
		"application/vnd.openxmlformats-officedocument.wordprocessingml.document": false,
	} {
		if got := mediatype.IsText(mime); got != want {
			t.Errorf("IsText(%q) = %t, want %t", mime, got, want)
		}
	}
}

// Every label that a name can give must count as text, or a text file would be
// answered in base64.
func TestNamesOfTextGiveTextLabels(t *testing.T) {
	for ext := range strings.FieldsSeq(`md markdown html htm xml xsd xsl xslt css scss less csv tsv json jsonc json5 ndjson
		jsonl yaml yml toml js mjs cjs jsx ts tsx mts cts go py pyi rb pl pm php lua r sh bash zsh ps1 c h cc cpp cxx hh hpp
		hxx cs java kt kts scala swift rs dart ex exs hs sql graphql gql proto tex rst diff patch`) {
		label := mediatype.Detect([]byte("words"), "a."+ext)
		if label == "text/plain" || !mediatype.IsText(label) {
			t.Errorf(".%s gives %s, which is not refined text", ext, label)
		}
	}
}

func BenchmarkDetect(b *testing.B) {
	octets := make([]byte, mediatype.HeadSize)
	for i := range octets {
		octets[i] = byte(i*i>>3) | 1
	}
	octets[1] = 0
	for _, c := range []struct{ kind, head, rest string }{
		{"text", "", "some words of a plain text\n"},
		{"HTML", "<!DOCTYPE html>\n", "<p>some words of a text</p>\n"},
		{"JSON", "[", "{\"name\": \"some name\", \"value\": 12.5, \"ok\": true},\n"},
		{"CSV", "", "2024-01-01,name,12.5,\"a, b\",x\n"},
		{"PNG", "\x89PNG\r\n\x1a\n\x00\x00\x00\x00IHDR0000\x00\x00\x10\x00IDAT", string(octets)},
		{"octets", "\x01", string(octets)},
	} {
		head := []byte((c.head + strings.Repeat(c.rest, mediatype.HeadSize/len(c.rest)+1))[:mediatype.HeadSize])
		b.Run(c.kind, func(b *testing.B) {
			for b.Loop() {
				mediatype.IsText(mediatype.Detect(head, "a.go"))
			}
		})
	}
}
