package textedit

import "strings"

// Reindent returns text, which is to replace the lines first to last, indented
// as these are: old is what the caller takes them for, line by line, without
// regard to white space around each. The relative structure of text is kept, in
// the steps of the file. Where old has another number of lines or nothing but
// white space, text is returned as it is.
func (d *Doc) Reindent(first, last int, old, text string) string {
	from, to := d.Start(first), d.Start(last)
	to += len(d.rowAt(to).text)
	rows := d.span(from, to)
	was, now := strings.Split(strings.TrimSuffix(unified(old), "\n"), "\n"), strings.Split(unified(text), "\n")
	if len(was) != len(rows) || isBlank(old) {
		return text
	}
	indent := reindenter(d, from, to, was, now, rows)
	for i, line := range now {
		now[i] = indent(line)
	}
	return strings.Join(now, "\n")
}
