package filetree

import (
	"encoding/hex"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Journals hold digests for days, so the same tree must have the same one in the
// versions to come.
func TestDigest(t *testing.T) {
	s := newScratch(t)
	s.make("t/a/f=one", "t/a/g=two2", "t/a-b/f=", "t/a.b=x", "t/z/deep/f=yy")
	at := time.Date(2001, 2, 3, 4, 5, 6, 789000000, time.UTC)
	for _, name := range []string{"a/f", "a/g", "a", "a-b/f", "a-b", "a.b", "z/deep/f", "z/deep", "z"} {
		fi, err := os.Stat(s.path("t/" + name))
		if err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o640)
		if fi.IsDir() {
			mode = 0o750
		}
		if err := os.Chmod(s.path("t/"+name), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(s.path("t/"+name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	p := s.at("t")
	digest := func() string {
		t.Helper()
		sum, err := Digest(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return hex.EncodeToString(sum)
	}
	const want = "44d605ae2b134d861cab70b12d9f9a2879d8a09e87136228dd4189a0ae70fda2"
	if got := digest(); got != want {
		t.Errorf("got %s", got)
	}
	if err := os.Chtimes(s.path("t/z/deep/f"), at, at.Add(time.Nanosecond*1000)); err != nil {
		t.Fatal(err)
	}
	if digest() == want {
		t.Error("a file was written to, and the digest is the same")
	}
	if _, err := Digest(t.Context(), s.at("none")); err == nil {
		t.Error("nothing has a digest")
	}
}

func TestDigestOfDeepTrees(t *testing.T) {
	s := newScratch(t)
	s.deep("just", maxLevels+1)
	s.deep("over", maxLevels+2)
	p := s.at("just")
	if _, err := Digest(t.Context(), p); err != nil {
		t.Error(err)
	}
	p = s.at("over")
	_, err := Digest(t.Context(), p)
	wantCode(t, err, fault.TooDeep)
}

func BenchmarkDigest(b *testing.B) {
	s := newScratch(b)
	for i := range 50 {
		for j := range 20 {
			s.make(fmt.Sprintf("s/%d/%d=text", i, j))
		}
	}
	p := s.at("s")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Digest(b.Context(), p); err != nil {
			b.Fatal(err)
		}
	}
}
