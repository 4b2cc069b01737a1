package registry

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
)

func TestDirectories(t *testing.T) {
	usual, err := Directories[shelfSettings](&Env{Lookup: variables(nil)})
	if err != nil || len(usual) != 2 {
		t.Fatalf("%q, %v", usual, err)
	}
	// Another server may have its own where this one has nothing.
	env := &Env{Lookup: variables(map[string]string{"SHELF_STATE": "/s/shelf", "SHELF_DATA": "NONE", "SHELF_FILE": "/f"})}
	if got, err := Directories[shelfSettings](env); err != nil || !slices.Equal(got, append([]string{"/s/shelf"}, usual...)) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestInstructionsNameWhatIsServed(t *testing.T) {
	op := func(tool, name string) *Op {
		return New(Desc{Tool: tool, Name: name, Summary: "S.", Effect: ReadOnly},
			func(struct{}, *Env) (Func[struct{}, struct{}], error) { return nil, nil })
	}
	set, err := NewSet([]Tool{{Name: "b", Discriminator: "operation"}}, []*Op{op("a", ""), op("b", "x")})
	if err != nil {
		t.Fatal(err)
	}
	toolsets := []Toolset{
		{Instructions: []Instruction{{Text: "Always."}, {Text: "With a.", Needs: []string{"a"}}, {Text: "With a and c.", Needs: []string{"a", "c"}}}},
		{Instructions: []Instruction{{Text: "With b.x.", Needs: []string{"b.x"}}, {Text: "With b.y.", Needs: []string{"b.y"}}}},
	}
	if got := set.Instructions(toolsets); got != "Always. With a. With b.x." {
		t.Error(got)
	}
}

// Values are made once, by whoever comes first, also while another is made.
func TestShared(t *testing.T) {
	type inner struct{ n int }
	type outer struct{ *inner }
	env := &Env{Context: context.Background()}
	made := 0
	makeInner := func(*Env) (*inner, error) { made++; return &inner{made}, nil }
	makeOuter := func(env *Env) (outer, error) {
		i, err := Shared(env, makeInner)
		return outer{i}, err
	}
	failing := errors.New("not yet")
	if _, err := Shared(env, func(*Env) (*inner, error) { return nil, failing }); err != failing {
		t.Errorf("%v", err)
	}
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			o, err := Shared(env, makeOuter)
			if i, ierr := Shared(env, makeInner); err != nil || ierr != nil || i != o.inner {
				t.Errorf("%v, %v", err, ierr)
			}
		})
	}
	calls.Wait()
	if made != 1 {
		t.Errorf("made %d times", made)
	}
}
