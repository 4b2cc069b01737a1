package journal

import (
	"fmt"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
)

// benchmarkPut1000 writes 1,000 files of 2 kB over what prepare has left.
func benchmarkPut1000(b *testing.B, journal bool, prepare func(s *scratch)) {
	text := strings.Repeat("line of text\n", 160)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		s := newScratch(b)
		prepare(s)
		b.StartTimer()
		c := s.j.Begin("bench")
		jobs := make([]*atomicfile.Job, 1000)
		for i := range jobs {
			jobs[i] = &atomicfile.Job{Place: s.at(fmt.Sprintf("%d/f%04d.txt", i%10, i)), Content: text}
			if journal {
				jobs[i].Keep = c.Part()
			}
		}
		if err := s.w.Run(b.Context(), jobs, nil); err != nil {
			b.Fatal(err)
		}
		c.Done()
		for _, j := range jobs {
			if j.Err != nil {
				b.Fatal(j.Err)
			}
			if p, ok := j.Keep.(*Part); ok && p.Mark().ChangeID == "" {
				b.Fatal("not kept")
			}
		}
	}
}

func thousand(s *scratch) {
	for i := range 1000 {
		s.write(fmt.Sprintf("%d/f%04d.txt", i%10, i), strings.Repeat("old text\n", 230)+fmt.Sprint(i), 0o644)
	}
}

func BenchmarkPut1000(b *testing.B) {
	for name, prepare := range map[string]func(*scratch){"new": func(*scratch) {}, "over": thousand} {
		b.Run(name+"/without", func(b *testing.B) { benchmarkPut1000(b, false, prepare) })
		b.Run(name+"/with", func(b *testing.B) { benchmarkPut1000(b, true, prepare) })
	}
}

func BenchmarkDelete1000(b *testing.B) {
	for _, journal := range []bool{false, true} {
		b.Run(map[bool]string{false: "without", true: "with"}[journal], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				s := newScratch(b)
				for i := range 10 {
					s.write(fmt.Sprintf("d/%d/f", i), "", 0o644)
				}
				for i := range 1000 {
					s.write(fmt.Sprintf("d/%d/f%04d.txt", i%10, i), strings.Repeat("old text\n", 230)+fmt.Sprint(i), 0o644)
				}
				b.StartTimer()
				c := s.j.Begin("bench")
				var keep filetree.Keeper
				if journal {
					keep = c.Part()
				}
				if _, err := filetree.Delete(b.Context(), s.w, s.at("d"), true, keep, nil); err != nil {
					b.Fatal(err)
				}
				c.Done()
			}
		})
	}
}

func BenchmarkUndo1000(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		s := newScratch(b)
		thousand(s)
		s.change("bench", func(p *Part) {
			for i := range 10 {
				s.delete(p, fmt.Sprint(i))
			}
		})
		b.StartTimer()
		s.undo("")
	}
}

// BenchmarkPut50MB writes over one large file.
func BenchmarkPut50MB(b *testing.B) {
	for _, journal := range []bool{false, true} {
		b.Run(map[bool]string{false: "without", true: "with"}[journal], func(b *testing.B) {
			s := newScratch(b)
			s.j = s.journal(1 << 30)
			text := strings.Repeat("0123456789abcdef", 50<<20/16)
			s.write("f", text, 0o644)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				c := s.j.Begin("bench")
				j := &atomicfile.Job{Place: s.at("f"), Content: text}
				if journal {
					j.Keep = c.Part()
				}
				if err := s.w.Run(b.Context(), []*atomicfile.Job{j}, nil); err != nil || j.Err != nil {
					b.Fatal(err, j.Err)
				}
				c.Done()
			}
		})
	}
}
