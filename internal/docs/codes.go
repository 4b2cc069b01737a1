package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// Codes renders a Markdown table of the error codes that a Go source file
// declares as constants of type Code. The comment on a constant is its meaning.
func Codes(file string) (string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("| Code | Meaning |\n| --- | --- |\n")
	for _, d := range parsed.Decls {
		constants, ok := d.(*ast.GenDecl)
		if !ok || constants.Tok != token.CONST {
			continue
		}
		for _, s := range constants.Specs {
			spec := s.(*ast.ValueSpec)
			if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Code" {
				continue
			}
			code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				return "", err
			}
			text := spec.Comment.Text()
			if text == "" {
				text = strings.TrimPrefix(spec.Doc.Text(), spec.Names[0].Name+" is ")
			}
			if text = strings.TrimSuffix(cell(text), "."); text == "" {
				return "", fmt.Errorf("%s: %s has no comment", file, spec.Names[0].Name)
			}
			fmt.Fprintf(&b, "| `%s` | %s |\n", code, sentence(text))
		}
	}
	return b.String(), nil
}
