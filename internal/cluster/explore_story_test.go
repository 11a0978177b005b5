package cluster_test

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// story is how a state is reached, as a scenario: what the planner saw after each move, and what it decided.
type story struct {
	txtar.Archive

	after string // the last move
	spec  []byte
}

// story tells how a state is reached, and what is wrong after the last moves.
func (x *exploration) story(at int32, wrong []string, last ...move) *story {
	s := &story{after: "the beginning"}
	w := x.first()
	w.story = s
	w.begun()

	var b strings.Builder

	for _, m := range append(x.moves(at), last...) {
		s.after = m.name(w)
		fmt.Fprintf(&b, "# - %s\n", s.after)
		w.make(m)
		w.decide()
	}

	s.Comment = []byte("# A counterexample: " + strings.Join(wrong, "; ") + "\n#\n" + b.String())

	return s
}

// decided adds a decision.
func (s *story) decided(w *world, have cluster.Snapshot) {
	if s == nil {
		return
	}

	if spec := plainJSON(w.want); string(spec) != string(s.spec) {
		s.spec = spec
		s.add("spec.json", spec)
		s.add("policy.json", plainJSON(w.policy))
	}

	decided := "decision"
	if w.destroys {
		decided = "teardown"
	}

	s.add("snapshot.json after "+s.after, plainJSON(have))
	s.add(decided, []byte(render(w.last)))
}

// confirmed adds the confirmation of a step.
func (s *story) confirmed(have cluster.Snapshot, op step.Step, reason string) {
	if s == nil {
		return
	}

	s.add("snapshot.json in "+s.after, plainJSON(have))
	s.add("preflight", []byte(renderPreflight(op, reason)))
}

func (s *story) add(name string, data []byte) {
	s.Files = append(s.Files, txtar.File{Name: name, Data: data})
}

func renderPreflight(op step.Step, reason string) string {
	return fmt.Sprintf("%s: %s\n", op, cmp.Or(reason, "goes on"))
}

// preflight repeats the confirmation of a step that was decided before.
func preflight(
	t *testing.T, want cluster.Spec, have cluster.Snapshot, policy cluster.Policy, decided []step.Step, text string,
) string {
	t.Helper()

	for _, op := range decided {
		if strings.HasPrefix(text, op.String()+": ") {
			return renderPreflight(op, cluster.Preflight(want, have, policy, op))
		}
	}

	t.Fatalf("no decision has the step of %q", text)

	return ""
}

// plainJSON writes a value without its zero fields.
func plainJSON(v any) []byte {
	text, err := json.MarshalIndent(plain(reflect.ValueOf(v)), "", " ")
	if err != nil {
		panic(err)
	}

	return append(text, '\n')
}

func plain(v reflect.Value) any {
	if _, is := v.Interface().(encoding.TextMarshaler); is {
		return v.Interface()
	}

	switch v.Kind() {
	case reflect.Struct:
		fields := map[string]any{}
		plainFields(v, fields)

		return fields
	case reflect.Map:
		entries := make(map[string]any, v.Len())
		for e := v.MapRange(); e.Next(); {
			entries[fmt.Sprint(e.Key())] = plain(e.Value())
		}

		return entries
	case reflect.Slice:
		values := make([]any, v.Len())
		for i := range values {
			values[i] = plain(v.Index(i))
		}

		return values
	default:
		return v.Interface()
	}
}

// plainFields adds the exported fields of a struct, and of those in it as JSON has them.
func plainFields(v reflect.Value, fields map[string]any) {
	for i := range v.NumField() {
		switch f := v.Type().Field(i); {
		case v.Field(i).IsZero() || !f.IsExported():
		case f.Anonymous:
			plainFields(v.Field(i), fields)
		default:
			fields[f.Name] = plain(v.Field(i))
		}
	}
}

func parseJSON[T any](t *testing.T, data []byte) (v T) {
	t.Helper()

	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}

	return v
}

// TestExploration_printsScenarios replays how a late state of each change is reached, from the scenario that a
// counterexample prints: the planner decides the same.
func TestExploration_printsScenarios(t *testing.T) {
	const states = 150

	for name, change := range explored {
		t.Run(name, func(t *testing.T) {
			x, found := explore(func() *world { return change(3, 1, 1) }, states)
			if found != nil {
				t.Fatalf("%s", found.Comment)
			}

			written := txtar.Parse(txtar.Format(&x.story(int32(len(x.parent)-1), nil).Archive))
			if len(written.Files) < 6 {
				t.Fatalf("a story of %d parts", len(written.Files))
			}

			runScenario(t, written)
		})
	}
}
