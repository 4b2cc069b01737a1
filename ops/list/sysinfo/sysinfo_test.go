package sysinfo

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/optest"
)

func TestGolden(t *testing.T) { optest.Golden(t, registry.New(desc, build)) }

func TestCapabilities(t *testing.T) {
	b := optest.New(t, registry.New(desc, build), map[string]string{"CONDUIT_DEFAULT_CHECKSUM_ALGORITHM": "MD5", "CONDUIT_MAX_RECURSIVE_DEPTH": "7"})
	got := b.Text(t, `{"info_type": "server_capabilities"}`)
	temp, _ := json.Marshal(tempDir())
	var active struct {
		Configuration map[string]any `json:"active_configuration"`
	}
	if err := json.Unmarshal([]byte(got), &active); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{"CONDUIT_ALLOWED_PATHS": []any{b.Dir}, "CONDUIT_PROJECT_ROOT": b.Dir, "CONDUIT_JOURNAL_DIR": "NONE",
		"CONDUIT_MAX_RECURSIVE_DEPTH": 7.0, "CONDUIT_DEFAULT_CHECKSUM_ALGORITHM": "md5", "CONDUIT_READ_ONLY": false, "CONDUIT_TOOLSETS": "core"} {
		if !reflect.DeepEqual(active.Configuration[name], want) {
			t.Errorf("%s is %v, want %v", name, active.Configuration[name], want)
		}
	}
	_, got, _ = strings.Cut(got, "},")
	want := `"supported_checksum_algorithms":["md5","sha1","sha256","sha512"],"supported_archive_formats":["zip","tar.gz","tgz","tar","tar.bz2","tar.xz","tar.zst","7z","rar"],` +
		`"default_checksum_algorithm":"md5","max_recursive_depth":7,"system_temp_directory":` + string(temp) + `}`
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestVolume(t *testing.T) {
	b := optest.New(t, registry.New(desc, build), nil)
	if err := os.WriteFile(filepath.Join(b.Dir, "a.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.txt", filepath.Join(b.Dir, "l")); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{".": b.Dir, "a.txt": filepath.Join(b.Dir, "a.txt"), "l": filepath.Join(b.Dir, "l")} {
		var v volume
		args, _ := json.Marshal(map[string]string{"info_type": "filesystem_stats", "path": name})
		text := b.Text(t, string(args))
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if v.Path != path || v.Total == 0 || v.Available > v.Free || v.Free > v.Total || v.Used != v.Total-v.Free {
			t.Errorf("%s: %s", name, text)
		}
	}
}
