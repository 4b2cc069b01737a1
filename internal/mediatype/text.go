package mediatype

import "bytes"

const (
	shell  = "text/x-shellscript"
	python = "text/x-python"
	perl   = "text/x-perl"
	ruby   = "text/x-ruby"
	script = "text/javascript"
	markup = "text/html"
)

// text is quick for a head that is text without a byte order mark and has none
// of the starts. The order of its questions is the library's.
func text(head []byte) string {
	label := plain
	switch t := trim(head, spaces); {
	case has(t, "<"):
		label = tagged(t, len(t) == len(head))
	case has(head, "#!"):
		label = interpreter(head[2:])
	case has(t, "{"), has(t, "["):
		label = json(head)
	case has(t, "0 HEAD"): // GEDCOM
		return ""
	}
	switch {
	case label != plain && label != shell:
		return label
	case jsonLines(head):
		return ""
	case table(head, ','):
		return "text/csv"
	case table(head, '\t'):
		return "text/tab-separated-values"
	}
	return label
}

const (
	jsonSpaces = 1<<'\t' | 1<<'\n' | 1<<'\r' | 1<<' '
	spaces     = jsonSpaces | 1<<'\f'
)

// trim cuts the leading bytes that are in set, a mask of those below 64.
func trim(b []byte, set uint64) []byte {
	for len(b) > 0 && b[0] < 64 && set>>b[0]&1 == 1 {
		b = b[1:]
	}
	return b
}

// argument cuts t after its first word.
func argument(t []byte) (first, rest []byte) {
	if i := bytes.IndexAny(t, "\t\n\f\r "); i >= 0 {
		return t[:i], t[i:]
	}
	return t, nil
}

// interpreter returns the type of a script by the line after its #!, or "".
func interpreter(line []byte) string {
	line, _, _ = bytes.Cut(line, []byte{'\n'})
	path, rest := argument(trim(line, spaces))
	switch string(path) {
	case "/bin/sh", "/bin/bash", "/bin/zsh", "/bin/dash", "/bin/ksh", "/bin/csh":
		return shell
	case "/usr/bin/perl":
		return perl
	case "/usr/bin/python", "/usr/bin/python2", "/usr/bin/python3":
		return python
	case "/usr/bin/ruby":
		return ruby
	case "/usr/bin/node", "/usr/bin/nodejs":
		return script
	case "/usr/bin/env":
		program, _ := argument(trim(rest, spaces))
		switch string(program) {
		case "bash", "zsh", "dash", "ksh", "csh":
			return shell
		case "perl":
			return perl
		case "python", "python2", "python3":
			return python
		case "ruby":
			return ruby
		case "node", "nodejs":
			return script
		}
	}
	return ""
}

// tagged returns the type of a text by the tag that it begins with, after
// spaces if not first.
func tagged(t []byte, first bool) string {
	c := t
	for has(c, "<!--") {
		// The hyphens of a start may be those of the end.
		i := bytes.Index(c[2:], []byte("-->"))
		if i < 0 {
			break
		}
		c = c[2+i+3:]
	}
	switch {
	case has(c, "<svg"):
		return ""
	case hasFold(t, "<?xml"):
		return xml(t)
	case has(t, "<?"):
		if first && hasFold(t, "<?php") && len(t) > len("<?php") {
			return "text/x-php"
		}
		return ""
	}
	i := bytes.IndexAny(t[:min(len(t), len("<!DOCTYPE")+1)], "\t\n\f\r >")
	if i < 0 {
		return plain
	}
	var name [len("!DOCTYPE")]byte
	for at, c := range t[1:i] {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		name[at] = c
	}
	switch string(name[:i-1]) {
	case "html", "head", "script", "iframe", "h1", "div", "font", "table", "a", "style", "title", "b", "body", "br",
		"p", "!--":
		return markup
	case "!doctype":
		if t = t[i:]; hasFold(t, " html") && len(t) > 5 && bytes.IndexByte([]byte("\t\n\f\r >"), t[5]) >= 0 {
			return markup
		}
	}
	return plain
}

// xml returns the type of a text that begins with <?xml, or "" where it may be
// one of the formats that are told by the names in it.
func xml(t []byte) string {
	if len(t) < 6 || bytes.IndexByte([]byte("\t\n\f\r >"), t[5]) < 0 ||
		bytes.Contains(t, []byte("<svg")) || bytes.Contains(t[:min(len(t), 512)], []byte("xmlns:gml=")) {
		return ""
	}
	for s := t[1:min(len(t), 1024)]; ; {
		i := bytes.IndexByte(s, '<')
		if i < 0 {
			return "text/xml"
		}
		if s = s[i+1:]; len(s) == 0 {
			continue
		}
		switch s[0] {
		case '!':
			if hasFold(s, "!doctype") && hasFold(trim(s[len("!doctype"):], spaces), "html") {
				return ""
			}
		case 'h', 'H':
			if hasFold(s, "html") {
				return ""
			}
		case 'O', 'r', 'f', 'X', 'k', 'x', 'C', 'g', 'T', 'a', 'm', 'b':
			for _, name := range xmlNames {
				if has(s, name) {
					return ""
				}
			}
		}
	}
}

// xmlNames are the names of the elements that tell formats written in XML.
var xmlNames = [...]string{"Ontology", "rss", "feed", "X3D", "kml", "xliff", "COLLADA", "gpx",
	"TrainingCenterDatabase", "amf", "model", "xfdf", "bom"}

// table reports whether head is lines of at least two fields each and as many
// in each, by the first ten. Lines that are empty or begin with # do not count,
// and the last line may be short where the head cuts it off.
func table(head []byte, comma byte) bool {
	rest, columns := head, 0
	for rows := range 10 {
		n := fields(&rest, comma)
		switch {
		case rows == 0 && n < 2:
			return false
		case rows == 0:
			columns = n
		case n == 0 || n < columns && len(head) == HeadSize && len(rest) == 0:
			return rows >= 2
		case n != columns:
			return false
		}
	}
	return true
}

// fields takes a record from the start of rest and counts its fields; there is
// no record where it counts none.
func fields(rest *[]byte, comma byte) int {
	line, dos := record(rest)
	for len(line) == 0 || line[0] == '\n' || line[0] == '#' {
		if len(*rest) == 0 {
			return 0
		}
		line, dos = record(rest)
	}
	for n := 1; ; n++ {
		if len(line) == 0 || line[0] != '"' {
			i := bytes.IndexByte(line, comma)
			if i < 0 {
				return n
			}
			line = line[i+1:]
			continue
		}
		line = line[1:]
		for quoted := true; quoted; {
			i := bytes.IndexByte(line, '"')
			switch {
			case i < 0 && len(line) == 0 && !dos:
				return n
			case i < 0:
				line, dos = record(rest)
				continue
			}
			line = line[i+1:]
			switch {
			case len(line) == 0 || string(line) == "\n":
				return n
			case line[0] == '"':
				line = line[1:]
			case line[0] == comma:
				line, quoted = line[1:], false
			}
		}
	}
}

// record takes a line from the start of rest, with its line feed but without
// the carriage return and line feed of dos.
func record(rest *[]byte) (line []byte, dos bool) {
	i := bytes.IndexByte(*rest, '\n') + 1
	if i == 0 {
		line, *rest = *rest, nil
		return bytes.TrimSuffix(line, []byte{'\r'}), false
	}
	line, *rest = (*rest)[:i], (*rest)[i:]
	return bytes.CutSuffix(line, []byte("\r\n"))
}
