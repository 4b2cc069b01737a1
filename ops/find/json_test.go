package find

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/entry"
	"github.com/conduit-mcp/conduit-mcp/internal/search"
)

func TestWriteJSONIsThatOfTheEncoder(t *testing.T) {
	info := entry.Info{Name: "a<b>.txt", Path: "/d/a<b>.txt", Type: "file", Size: 3, MIMEType: "text/plain", Created: "c", Modified: "m", Octal: "0644", Permissions: "rw-r--r--"}
	for _, list := range []results{
		{},
		{{Info: info, rel: "a"}},
		{
			{Info: info, Matches: []search.Line{{Line: 1, Column: 2, Text: "a \"quoted\" <text>\u2028 & é"}}},
			{Info: entry.Info{Name: "d", Path: "/d", Type: "directory", Size: entry.Untold}},
			{Info: info, Matches: []search.Line{
				{Line: 7, Column: 1, Text: "", Before: []string{"one", "two\\"}, After: []string{"\x01"}},
				{Line: 9, Column: 30, Text: "x", Before: []string{}, After: []string{"y", "z"}},
			}},
		},
	} {
		var want, got bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(list); err != nil {
			t.Fatal(err)
		}
		if err := list.WriteJSON(&got); err != nil || got.String()+"\n" != want.String() {
			t.Errorf("%v\n%s\nwant\n%s", err, &got, &want)
		}
	}
}
