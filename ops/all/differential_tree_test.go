//go:build interop && linux

package all_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf16"
)

// why has the reasons for which ours differs.
var why = map[string]string{
	"depth":        "ours descends CONDUIT_MAX_RECURSIVE_DEPTH levels, the others all",
	"denied":       "what a deny rule covers is not there for ours",
	"temporary":    "files of writes that are under way are not there for ours",
	"lossy names":  "JSON has no bytes that are no UTF-8, so names show U+FFFD in their place",
	"links":        "a link is for ours what it leads to, a file or a directory, where that is allowed; for the others it is a link",
	"dead links":   "a link that leads nowhere, in a circle, to what is denied or out of the tree is a file without size for ours; so is one whose name is no UTF-8, which no path can have",
	"specials":     "what is neither a directory nor a link is a file for ours, and its size is 0",
	"directories":  "directories have no size for ours",
	"characters":   "the ? of our globs stands for a character, that of find(1) for a byte in its plain locale",
	"milliseconds": "ours compares the times that results show, which are of milliseconds",
	"midnight":     "on_date includes the first moment of the day, -newermt is later than it",
	"columns":      "ours counts columns in characters, ripgrep and grep in bytes",
	"binary":       "files that are no text by their first bytes are not searched by ours",
	"git itself":   "ours never looks into .git where it ignores files, ripgrep does where it looks at what is hidden",
	"repositories": "the rules of a repository hold for ours in one that lies in it too, and end there for ripgrep",
	"braces":       "braces are ordinary characters in .gitignore files, as git has it, but alternatives for ripgrep",
	"no UTF-8":     "a byte that is no UTF-8 is a character for expressions of ours, and none that a dot or class of the others takes",
	"marks":        "ours and ripgrep do not take a byte order mark for a character of the first line, grep does",
	"kelvin sign":  "grep does not find Kelvin by a pattern with the sign for kelvin in place of its K, but Unicode folds them to one",
	"line ends":    "^ and $ of JavaScript match, and its dot ends, at a lone \"\\r\", U+2028 and U+2029 too",
	"classes":      "\\d, \\w and \\b of JavaScript are of ASCII, those of ripgrep of Unicode",
	"no files":     "directories, links and special files add nothing to a sum of ours; du(1) adds their own sizes",
	"modules":      "search_files does not look into node_modules",
	"unpackable":   "the archive holds neither itself nor names that zip archives cannot have",
	"NUL":          "a file with a NUL byte at its beginning, UTF-16 too, is not searched by zipfs_grep",
	"long lines":   "zipfs_grep searches the first MiB of a line",
	"upper case":   "grep takes the dotless i for an i, since their upper case is one; Unicode's simple folding does not",
	"utf-16":       "ours and ripgrep decode UTF-16, the others do not",
}

// Where windows in which files are searched end, and from where on what they
// hold is left to the next one.
const (
	window = 1 << 20
	margin = 256 << 10
)

// texts are the files of the tree of oddities that are text, but for its
// many names.
var texts = map[string]string{
	"texts/plain.txt":               "first\nthe needle and a needle\n\tneedle\nNEEDLE Needle\nend needle",
	"texts/code.go":                 "package needle\n\n// TODO: needles\nfunc needle(a []int) { return a[0] + 12 /* x = 345; y=6 */ }\n",
	"texts/crlf.txt":                "needle\r\n\r\n  needle\r\nstraw\r\nthe end needle\r\n",
	"texts/bom.txt":                 "\ufeffneedle first\nneedle second\n",
	"texts/bom-crlf.txt":            "\ufeffneedle\r\nneedle\r\n",
	"texts/old-mac.txt":             "one\rneedle\rtwo needle\rthree\rneedle two",
	"texts/separators.txt":          "a\u2028needle\u2029needle\u0085needle\fneedle\nb needle\u2028\n",
	"texts/latin1.txt":              "caf\xe9 needle\nna\xefve \xe9\xe8 needle\n",
	"texts/half.txt":                "half \xe2\x82 needle \xf0\x9f\x98\nneedle \xff\n",
	"texts/empty.txt":               "",
	"texts/blank.txt":               "\n\n\n",
	"texts/blanks.txt":              "needle\n\n  \n\t\nneedle\n   ",
	"texts/wide.txt":                "éé needle\n日本語 needle\n😀😀 needle e\u0301 needle\n",
	"texts/case.txt":                "straße STRASSE ſtraſſe strasse\nKelvin kelvin \u212aelvin\nΣΊΣΥΦΟΣ Σίσυφος σίσυφοσ\nİstanbul istanbul\nıstanbul\nǅ ǆ Ǆ\nÄRGER ärger\nÅ \u212b å\nµ μ Μ\n",
	"texts/words.txt":               "foo foobar barfoo foo_bar foo-bar foo.bar\nfooé éfoo foo1 1foo\n\"foo\" (foo) foo\n",
	"texts/digits.txt":              "0123 ٣٤٥ x12 １２\nabc\u00a0def ghi\u2003jkl\n",
	"texts/marks.txt":               "a.b a*b [x] {y} (z) $v ^w \\n | + ? \"quoted\" 'single' /path/to\n.* needle.*\n",
	"texts/repeats.txt":             "aa aaa aaaa\nabab abcabc xx yy xy\nneedleneedle\n",
	"texts/over.txt":                "foo\nbar\nfoo\n\nbar\nfoobar\nfoo\nbar foo\nbar\n",
	"texts/late-nul.txt":            strings.Repeat("straw\n", 5000) + "needle\x00needle\nneedle\n",
	"texts/separated.csv":           "name,needle\n1,\"needle, too\"\n",
	"texts/markup.html":             "<!doctype html>\n<p>needle</p>\n",
	"texts/markup.svg":              "<svg xmlns=\"http://www.w3.org/2000/svg\"><text>needle</text></svg>\n",
	"texts/data.json":               "{\"needle\": [1, 2]}\n",
	"texts/script":                  "#!/bin/sh\necho needle\n",
	"large/long-lines.txt":          strings.Repeat("ж", 700_000) + "needle" + strings.Repeat("ф", 100_000) + "needle\nshort needle\n" + strings.Repeat("x", 5000) + "needle\n",
	"large/windows.txt":             atWindows(),
	"node_modules/a/b.js":           "var needle = 1;\n",
	"src/node_modules/c":            "needle\n",
	"src/Makefile":                  "needle:\n\techo needle\n",
	"src/.hidden.txt":               "hidden needle\n",
	"src/.conf/rc":                  "needle in a hidden directory\n",
	"src/UPPER.TXT":                 "UPPER needle\n",
	"secret/key.txt":                "denied needle\n",
	"src/secret-no.txt":             "needle that is not denied\n",
	"src/.conduit-abcdefghIJKL.tmp": "needle of a write under way\n",
	"src/.conduit-abcdefgh1JKL.tmp": "needle of a file that is none of ours\n",
	"src/ten.bin":                   "0123456789",
	"src/eleven.txt":                "0123456789\n",
}

// atWindows is a text of lines with needles where windows end and begin.
func atWindows() string {
	b := bytes.Repeat([]byte(strings.Repeat("x", 99)+"\n"), 4*window/100)
	for _, at := range []int{margin, window - margin, window, 2*window - 2*margin, 2*window - margin, 2 * window, 3*window - margin} {
		for _, shift := range []int{-3, 200, 1000} {
			copy(b[at+shift-len("<"):], "<needle>")
		}
	}
	return string(b)
}

// binaries are the files that are no text, though needles are in them.
var binaries = map[string]string{
	"binary/nul.dat":        "needle\x00needle\nneedle\n",
	"binary/nul-4095.dat":   strings.Repeat("x", 4094) + "\n\x00needle\n",
	"binary/picture.png":    "\x89PNG\r\n\x1a\n\nneedle\n",
	"binary/document.pdf":   "%PDF-1.4\nneedle\n",
	"binary/packed.gz":      "\x1f\x8b\x08\x01needle\nneedle\n",
	"binary/program":        "\x7fELF\x02\x01\x01needle\n",
	"binary/control.txt":    "needle \x01\x02\nneedle\n",
	"binary/unmarked16.txt": string(utf16Text(binary.LittleEndian, "needle\n")[2:]),
}

// names are those of small files with one needle each.
var names = []string{
	"with space.txt", " leading.txt", "trailing.txt ", "quote'\".txt", "new\nline.txt", "tab\t.txt", "colon:1:2.txt", "star*.txt", "what?.txt",
	"[bracket].txt", "[a-c].txt", "b.txt", "{brace}.txt", "{a,b}.txt", "back\\slash.txt", "-dash.txt", "--files", "~tilde.txt", "#hash.txt", "!bang.txt",
	"é.txt", "e\u0301.txt", "日本語.md", "😀.txt", "\xff\xfe.txt", "caf\xe9.txt", "half\xe2\x82.md", "\ufffd.txt", ".dot.txt", "..dots.txt", "UPPER.txt", "a.b.c.txt",
	"noextension", strings.Repeat("l", 255), "control\x01.txt", "rtl\u202etxt.exe", "$HOME.txt", "a;b&c|d.txt", "%41.txt", "con.txt",
}

// links lead to what is behind them; those that lead to a file of the tree are
// followed by ours. The loop and the broken lead nowhere.
var links = map[string]string{
	"links/file.txt":     "../texts/plain.txt",
	"links/other.md":     "../texts/plain.txt",
	"links/chain":        "file.txt",
	"links/wide":         "../texts/utf16le.txt",
	"links/binary":       "../binary/nul.dat",
	"links/dir":          "../texts",
	"links/up":           "..",
	"links/self":         "self",
	"links/loop-a":       "loop-b",
	"links/loop-b":       "loop-a",
	"links/broken":       "nowhere",
	"links/outside":      "../../out/file.txt",
	"links/outside-dir":  "../../out",
	"links/denied":       "../secret/key.txt",
	"links/fifo":         "../special/fifo",
	"links/\xfflink":     "../texts/plain.txt",
	"links/sp ace\n.txt": "../texts/crlf.txt",
	"links/absolute":     "$DIR/texts/plain.txt",
}

// followed are the links to files, with what these are called.
var followed = map[string]string{
	"links/file.txt": "texts/plain.txt", "links/other.md": "texts/plain.txt", "links/chain": "texts/plain.txt", "links/wide": "texts/utf16le.txt",
	"links/binary": "binary/nul.dat", "links/sp ace\n.txt": "texts/crlf.txt", "links/absolute": "texts/plain.txt",
}

// temporaryName is a name as writes under way have it.
const temporaryName = ".conduit-abcdefghIJKL.tmp"

// dull are the links to what may not be told.
var dull = []string{"links/outside", "links/outside-dir", "links/denied"}

// levels is how deep the tree goes; ours descends ten levels.
const (
	levels   = 14
	maxDepth = 10
)

// ignored has the files of the part of the tree in which .gitignore files stand.
var ignored = map[string]string{
	".gitignore": "# comment\n*.log\n!keep.log\nbuild/\n/top.txt\n/sub/anchored.txt\ndoc/*.txt\n**/any.txt\nvendor/**\n!vendor/kept\na/**/z.txt\n\\#hash\n\\!bang\n" +
		"trail.x   \nspace\\ \n[ab].c\n[!x]y.c\nwhat?\n*.o\r\n{br,ace}*\nfoo bar.txt\nonlydir/\n!/deep/*.log\nnegated/*\n!negated/this.txt\né*.txt\n*~\n",
	"a.log": "", "keep.log": "", "sub/keep.log": "", "build/x": "", "sub/build/y": "", "sub/x/build": "", "top.txt": "", "sub/top.txt": "",
	"sub/anchored.txt": "", "sub/sub/anchored.txt": "", "doc/a.txt": "", "doc/sub/a.txt": "", "sub/doc/a.txt": "", "any.txt": "", "sub/sub/any.txt": "",
	"vendor/x": "", "vendor/kept": "", "vendor/m/x": "", "a/z.txt": "", "a/b/z.txt": "", "a/b/c/z.txt": "", "z.txt": "", "#hash": "", "!bang": "", "# comment": "",
	"trail.x": "", "space ": "", "a.c": "", "b.c": "", "c.c": "", "zy.c": "", "xy.c": "", "what1": "", "what": "", "x.o": "", "{br,ace}": "", "br": "", "ace": "",
	"foo bar.txt": "", "onlydir/x": "", "sub/onlydir": "", "deep/a.log": "", "deep/er/a.log": "", "negated/this.txt": "", "negated/that.txt": "", "negated/d/this.txt": "",
	"élan.txt": "", "elan.txt": "", "a~": "", ".hidden": "", ".hidden.log": "", "\xff.log": "", "\xff.txt": "",
	"nested/.gitignore": "!*.log\n*.tmp\n/only\n", "nested/a.log": "", "nested/a.tmp": "", "nested/only": "", "nested/x/only": "", "nested/x/a.tmp": "",
	"nested/x/.gitignore": "!a.tmp\nb.*\n", "nested/x/b.txt": "", "nested/b.txt": "",
	"empty/.gitignore": "", "empty/a.log": "", "all/.gitignore": "*\n!.gitignore\n!*.keep\n", "all/x": "", "all/x.keep": "", "all/d/x.keep": "",
	".git/HEAD": "ref\n", ".git/a.txt": "", "sub/.git/config": "", "nogit/.ignore": "x\n", "nogit/x": "",
	"slash/.gitignore": "in/side\nb/\n**\\/c\n/*/e.txt\n", "slash/in/side": "", "slash/x/in/side": "", "slash/b/f": "", "slash/x/b/f": "", "slash/x/e.txt": "", "slash/x/y/e.txt": "",
}

func utf16Text(order binary.AppendByteOrder, s string) []byte {
	var b []byte
	for _, u := range utf16.Encode([]rune("\ufeff" + s)) {
		b = order.AppendUint16(b, u)
	}
	return b
}

// utf16Files are those of the tree in UTF-16, and decoded what they hold.
var (
	utf16Files = []string{"texts/utf16le.txt", "texts/utf16be.txt", "texts/utf16crlf.txt", "large/utf16.txt"}
	decoded    = map[string]string{
		utf16Files[0]: "é\n😀 needle\nNEEDLE needle\n",
		utf16Files[1]: "first\nneedle\n日本語 needle straße",
		utf16Files[2]: "needle\r\n\r\n needle\r\n",
		utf16Files[3]: strings.Repeat("мир линия\n", 150_000) + "the needle\n",
	}
)

// markedFiles are those of UTF-8 that begin with a byte order mark, brokenFiles
// those that are not UTF-8 throughout.
var (
	markedFiles = []string{"texts/bom.txt", "texts/bom-crlf.txt"}
	brokenFiles = []string{"texts/latin1.txt", "texts/half.txt"}
)

// plain is the text of a file as ours sees it, which is UTF-8 without a mark.
func plain(name string) string {
	if text, ok := decoded[name]; ok {
		return text
	}
	return strings.TrimPrefix(string([]rune(texts[name])), "\ufeff")
}

// Most files of the tree are of noon of a day.
var (
	day  = time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)
	noon = day.Add(12 * time.Hour)
)

// times are those of files that differ from noon.
var times = map[string]time.Time{
	"src/Makefile":         day,
	"src/ten.bin":          day.Add(-time.Millisecond),
	"src/eleven.txt":       day.Add(24 * time.Hour),
	"src/UPPER.TXT":        day.Add(24*time.Hour - time.Nanosecond),
	"texts/plain.txt":      noon.Add(time.Millisecond),
	"texts/code.go":        noon.Add(400 * time.Microsecond),
	"texts/empty.txt":      time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC),
	"texts/blank.txt":      time.Date(2100, 1, 1, 0, 0, 0, 1, time.UTC),
	"names/with space.txt": noon.Add(-time.Nanosecond),
}

// grow makes the tree of oddities and returns its directory. Outside of it is a
// directory that links lead to.
func grow(t *testing.T) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	dir := filepath.Join(base, "in")
	put := func(name string, content []byte) {
		full := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(full), 0o755))
		must(t, os.WriteFile(full, content, 0o644))
	}
	put("../out/file.txt", []byte("outside needle\n"))
	for name, content := range texts {
		put(name, []byte(content))
	}
	for name, content := range binaries {
		put(name, []byte(content))
	}
	for name, content := range ignored {
		put("ignored/"+name, []byte(content))
	}
	for i, name := range names {
		put("names/"+name, fmt.Appendf(nil, "needle %d\n", i))
	}
	for i, name := range utf16Files {
		put(name, utf16Text([]binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian}[i%2], decoded[name]))
	}
	deep := "deep"
	for level := range levels {
		put(path.Join(deep, "file.txt"), fmt.Appendf(nil, "needle at level %d\n", level))
		deep = path.Join(deep, fmt.Sprintf("d%02d", level))
	}
	for _, name := range slices.Concat(utf16Files, markedFiles, brokenFiles) {
		put("../out/decoded/"+name, []byte(plain(name)))
	}
	must(t, os.MkdirAll(filepath.Join(dir, "empty/inner"), 0o755))
	must(t, os.Mkdir(filepath.Join(dir, "special"), 0o755))
	must(t, syscall.Mkfifo(filepath.Join(dir, "special/fifo"), 0o644))
	must(t, os.Link(filepath.Join(dir, "texts/plain.txt"), filepath.Join(dir, "special/hard")))
	must(t, os.Link(filepath.Join(dir, "texts/plain.txt"), filepath.Join(dir, "special/hard-2")))
	put("special/sparse.dat", nil)
	must(t, os.Truncate(filepath.Join(dir, "special/sparse.dat"), 2_000_000))
	must(t, os.Mkdir(filepath.Join(dir, "links"), 0o755))
	for name, target := range links {
		must(t, os.Symlink(strings.Replace(target, "$DIR", dir, 1), filepath.Join(dir, name)))
	}
	must(t, filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
		if err != nil || e.Type()&os.ModeSymlink != 0 {
			return err
		}
		return os.Chtimes(name, noon, noon)
	}))
	for name, when := range times {
		must(t, os.Chtimes(filepath.Join(dir, name), when, when))
	}
	must(t, os.Chmod(filepath.Join(dir, "special/hard"), 0o4751))
	if os.Geteuid() != 0 { // who may read everything
		put("closed/file.txt", []byte("needle\n"))
		put("special/closed.txt", []byte("needle\n"))
		must(t, os.Chmod(filepath.Join(dir, "special/closed.txt"), 0))
		must(t, os.Chmod(filepath.Join(dir, "closed"), 0))
		t.Cleanup(func() { os.Chmod(filepath.Join(dir, "closed"), 0o755) })
	}
	return dir
}
