package zipfs

import (
	"reflect"
	"strings"
	"testing"
)

// Tools have words for everything, and none of the command line.
func TestWordsOfTheTools(t *testing.T) {
	v := reflect.ValueOf(words)
	for i := range v.NumField() {
		if w := v.Field(i).String(); w == "" || strings.Contains(w, "--") || strings.HasPrefix(w, "zip ") {
			t.Errorf("%s is %q", v.Type().Field(i).Name, w)
		}
	}
}
