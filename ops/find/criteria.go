package find

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/conduit-mcp/conduit-mcp/internal/search"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A criterion is one of three types; each has parameters of its own.
type criterion struct {
	Type      string   `json:"type" jsonschema:"enum=name_pattern,enum=content_pattern,enum=metadata_filter" jsonschema_description:"Kind."`
	Pattern   string   `json:"pattern,omitempty" log:"content" jsonschema_description:"name_pattern: glob (with /: of the path below base_path). content_pattern: text."`
	Regex     bool     `json:"is_regex,omitempty" jsonschema_description:"pattern is a JavaScript regex, or /…/flags."`
	Case      bool     `json:"case_sensitive,omitempty" jsonschema:"default=false"`
	FileTypes []string `json:"file_types_to_search,omitempty" log:"plain" jsonschema_description:"Extensions."`
	Attribute string   `json:"attribute,omitempty" jsonschema:"enum=name,enum=size_bytes,enum=created_at_iso,enum=modified_at_iso,enum=entry_type,enum=mime_type" jsonschema_description:"What to compare."`
	Operator  string   `json:"operator,omitempty" jsonschema:"enum=equals,enum=not_equals,enum=contains,enum=starts_with,enum=ends_with,enum=matches_regex,enum=eq,enum=neq,enum=gt,enum=gte,enum=lt,enum=lte,enum=before,enum=after,enum=on_date" jsonschema_description:"Text: first six; size: eq to lte; times: the rest."`
	Value     any      `json:"value,omitempty" jsonschema_description:"Text, bytes or ISO 8601 time."`
}

// A check decides about an entry. Cheaper ones are asked first.
type check struct {
	cost int
	ok   func(*subject) (bool, error)
}

// What a check needs to know.
const (
	costName = iota
	costStat
	costType
)

// A query is what entries are searched for.
type query struct {
	checks  []check
	content []pattern // looked at last
	lines   int       // matching lines to return; 0 for none
	context int
}

// A pattern is a content_pattern.
type pattern struct {
	matcher    search.Matcher
	extensions []string // lower case, with their dot; empty for all
}

func (c pattern) covers(name string) bool {
	if len(c.extensions) == 0 {
		return true
	}
	name = strings.ToLower(name)
	return slices.ContainsFunc(c.extensions, func(e string) bool { return strings.HasSuffix(name, e) })
}

func compile(in params) (*query, error) {
	q := &query{}
	if in.Matches {
		q.lines, q.context = in.MaxMatches, in.Lines
	}
	if in.EntryType != "any" {
		q.add(costName, func(s *subject) (bool, error) { return s.kind() == in.EntryType, nil })
	}
	for i, c := range in.Criteria {
		if err := c.join(q); err != nil {
			_, message := fault.Of(err)
			return nil, fault.New(fault.InvalidParameter, "find: match_criteria[%d]%s", i, message)
		}
	}
	slices.SortStableFunc(q.checks, func(a, b check) int { return a.cost - b.cost })
	return q, nil
}

func (q *query) add(cost int, ok func(*subject) (bool, error)) {
	q.checks = append(q.checks, check{cost, ok})
}

// wrong is an error about a parameter of a criterion; compile puts its index in
// front.
func wrong(parameter, format string, args ...any) error {
	return fault.New(fault.InvalidParameter, ".%s %s", parameter, fmt.Sprintf(format, args...))
}

// takes lists the parameters of each type.
var takes = map[string][]string{
	"name_pattern":    {"pattern"},
	"content_pattern": {"pattern", "is_regex", "case_sensitive", "file_types_to_search"},
	"metadata_filter": {"attribute", "operator", "value", "case_sensitive"},
}

// join adds what c asks for to q.
func (c criterion) join(q *query) error {
	valid := takes[c.Type]
	for _, p := range []struct {
		name string
		set  bool
	}{
		{"pattern", c.Pattern != ""}, {"is_regex", c.Regex}, {"case_sensitive", c.Case}, {"file_types_to_search", len(c.FileTypes) > 0},
		{"attribute", c.Attribute != ""}, {"operator", c.Operator != ""}, {"value", c.Value != nil && c.Value != ""},
	} {
		if p.set && !slices.Contains(valid, p.name) {
			return wrong(p.name, "is not a parameter of type %s; leave it out (valid: %s)", c.Type, strings.Join(valid, ", "))
		}
	}
	if len(c.Pattern) > search.MaxPattern {
		return wrong("pattern", "has %d bytes; at most %d are accepted", len(c.Pattern), search.MaxPattern)
	}
	if c.Type != "metadata_filter" && c.Pattern == "" {
		return wrong("pattern", "is required for type %s: a string that is not empty", c.Type)
	}
	switch c.Type {
	case "name_pattern":
		return c.joinName(q)
	case "content_pattern":
		return c.joinContent(q)
	}
	return c.joinFilter(q)
}

// maxExpansions bounds what the braces of a glob stand for.
const maxExpansions = 1000

func (c criterion) joinName(q *query) error {
	if !doublestar.ValidatePattern(c.Pattern) {
		return wrong("pattern", "is not a valid glob: check its brackets, braces and backslashes")
	}
	if expansions(c.Pattern) > maxExpansions {
		return wrong("pattern", "has braces that stand for more than %d patterns; use fewer alternatives, or several calls", maxExpansions)
	}
	whole := strings.Contains(c.Pattern, "/")
	q.add(costName, func(s *subject) (bool, error) {
		name := s.Name
		if whole {
			name = s.rel()
		}
		return doublestar.MatchUnvalidated(c.Pattern, name), nil
	})
	return nil
}

// expansions counts the patterns that the braces of a valid glob stand for, at
// most a few more than maxExpansions.
func expansions(glob string) int {
	type level struct{ sum, product int }
	levels := []level{{0, 1}}
	class := false
	for i := 0; i < len(glob); i++ {
		top := &levels[len(levels)-1]
		switch c := glob[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '{':
			levels = append(levels, level{0, 1})
		case c == ',' && len(levels) > 1:
			top.sum, top.product = top.sum+top.product, 1
		case c == '}' && len(levels) > 1:
			n := top.sum + top.product
			levels = levels[:len(levels)-1]
			below := &levels[len(levels)-1]
			below.product = min(below.product*n, maxExpansions+1)
		}
	}
	return levels[0].product
}

func (c criterion) joinContent(q *query) error {
	with := pattern{}
	for _, e := range c.FileTypes {
		if e == "" {
			return wrong("file_types_to_search", "has an empty entry; give extensions such as .md")
		}
		with.extensions = append(with.extensions, "."+strings.ToLower(strings.TrimPrefix(e, ".")))
	}
	if c.Regex {
		re, err := search.NewExpression(c.Pattern, true)
		if err != nil {
			return wrong("pattern", "is not a valid JavaScript regular expression: %v", err)
		}
		with.matcher = re
	} else {
		with.matcher = search.NewLiteral(c.Pattern, c.Case)
	}
	q.content = append(q.content, with)
	return nil
}

// An attribute is what a metadata_filter looks at.
type attribute struct {
	operators []string
	cost      int
	text      func(*subject) (string, bool) // what it is, and whether the entry has it
	time      func(*subject) (time.Time, bool)
}

var (
	stringOperators = []string{"equals", "not_equals", "contains", "starts_with", "ends_with", "matches_regex"}
	sizeOperators   = []string{"eq", "neq", "gt", "gte", "lt", "lte"}
	timeOperators   = []string{"before", "after", "on_date"}
)

var attributes = map[string]attribute{
	"name":       {operators: stringOperators, cost: costName, text: func(s *subject) (string, bool) { return s.Name, true }},
	"entry_type": {operators: stringOperators, cost: costName, text: func(s *subject) (string, bool) { return s.kind(), true }},
	"mime_type":  {operators: stringOperators, cost: costType, text: (*subject).mimeType},
	"size_bytes": {operators: sizeOperators, cost: costStat},
	"created_at_iso": {operators: timeOperators, cost: costStat, time: func(s *subject) (time.Time, bool) {
		i, ok := s.stat()
		return i.Created, ok
	}},
	"modified_at_iso": {operators: timeOperators, cost: costStat, time: func(s *subject) (time.Time, bool) {
		i, ok := s.stat()
		return i.Modified, ok
	}},
}

func (c criterion) joinFilter(q *query) error {
	a, ok := attributes[c.Attribute]
	if !ok {
		return wrong("attribute", "is required for type metadata_filter: one of name, size_bytes, created_at_iso, modified_at_iso, entry_type, mime_type")
	}
	if !slices.Contains(a.operators, c.Operator) {
		return wrong("operator", "must be one of %s for attribute %s", strings.Join(a.operators, ", "), c.Attribute)
	}
	if c.Value == nil {
		return wrong("value", "is required for type metadata_filter")
	}
	if c.Attribute == "size_bytes" {
		return c.joinSize(q)
	}
	value, ok := c.Value.(string)
	if !ok {
		return wrong("value", "must be a string for attribute %s", c.Attribute)
	}
	if len(value) > search.MaxPattern {
		return wrong("value", "has %d bytes; at most %d are accepted", len(value), search.MaxPattern)
	}
	if a.time != nil {
		return c.joinTime(q, a, value)
	}
	return c.joinText(q, a, value)
}

func (c criterion) joinSize(q *query) error {
	n, ok := c.Value.(float64)
	if !ok || n != math.Trunc(n) {
		return wrong("value", "must be an integer for attribute size_bytes: a number of bytes, such as 1024")
	}
	holds := map[string]func(size float64) bool{
		"eq": func(s float64) bool { return s == n }, "neq": func(s float64) bool { return s != n },
		"gt": func(s float64) bool { return s > n }, "gte": func(s float64) bool { return s >= n },
		"lt": func(s float64) bool { return s < n }, "lte": func(s float64) bool { return s <= n },
	}[c.Operator]
	q.add(costStat, func(s *subject) (bool, error) {
		size, ok := s.size()
		return ok && holds(float64(size)), nil
	})
	return nil
}

func (c criterion) joinTime(q *query, a attribute, value string) error {
	at, ok := parseTime(value)
	if !ok {
		return wrong("value", "is not a time in ISO 8601; write a date such as 2023-10-26, or a time such as 2023-10-26T12:00:00Z")
	}
	day := at.Format(time.DateOnly)
	holds := map[string]func(t time.Time) bool{
		"before":  func(t time.Time) bool { return t.Before(at) },
		"after":   func(t time.Time) bool { return t.After(at) },
		"on_date": func(t time.Time) bool { return t.Format(time.DateOnly) == day },
	}[c.Operator]
	q.add(a.cost, func(s *subject) (bool, error) {
		t, ok := a.time(s)
		// Results show milliseconds, so that is what a value is compared with.
		return ok && holds(t.UTC().Truncate(time.Millisecond)), nil
	})
	return nil
}

// parseTime reads the forms of ISO 8601 that people write. Without a zone a time
// is in UTC.
func parseTime(s string) (time.Time, bool) {
	s = strings.ToUpper(strings.TrimSpace(s))
	if len(s) > 10 && s[10] == ' ' {
		s = s[:10] + "T" + s[11:]
	}
	s = strings.Replace(s, ",", ".", 1)
	for _, date := range []string{"2006-01-02", "20060102"} {
		for _, clock := range []string{"T15:04:05", "T15:04", "T150405", "T15", ""} {
			for _, zone := range []string{"Z07:00", "Z0700", "Z07", ""} {
				if clock == "" && zone != "" {
					continue
				}
				if t, err := time.Parse(date+clock+zone, s); err == nil {
					return t.UTC(), true
				}
			}
		}
	}
	for _, form := range []string{"2006-01", "2006"} {
		if t, err := time.Parse(form, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

func (c criterion) joinText(q *query, a attribute, value string) error {
	if c.Operator == "matches_regex" {
		re, err := search.NewExpression(value, false)
		if err != nil {
			return wrong("value", "is not a valid JavaScript regular expression: %v", err)
		}
		q.add(a.cost, func(s *subject) (bool, error) {
			text, ok := a.text(s)
			if !ok {
				return false, s.err
			}
			return re.Match(text)
		})
		return nil
	}
	if c.Attribute == "entry_type" && strings.HasSuffix(c.Operator, "equals") && value != "file" && value != "directory" {
		return wrong("value", `must be "file" or "directory" for attribute entry_type`)
	}
	form := func(s string) string { return s }
	if !c.Case {
		form = foldCase
		value = foldCase(value)
	}
	holds := map[string]func(s string) bool{
		"equals":      func(s string) bool { return s == value },
		"not_equals":  func(s string) bool { return s != value },
		"contains":    func(s string) bool { return strings.Contains(s, value) },
		"starts_with": func(s string) bool { return strings.HasPrefix(s, value) },
		"ends_with":   func(s string) bool { return strings.HasSuffix(s, value) },
	}[c.Operator]
	q.add(a.cost, func(s *subject) (bool, error) {
		text, ok := a.text(s)
		if !ok {
			return false, s.err
		}
		return holds(form(text)), nil
	})
	return nil
}

// foldCase gives strings that differ in case alone one form.
func foldCase(s string) string {
	return strings.Map(func(r rune) rune {
		low := r
		for v := unicode.SimpleFold(r); v != r; v = unicode.SimpleFold(v) {
			low = min(low, v)
		}
		return low
	}, s)
}
