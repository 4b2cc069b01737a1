package search

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"
)

// spans returns where m matches in text.
func spans(t *testing.T, m Matcher, text []byte, start int) []string {
	t.Helper()
	var list []string
	left := time.Hour
	if err := m.each(text, start, &left, func(from, to int) bool {
		list = append(list, fmt.Sprint(from, "-", to))
		return len(list) < 50
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

// A text that every match has in it changes how a file is searched, not what is
// found.
func TestRequiredTextChangesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 6))
	pieces := []string{"func (a *B) ServeHTTP(", "func ", "(a *B)", "(x)", " ServeHTTP(", "ServeHTTP", "\n", "\n", "\r\n", "TODO", "todo", "ToDo: ", "\t", "é", "\u2028", "K", "\u212a", "ab", "b", " "}
	for k, pattern := range []string{ // of the first three no text is required
		`TODO|b`, `(?:todo)?b`, `ServeHTTP*|\(`,
		`func \(\w+ \*?\w+\) ServeHTTP\(`, `todo`, `/todo:?\s*$/i`, `^todo$`, `/^(todo|ab)+ab/i`, `\bServeHTTP\b`, `[^x]ServeHTTP`,
		`ServeHTTP\(\s*TODO`, `.*todo.*`, `bab{1,2}`, `(?:ab)+b`, `/kab/i`, `[^\n]todo`, `todo.`, `/todo.ab/s`, `todo$`, `ServeHTTP|TODO`, `/todo|KAB|ab:/i`, `(?:TODO|x(ab|todo))\s`, `a(b|x)todo|ServeHTTP`, `(ab|b)todo(x|\n)?`,
	} {
		e := patient(t, pattern)
		whole := patient(t, pattern)
		whole.need = nil
		matches := 0
		for range 300 {
			var b bytes.Buffer
			for range random.IntN(30) {
				b.WriteString(pieces[random.IntN(len(pieces))])
			}
			start := boundary(append(b.Bytes(), 0), random.IntN(b.Len()+1))
			got, want := spans(t, e, b.Bytes(), start), spans(t, whole, b.Bytes(), start)
			if matches += len(want); !slices.Equal(got, want) {
				t.Fatalf("%s in %q from %d: %v, want %v", pattern, b.Bytes(), start, got, want)
			}
		}
		if matches == 0 {
			t.Errorf("%s: no text has a match", pattern)
		}
		if e.need == nil != (k < 3) {
			t.Errorf("%s: of %d texts one is required", pattern, len(e.need))
		}
	}
}

func TestWithinLine(t *testing.T) {
	for pattern, want := range map[string]bool{
		`func \w+`: true, `^abc$`: true, `a.+cde`: true, `\babc`: true,
		`abc\s`: false, `[^x]abc`: false, `/abc./s`: false, "abc\\n": false,
	} {
		if e := expression(t, pattern); e.need == nil || e.within != want {
			t.Errorf("%s: within a line is %t, want %t", pattern, e.within, want)
		}
	}
	if e, err := NewExpression(`^abc`, false); err != nil || e.within {
		t.Errorf("^ at the beginning alone: %v", err)
	}
}

func TestExactLiteral(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 7))
	for _, text := range []string{"a", "ab", "aab", "zz", "sync.WaitGroup", "qaaaa", "aaaaq", "éa", "aé", "\xffa"} {
		l := NewLiteral(text, true)
		for n := range 400 {
			b := make([]byte, random.IntN(3000))
			for i := range b {
				b[i] = "abqzé"[random.IntN(6)]
			}
			for range n % 4 {
				if at := random.IntN(len(b) + 1); at+len(text) <= len(b) {
					copy(b[at:], text)
				}
			}
			start := random.IntN(len(b) + 1)
			want := bytes.Index(b[start:], l.exact)
			if want >= 0 {
				want += start
			}
			if from, to := l.next(b, start); from != want || from >= 0 && to != from+len(text) {
				t.Fatalf("%q in %q from %d: %d to %d, want %d", text, b, start, from, to, want)
			}
		}
	}
}

func TestLiteralInAnyCase(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 8))
	letters := []rune("kK\u212asSſéÉßẞaAb.Ωω\u2126")
	for range 300 {
		pick := func(n int) string {
			var b []rune
			for range n {
				b = append(b, letters[random.IntN(len(letters))])
			}
			return string(b)
		}
		text := pick(1 + random.IntN(4))
		l, oracle := NewLiteral(text, false), regexp.MustCompile("(?i)"+regexp.QuoteMeta(text))
		for range 20 {
			b := []byte(pick(random.IntN(60)))
			var want []string
			for _, m := range oracle.FindAllIndex(b, 50) {
				want = append(want, fmt.Sprint(m[0], "-", m[1]))
			}
			if got := spans(t, l, b, 0); !slices.Equal(got, want) {
				t.Fatalf("%q in %q: %v, want %v", text, b, got, want)
			}
		}
	}
}
