package search

import (
	"context"
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
)

// replaced is text with all replacements made.
func replaced(t testing.TB, text string, m Matcher, replacement string) string {
	t.Helper()
	var b strings.Builder
	at := 0
	err := replacements(t.Context(), text, m, replacement, time.Hour, func(from, to int, put string) bool {
		if from < at || to < from {
			t.Fatalf("[%d,%d) after %d", from, to, at)
		}
		b.WriteString(text[at:from] + put)
		at = to
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String() + text[at:]
}

// The wanted texts are those of String.prototype.replace with the flags g and m.
func TestReplacements(t *testing.T) {
	for _, c := range []struct{ pattern, text, replacement, want string }{
		{"b", "abcb", "x", "axcx"},
		{"(a)(b)?", "ab a", "[$1|$2]", "[a|b] [a|]"},
		{"(a)", "a", "$0 $1 $2 $11 $01 $$1 $", "$0 a $2 a1 a $1 $"},
		{"(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)", "abcdefghijk", "$11 $10 $12", "k j a2"},
		{"(?<first>\\w)(\\w)", "xy", "$2$<first>$<none>!$<", "yx!$<"},
		{"a", "a", "$<first>", "$<first>"},
		{"é(.)", "xé\xffé1", "$1$&", "x\xffé\xff1é1"},
		{"a*", "baac", "x", "xbxxcx"},
		{"^", "a\nb", "> ", "> a\n> b"},
		{"$", "a\nb", ";", "a;\nb;"},
		{"(?<=a)b", "ab b", "x", "ax b"},
		{"/B/i", "abAB", "x", "axAx"},
		{"\\r?\\n", "a\r\nb\n", "\n", "a\nb\n"},
		{"need(le)+", "hay", "x", "hay"},
	} {
		if got := replaced(t, c.text, expression(t, c.pattern), c.replacement); got != c.want {
			t.Errorf("%q by %q in %q: %q, want %q", c.pattern, c.replacement, c.text, got, c.want)
		}
	}
	if got := replaced(t, "a.b", NewLiteral(".", true), "$&$1"); got != "a$&$1b" {
		t.Errorf("literally: %q", got)
	}
	e, err := NewFolded("b/", true)
	if err != nil {
		t.Fatal(err)
	}
	if got := replaced(t, "aB/b/", e, "x"); got != "axx" {
		t.Errorf("without regard to case: %q", got)
	}
}

// Texts of several windows, with matches where they meet.
func TestReplacementsInLongTexts(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for range 2 {
		var b strings.Builder
		for b.Len() < window+random.IntN(window) {
			b.WriteString([]string{"needle", "hay ", "日", "\n", "needleneedle", strings.Repeat("x", random.IntN(3000))}[random.IntN(6)])
		}
		text := b.String()
		want := strings.ReplaceAll(text, "needle", "<needle>")
		for name, m := range map[string]Matcher{"literal": NewLiteral("needle", true), "expression": patient(t, "ne{2}dle")} {
			if got := replaced(t, text, m, "<needle>"); got != want {
				t.Errorf("%s: the text differs", name)
			}
		}
		re := regexp.MustCompile(`(?m)^[a-z]+`)
		if got := replaced(t, text, patient(t, "^[a-z]+"), "[$&]"); got != re.ReplaceAllString(text, "[$0]") {
			t.Error("at the beginnings of lines the text differs")
		}
	}
}

func TestReplacementsEnd(t *testing.T) {
	n := 0
	err := Replacements(t.Context(), "aaaa", NewLiteral("a", true), "", func(int, int, string) bool {
		n++
		return n < 2
	})
	if err != nil || n != 2 {
		t.Errorf("%d, %v", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Replacements(ctx, "a", NewLiteral("a", true), "", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that of the context", err)
	}
	slow := expression(t, `^(?=(a+)+$)(a|aa)+\1b`)
	if err := Replacements(t.Context(), strings.Repeat("a", 40), slow, "", func(int, int, string) bool { return true }); !errors.Is(err, ErrGivenUp) {
		t.Errorf("%v, want %v", err, ErrGivenUp)
	}
}
