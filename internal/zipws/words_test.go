package zipws

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Messages name tools, commands, parameters and options by Words alone.
func TestMessagesHaveNoWordsOfTheirOwn(t *testing.T) {
	of := regexp.MustCompile(`zipfs_|--[a-z]|\bdiscard\b|create_dirs|write\.unarchive|\bwith (sync|force|recursive|lazy|session|all)\b|\boffset\b|\bstale\b|\blazy\b`)
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	messages := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if name, ok := call.Fun.(*ast.SelectorExpr); !ok || name.Sel.Name != "New" && name.Sel.Name != "Hide" {
				return true
			}
			for _, arg := range call.Args {
				if text, ok := arg.(*ast.BasicLit); ok && text.Kind == token.STRING {
					messages++
					if found := of.FindString(text.Value); found != "" {
						t.Errorf("%s has %q in %s", f.Name(), found, text.Value)
					}
				}
			}
			return true
		})
	}
	if messages < 50 {
		t.Errorf("%d messages were looked at", messages)
	}
}
