package cmd

import (
	"bytes"
	"image"
	_ "image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCall(t *testing.T) {
	dir := t.TempDir()
	put := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("f", "hello")
	put("arguments.json", "\n{\"sources\": [\"f\"]}\n")
	var photo bytes.Buffer
	if err := png.Encode(&photo, image.NewGray(image.Rect(0, 0, 40, 30))); err != nil {
		t.Fatal(err)
	}
	put("p.png", photo.String())
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		args   []string
		stdin  string
		stdout string // contained
		stderr string
		code   int
	}{
		{[]string{"read.content", "-"}, `{"sources":["f"]}`, `"content":"hello"`, "", 0},
		{[]string{"read", "-"}, `{"operation":"content","sources":["f"]}`, `"content":"hello"`, "", 0},
		{[]string{"read.content", "@" + at("arguments.json")}, "", `"content":"hello"`, "", 0},
		{[]string{"read.content", "@" + at("none")}, "", "", "ERR_FS_NOT_FOUND: the arguments cannot be read", 1},
		{[]string{"read.content", `{"sources": ["f"`}, "", "", "at byte 16 of 16", 1},
		{[]string{"read.content", `[]`}, "", "", "one JSON object", 1},
		{[]string{"read.content", "-"}, `{"sources":["` + strings.Repeat("x", 20_000) + `"]}`, "", "ERR_", 1},
		{[]string{"read.content", `{"sources":["p.png"],"format":"media"}`}, "", `"width":40`, "(image/png, ", 0},
		{[]string{"read.content", "-o", at("out.png"), `{"sources":["p.png","f","p.png"],"format":"media"}`}, "", `"width":40`, at("out-2.png") + ": image/png, ", 0},
		{[]string{"read.content", "-q", "--output", at("quiet.png"), `{"sources":["p.png"],"format":"media"}`}, "", `"width":40`, "", 0},
		{[]string{"read.content", "--output", at("nothing"), `{"sources":["f"]}`}, "", "hello", "has no image or sound", 1},
	} {
		env := map[string]string{"CONDUIT_ALLOWED_PATHS": dir, "CONDUIT_PROJECT_ROOT": dir, "CONDUIT_LOG_FILE_PATH": "NONE", "CONDUIT_MAX_PAYLOAD_SIZE_BYTES": "10000"}
		var out, errs strings.Builder
		code := Run(append([]string{"call"}, c.args...), env, strings.NewReader(c.stdin), &out, &errs)
		if code != c.code || !strings.Contains(out.String(), c.stdout) || !strings.Contains(errs.String(), c.stderr) || c.stderr == "" && errs.Len() > 0 {
			t.Errorf("%q: %d, %s\n%s", c.args, code, out.String(), errs.String())
		}
	}
	for name, saved := range map[string]bool{"out.png": true, "out-2.png": true, "quiet.png": true, "nothing": false} {
		f, err := os.Open(at(name))
		if err == nil {
			_, _, err = image.DecodeConfig(f)
			f.Close()
		}
		if (err == nil) != saved {
			t.Errorf("%s: %v", name, err)
		}
	}
}
