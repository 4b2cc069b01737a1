package registry

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

type shelfSettings struct {
	Name  string        `env:"SHELF_NAME,BOOKS_NAME,OLD_NAME" default:"shelf" doc:"D."`
	Max   int           `env:"SHELF_MAX,BOOKS_MAX" default:"3" min:"1" max:"9" doc:"D."`
	Wait  time.Duration `env:"SHELF_WAIT_MS" default:"250" doc:"D."`
	Open  bool          `env:"SHELF_OPEN" default:"false" doc:"D."`
	Kind  string        `env:"SHELF_KIND" default:"Oak" oneof:"Oak Pine" doc:"D."`
	File  string        `env:"SHELF_FILE" kind:"path" default:"" doc:"D."`
	State string        `env:"SHELF_STATE" kind:"state" default:"shelf/state" doc:"D."`
	Data  string        `env:"SHELF_DATA" kind:"data" default:"shelf" doc:"D."`
	Key   string        `env:"SHELF_KEY" secret:"true" default:"" doc:"D."`
}

func variables(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

func TestLoadSettings(t *testing.T) {
	home := t.TempDir()
	base := map[string]string{"HOME": home, "XDG_STATE_HOME": filepath.Join(home, "s"), "XDG_DATA_HOME": filepath.Join(home, "d"), "LOCALAPPDATA": filepath.Join(home, "s"), "USERPROFILE": home}
	relative, err := filepath.Abs("here/f")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		vars map[string]string
		want func(*shelfSettings)
	}{
		{"defaults", nil, func(*shelfSettings) {}},
		{"the first name wins", map[string]string{"SHELF_NAME": "a", "BOOKS_NAME": "b", "OLD_NAME": "c"}, func(s *shelfSettings) { s.Name = "a" }},
		{"a further name", map[string]string{"SHELF_NAME": "  ", "OLD_NAME": "c", "BOOKS_MAX": " 5 "}, func(s *shelfSettings) { s.Name, s.Max = "c", 5 }},
		{"kinds", map[string]string{"SHELF_WAIT_MS": "1", "SHELF_OPEN": "Yes", "SHELF_KIND": "pine"}, func(s *shelfSettings) { s.Wait, s.Open, s.Kind = time.Millisecond, true, "Pine" }},
		{"paths", map[string]string{"SHELF_FILE": "~/f", "SHELF_STATE": "none", "SHELF_DATA": "here/f"}, func(s *shelfSettings) {
			s.File, s.State, s.Data = filepath.Join(home, "f"), "", relative
		}},
	} {
		vars := map[string]string{}
		for _, m := range []map[string]string{base, c.vars} {
			for k, v := range m {
				vars[k] = v
			}
		}
		lookup := variables(vars)
		state, _ := SettingsOf[shelfSettings]()[6].Value(variables(base))
		data, _ := SettingsOf[shelfSettings]()[7].Value(variables(base))
		want := shelfSettings{Name: "shelf", Max: 3, Wait: 250 * time.Millisecond, Kind: "Oak", State: state.(string), Data: data.(string)}
		if !strings.HasSuffix(want.State, filepath.Join("shelf", "state")) || !strings.HasPrefix(want.Data, home) {
			t.Fatalf("%+v", want)
		}
		c.want(&want)
		if got, err := LoadSettings[shelfSettings](lookup); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, want)
		}
	}
	for variable, value := range map[string]string{"SHELF_MAX": "10", "BOOKS_MAX": "many", "SHELF_OPEN": "maybe", "SHELF_KIND": "ash", "SHELF_WAIT_MS": "1s"} {
		_, err := LoadSettings[shelfSettings](variables(map[string]string{variable: value}))
		if code, message := fault.Of(err); code != fault.ConfigInvalid || !strings.HasPrefix(message, variable+" is ") {
			t.Errorf("%s=%s: %v", variable, value, err)
		}
	}
}

func TestShownSettings(t *testing.T) {
	shown := map[string]any{}
	for _, s := range SettingsOf[shelfSettings]() {
		v, err := s.Shown(variables(map[string]string{"SHELF_KEY": "hush", "SHELF_STATE": "NONE", "BOOKS_MAX": "4", "HOME": "/h"}))
		if err != nil {
			t.Fatal(err)
		}
		shown[s.Env] = v
	}
	for name, want := range map[string]any{"SHELF_KEY": "(set)", "SHELF_STATE": "NONE", "SHELF_MAX": int64(4), "SHELF_OPEN": false, "SHELF_FILE": ""} {
		if !reflect.DeepEqual(shown[name], want) {
			t.Errorf("%s is shown as %#v, want %#v", name, shown[name], want)
		}
	}
}
