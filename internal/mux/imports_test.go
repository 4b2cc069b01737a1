package mux_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/conduit-mcp/conduit-mcp/"

// listed is what the go command tells of a package.
type listed struct {
	ImportPath string
	Imports    []string
	GoFiles    []string
}

// packages returns every package of the module by its path below the module,
// with the imports within the module, likewise.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,GoFiles", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	found := map[string][]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p listed
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if len(p.GoFiles) == 0 { // tests alone
			continue
		}
		name := strings.TrimPrefix(p.ImportPath, module)
		found[name] = nil
		for _, i := range p.Imports {
			if own, ok := strings.CutPrefix(i, module); ok {
				found[name] = append(found[name], own)
			} else if strings.HasPrefix(i, "github.com/modelcontextprotocol/") {
				found[name] = append(found[name], "mcp")
			} else if i == "golang.org/x/sync/errgroup" {
				found[name] = append(found[name], "errgroup")
			}
		}
	}
	return found
}

func TestImportsRunOneWay(t *testing.T) {
	found := packages(t)
	if len(found) < 20 {
		t.Fatalf("%d packages", len(found))
	}
	// These stand above the registry; every other internal package is an engine.
	above := []string{"internal/app", "internal/mux", "internal/docs", "internal/demo", "internal/httpd"}
	for name, imports := range found {
		for _, i := range imports {
			ok := true
			switch {
			case i == "errgroup": // its goroutines end the server where they panic
				ok = name == "internal/parallel"
			case name == "registry/fault":
				ok = false
			case name == "registry/place":
				ok = i == "registry/fault"
			case name == "registry":
				ok = i == "registry/fault" || i == "registry/place" || i == "internal/userdir"
			case name == "registry/optest", name == "internal/demo", name == "internal/man", strings.HasPrefix(name, "cmd"):
			case name == "middleware":
				ok = strings.HasPrefix(i, "registry")
			case strings.HasPrefix(name, "internal/stdio"):
				ok = strings.HasPrefix(i, "internal/") && !slices.Contains(above, i) || i == "registry/fault" || i == "mcp"
			case slices.Contains(above, name):
				ok = !strings.HasPrefix(i, "cmd") && !strings.HasPrefix(i, "ops/") && i != "registry/optest"
			case strings.HasPrefix(name, "internal/"):
				ok = i == "registry/fault" || i == "registry/place" || strings.HasPrefix(i, "internal/") && !slices.Contains(above, i) && i != "internal/stdio"
			case name == "ops/all":
				ok = strings.HasPrefix(i, "ops/")
			case strings.HasPrefix(name, "ops/"):
				ok = i == "registry" || i == "registry/fault" || i == "registry/place" || strings.HasPrefix(name, i+"/") || strings.HasPrefix(i, name+"/") || i == "ops/core" || i == "ops/change" ||
					strings.HasPrefix(i, "internal/") && !slices.Contains(above, i) && i != "internal/stdio" && i != "internal/roots"
			default:
				ok = false
			}
			if !ok {
				t.Errorf("%s must not import %s", name, i)
			}
		}
	}
}

func TestAllForgetsNoPackage(t *testing.T) {
	found := packages(t)
	for name, imports := range found {
		// An op registers itself; what only declares a tool, a toolset or commands
		// comes with it.
		if !strings.HasPrefix(name, "ops/") || name == "ops/all" || !slices.Contains(imports, "registry") {
			continue
		}
		comes := false
		for other, others := range found {
			comes = comes || strings.HasPrefix(other, "ops/") && other != "ops/all" && slices.Contains(others, name)
		}
		if !comes && !slices.Contains(found["ops/all"], name) {
			t.Errorf("ops/all forgets %s", name)
		}
	}
}
