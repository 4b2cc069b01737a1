package agentcli

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxResult is what a result takes as JSON, at most.
const maxResult = 32 << 10

// eachString replaces every string in the value that v leads to; path tells
// where it stands, in JSON's names.
func eachString(v reflect.Value, path string, f func(path, s string) string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			eachString(v.Elem(), path, f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			eachString(v.Field(i), strings.TrimPrefix(path+"."+name, "."), f)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			if s := f(path, string(v.Bytes())); json.Valid([]byte(s)) {
				v.SetBytes([]byte(s))
			} else {
				v.SetZero()
			}
			return
		}
		for i := range v.Len() {
			eachString(v.Index(i), fmt.Sprintf("%s[%d]", path, i), f)
		}
	case reflect.String:
		v.SetString(f(path, v.String()))
	}
}

// clone copies r deeply.
func (r *Result) clone() *Result {
	b, err := json.Marshal(r)
	if err != nil {
		return r
	}
	c := &Result{}
	if json.Unmarshal(b, c) != nil {
		return r
	}
	return c
}

// fit returns r, shortened where it takes more than max bytes as JSON: the
// longest texts first, in the middle, and lists at their end.
func (r *Result) fit(max int) *Result {
	if size(r) <= max {
		return r
	}
	c := r.clone()
	note := func(path string) {
		if !slices.Contains(c.Truncated, path) {
			c.Truncated = append(c.Truncated, path)
		}
	}
	lists := map[string]*[]string{"git.baseline.paths": &c.Git.Baseline.Paths, "git.baseline.binaryPaths": &c.Git.Baseline.BinaryPaths,
		"git.post.paths": &c.Git.Post.Paths, "git.post.binaryPaths": &c.Git.Post.BinaryPaths, "result.paths": &c.Result.Paths, "errors": &c.Errors}
	for path, list := range lists {
		if len(*list) > 100 {
			*list = (*list)[:100]
			note(path)
		}
	}
	if len(c.PolicyWarnings) > 20 {
		c.PolicyWarnings = c.PolicyWarnings[:20]
		note("policyWarnings")
	}
	if len(c.Result.Tests) > 50 {
		c.Result.Tests = c.Result.Tests[:50]
		note("result.tests")
	}
	// A text gets at most limit bytes, which shrinks until all fits.
	for limit := max / 2; limit >= 64 && size(c) > max; limit = limit * 3 / 4 {
		eachString(reflect.ValueOf(c), "", func(path, s string) string {
			if len(s) <= limit || whole[path] || strings.HasPrefix(path, "truncated") {
				return s
			}
			note(path)
			return middleOut(s, limit)
		})
	}
	slices.Sort(c.Truncated)
	return c
}

// whole are texts that are of no use in part.
var whole = map[string]bool{"taskId": true, "auditPath": true, "executionLog.path": true, "invocation.cwd": true, "worktree.dir": true, "worktree.ref": true}

func size(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return len(b)
}

const gap = "\n… shortened …\n"

// middleOut takes the middle out of s so that at most limit bytes remain.
func middleOut(s string, limit int) string {
	keep := max(limit-len(gap), 0)
	head, tail := keep/2, len(s)-(keep-keep/2)
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + gap + s[tail:]
}
