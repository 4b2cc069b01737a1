package atomicfile

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func TestRun(t *testing.T) {
	s := newScratch(t)
	s.write("kept", "old", 0o600)
	large := strings.Repeat("0123456789abcdef", 100_000)
	jobs := []*Job{
		{Place: s.at("one/a"), Content: "1"},
		{Place: s.at("two/deep/b"), Content: large},
		{Place: s.at("kept"), Content: "new", Mode: Create},
		{Place: s.at("."), Content: "x"},
		{Place: s.at("one/a"), Content: "2"},
		{Place: s.at("one/a"), Content: "3", Mode: Append},
		{Place: s.at("gone/c"), Content: "4", IfMatch: etagOf("")},
		{Place: s.at("one/empty")},
	}
	var done atomic.Int32
	if err := New().Run(t.Context(), jobs, func() { done.Add(1) }); err != nil {
		t.Fatal(err)
	}
	if int(done.Load()) != len(jobs) {
		t.Errorf("done was called %d times", done.Load())
	}
	if s.read("one/a") != "23" || s.read("two/deep/b") != large || s.read("kept") != "old" || s.read("one/empty") != "" {
		t.Errorf("one/a holds %q, kept %q", s.read("one/a"), s.read("kept"))
	}
	if sum := sha256.Sum256([]byte(large)); string(jobs[1].Sum) != string(sum[:]) {
		t.Errorf("sum = %x, want %x", jobs[1].Sum, sum)
	}
	if sum := sha256.Sum256(nil); string(jobs[7].Sum) != string(sum[:]) {
		t.Errorf("sum of nothing = %x", jobs[7].Sum)
	}
	if !jobs[0].Created || jobs[4].Created || jobs[5].Created || jobs[5].Sum != nil {
		t.Errorf("reports: %+v, %+v, %+v", jobs[0], jobs[4], jobs[5])
	}
	wantCode(t, jobs[2].Err, fault.FSAlreadyExists)
	wantCode(t, jobs[3].Err, fault.FSIsDirectory)
	wantCode(t, jobs[6].Err, fault.PreconditionFailed)
	s.names(".", "kept", "one", "two")
	s.names("one", "a", "empty")
}

func TestRunKeepsTheOrderOfOneFile(t *testing.T) {
	s := newScratch(t)
	var jobs []*Job
	want := ""
	for n := range 200 {
		jobs = append(jobs, &Job{Place: s.at("f"), Content: fmt.Sprint(n, " "), Mode: Append}, &Job{Place: s.at(fmt.Sprint("other", n%7)), Content: "x"})
		want += fmt.Sprint(n, " ")
	}
	if err := New().Run(t.Context(), jobs, nil); err != nil || s.read("f") != want {
		t.Errorf("err = %v, f holds %q", err, s.read("f"))
	}
}

func TestRunCancelled(t *testing.T) {
	s := newScratch(t)
	ctx, cancel := context.WithCancel(t.Context())
	var jobs []*Job
	for n := range 500 {
		jobs = append(jobs, &Job{Place: s.at(fmt.Sprint("f", n)), Content: "x"})
	}
	var done atomic.Int32
	err := New().Run(ctx, jobs, func() {
		if done.Add(1) == 3 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || done.Load() > 3+2*runners {
		t.Errorf("err = %v after %d jobs", err, done.Load())
	}
	list, err := os.ReadDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if IsTemp(e.Name()) || s.read(e.Name()) != "x" {
			t.Errorf("left behind: %s holding %q", e.Name(), s.read(e.Name()))
		}
	}
}

func TestRunSurvivesAPanic(t *testing.T) {
	s := newScratch(t)
	err := New().Run(t.Context(), []*Job{{Place: s.at("f"), Content: "x"}}, func() { panic("overboard") })
	if err == nil || !strings.Contains(err.Error(), "overboard") {
		t.Errorf("err = %v, want the panic", err)
	}
}

func TestAppend(t *testing.T) {
	s := newScratch(t)
	s.write("f", "old", 0o640)
	if err := os.Mkdir(s.path("dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	jobs := []*Job{
		{Place: s.at("f"), Content: "+new", Mode: Append, IfMatch: etagOf("old")},
		{Place: s.at("f"), Content: "never", Mode: Append, IfMatch: etagOf("old")},
		{Place: s.at("dir"), Content: "never", Mode: Append},
		{Place: s.at("new/f"), Content: "born", Mode: Append},
		{Place: s.at("none"), Content: "never", Mode: Append, IfMatch: etagOf("old")},
	}
	if err := New().Run(t.Context(), jobs, nil); err != nil {
		t.Fatal(err)
	}
	if jobs[0].Err != nil || s.read("f") != "old+new" || s.mode("f") != 0o640 {
		t.Errorf("err = %v, f holds %q, mode %v", jobs[0].Err, s.read("f"), s.mode("f"))
	}
	wantCode(t, jobs[1].Err, fault.PreconditionFailed, etagOf("old+new"))
	wantCode(t, jobs[2].Err, fault.FSIsDirectory)
	if jobs[3].Err != nil || !jobs[3].Created || s.read("new/f") != "born" {
		t.Errorf("err = %v, new/f holds %q", jobs[3].Err, s.read("new/f"))
	}
	wantCode(t, jobs[4].Err, fault.PreconditionFailed, "does not exist")
	s.names(".", "dir", "f", "new")
}

func BenchmarkPut8MB(b *testing.B) {
	s := newScratch(b)
	w, p := New(), s.at("f")
	text := strings.Repeat("0123456789abcdef", 8<<20/16)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		j := Job{Place: p, Content: text}
		if err := w.Run(b.Context(), []*Job{&j}, nil); err != nil || j.Err != nil {
			b.Fatal(err, j.Err)
		}
	}
}

func BenchmarkPut1000(b *testing.B) {
	text := strings.Repeat("line of text\n", 160)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		s := newScratch(b)
		w := New()
		b.StartTimer()
		jobs := make([]*Job, 1000)
		for i := range jobs {
			jobs[i] = &Job{Place: s.at(fmt.Sprintf("%d/f%04d.txt", i%10, i)), Content: text}
		}
		if err := w.Run(b.Context(), jobs, nil); err != nil {
			b.Fatal(err)
		}
		for _, j := range jobs {
			if j.Err != nil {
				b.Fatal(j.Err)
			}
		}
	}
}
