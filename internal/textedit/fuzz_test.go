package textedit_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/textedit"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// FuzzParse checks that nothing changes without a change, and that bytes outside
// of one stay, in whatever charset.
func FuzzParse(f *testing.F) {
	for _, label := range []string{"", "utf-8", "latin1", "utf-16le", "shift_jis", "gb18030", "big5", "euc-kr", "koi8-r", "x-user-defined", "utf-16be", "euc-jp"} {
		f.Add([]byte("a\r\nb\xe9\x93\xfa\xff\n"), label, uint(3))
		f.Add([]byte("\xff\xfea\x00\x3d\xd8"), label, uint(1))
	}
	f.Fuzz(func(t *testing.T, raw []byte, label string, n uint) {
		d, err := textedit.Parse(raw, label)
		if err != nil {
			return
		}
		if out, err := d.Apply(nil); err != nil || !bytes.Equal(out, raw) {
			t.Fatalf("without a change %q, %v", out, err)
		}
		text := d.Text()
		at := int(n % uint(len(text)+1))
		out, err := d.Apply([]textedit.Splice{{From: at, To: at, New: "X"}})
		if err != nil {
			return // inside a character
		}
		added := len(out) - len(raw)
		for i := range len(raw) + 1 {
			if bytes.Equal(out[:i], raw[:i]) && bytes.Equal(out[i+added:], raw[i:]) {
				return
			}
		}
		t.Fatalf("an X at %d of %q gives %q", at, raw, out)
	})
}

// FuzzPlan checks that edits end in a text that is as far from the old one as
// they say, or in a reason.
func FuzzPlan(f *testing.F) {
	f.Add("a\r\nb\nc", "b\nc", "x\ny", 1, 0, uint8(0))
	f.Add("\ta\n\tb\n", "a\nb\n", "a\n  c\nb\n", 0, 2, uint8(1))
	f.Add("a\n\n\n", "\n\n", "", -1, -3, uint8(2))
	f.Add("x\ny", "y\n", "z\n", 2, 1, uint8(3))
	f.Fuzz(func(t *testing.T, text, old, put string, line, at int, how uint8) {
		d, err := textedit.Parse([]byte(text), "")
		if err != nil {
			return
		}
		edits := []textedit.Edit{{Old: old, New: put, Occurrence: int(how>>4) - 2}, {First: line, New: put}, {At: at, New: put, After: how&4 != 0 && at != 0}}
		for i := range edits {
			edits := edits[:i+1]
			if how&8 != 0 {
				edits = edits[i:]
			}
			p, err := d.Plan(t.Context(), edits, textedit.Matching(how%3))
			if err != nil {
				if reason := textedit.Reason(nil); !errors.As(err, &reason) {
					t.Fatalf("%v is no reason", err)
				} else if len(reason.Error()) > 4096 {
					t.Fatalf("%d bytes: %s", len(reason.Error()), reason)
				}
				continue
			}
			out, err := d.Apply(p.Splices)
			if err != nil {
				if coded := new(fault.Error); !errors.As(err, &coded) {
					t.Fatal(err)
				}
				continue
			}
			diff, err := d.Diff(t.Context(), p.Splices, "a/x", "b/x", 3)
			if err != nil {
				t.Fatal(err)
			}
			if (diff.Text == "") != (string(out) == text) {
				t.Fatalf("%q becomes %q by the diff %q", text, out, diff.Text)
			}
			if want := lines(string(out)) - lines(text); diff.Added-diff.Removed != want {
				t.Fatalf("%d lines more, want %d:\n%s", diff.Added-diff.Removed, want, diff.Text)
			}
			if strings.Contains(text, "\r\n") && !strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\n") &&
				strings.Contains(strings.ReplaceAll(string(out), "\r\n", ""), "\n") && !strings.Contains(old+put, "\r") {
				t.Fatalf("%q got another line end: %q by %+v", text, out, edits)
			}
		}
	})
}
