package schema

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// The values of "$schema" for the supported versions. A schema without one follows the newest.
var (
	draft7    = []string{"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema#"}
	draft2020 = []string{"", "https://json-schema.org/draft/2020-12/schema"}
)

// Limits on a schema, so that reading and indexing it costs little.
const (
	maxText     = 1 << 20   // bytes of its text
	maxDepth    = 200       // nested objects and lists in its text
	maxPaths    = 16 << 20  // bytes of the JSON pointers of all subschemas
	maxProgram  = 1_000_000 // instructions of all its regular expressions
	maxExpanded = 10_000    // schemas for one value
)

// index holds what a check needs beside the schema itself: the targets of its references and its regular expressions.
type index struct {
	draft7 bool // the rules of draft 7 apply: a $ref stands alone, a list of items is a tuple
	facts  map[*jsonschema.Schema]*facts

	// The fields below are used only while the index is made.
	root    *jsonschema.Schema
	at      map[string]*jsonschema.Schema // the schemas by their JSON pointers from the root
	path    map[*jsonschema.Schema]string // the reverse of at
	inside  bool                          // a schema inside the root has an $id: it is a document of its own
	anchors map[string]*jsonschema.Schema
	cost    map[*jsonschema.Schema]int  // the finished results of count
	under   map[*jsonschema.Schema]bool // the schemas being counted
	paths   int                         // bytes of all paths
	program int                         // instructions of all patterns
}

// facts are the precomputed facts about a subschema. It may have none.
type facts struct {
	ref            *jsonschema.Schema // the target of the reference
	combined       bool               // there are keywords with schemas for the same value
	required       bool               // there are keywords about the names or the number of members
	target         bool               // a reference leads here
	types          []string           // of typesOf
	pattern        *pattern
	members        []patternMember // of patternProperties
	enum, constant *values
}

// patternMember is a member of patternProperties.
type patternMember struct {
	name   *pattern
	schema *jsonschema.Schema
}

// newIndex returns the index of root. It rejects a schema with a cycle of references for the same value, and one beyond
// the limits.
func newIndex(root *jsonschema.Schema) (*index, error) {
	x := &index{
		draft7: slices.Contains(draft7, root.Schema),
		facts:  map[*jsonschema.Schema]*facts{},

		root:    root,
		at:      map[string]*jsonschema.Schema{},
		path:    map[*jsonschema.Schema]string{},
		anchors: map[string]*jsonschema.Schema{},
		cost:    map[*jsonschema.Schema]int{},
		under:   map[*jsonschema.Schema]bool{},
	}
	if err := x.collect(root, ""); err != nil {
		return nil, err
	}

	// The library finds the other errors of a schema. It is asked now, because collect has checked the limits.
	if _, err := root.Resolve(nil); err != nil {
		return nil, err
	}

	// In a fixed order: the same schema always has the same error.
	paths := slices.Sorted(maps.Keys(x.at))
	for _, path := range paths {
		s := x.at[path]
		if s.Ref == "" {
			continue
		}
		if err := x.link(s); err != nil {
			return nil, fmt.Errorf("its schema: #%s: %w", path, err)
		}
	}
	for _, path := range paths {
		n, err := x.count(x.at[path])
		if err == nil && n > maxExpanded {
			err = fmt.Errorf("its schema: #%s applies more than %d schemas to one value", path, maxExpanded)
		}
		if err != nil {
			return nil, err
		}
	}
	return &index{draft7: x.draft7, facts: x.facts}, nil
}

// of returns the facts about s, to be filled in.
func (x *index) of(s *jsonschema.Schema) *facts {
	f := x.facts[s]
	if f == nil {
		f = new(facts)
		x.facts[s] = f
	}
	return f
}

// collect adds s, with its JSON pointer path, and its subschemas.
func (x *index) collect(s *jsonschema.Schema, path string) error {
	if x.paths += len(path); x.paths > maxPaths {
		return errors.New("its schema: the names around its subschemas are too long")
	}
	x.at[path], x.path[s] = s, path

	err := x.name(s)
	if err == nil {
		err = x.compile(s)
	}
	if err != nil {
		return fmt.Errorf("its schema: #%s: %w", path, err)
	}

	for _, children := range []namedSchemas{inPlace(s), below(s)} {
		for name, child := range children {
			if err := x.collect(child, path+name); err != nil {
				return err
			}
		}
	}
	return nil
}

// name adds the anchors of s.
func (x *index) name(s *jsonschema.Schema) error {
	names := []string{s.Anchor, s.DynamicAnchor}
	if x.draft7 {
		names = nil
	}

	// In draft 7, a schema with a reference has no other keyword, and an $id with a fragment is an anchor.
	if x.draft7 && s.Ref == "" && strings.HasPrefix(s.ID, "#") {
		names = []string{s.ID[1:]}
	} else if s.ID != "" && s != x.root && !(x.draft7 && s.Ref != "") {
		x.inside = true
	}

	for _, name := range names {
		if name == "" {
			continue
		}
		if other := x.anchors[name]; other != nil && other != s {
			return fmt.Errorf("another schema has the anchor %q", name)
		}
		x.anchors[name] = s
	}
	return nil
}

// compile adds the regular expressions and the constants of s.
func (x *index) compile(s *jsonschema.Schema) (err error) {
	if s.Pattern != "" {
		if x.of(s).pattern, err = x.newPattern(s.Pattern); err != nil {
			return err
		}
	}
	for _, text := range slices.Sorted(maps.Keys(s.PatternProperties)) {
		name, err := x.newPattern(text)
		if err != nil {
			return err
		}
		f := x.of(s)
		f.members = append(f.members, patternMember{name, s.PatternProperties[text]})
	}

	if types := typesOf(s); types != nil {
		x.of(s).types = types
	}
	if s.AllOf != nil || s.AnyOf != nil || s.OneOf != nil || s.Not != nil || s.If != nil {
		x.of(s).combined = true
	}
	if s.Required != nil || s.DependentRequired != nil || s.DependencyStrings != nil ||
		s.MinProperties != nil || s.MaxProperties != nil {
		x.of(s).required = true
	}
	if s.Enum != nil {
		x.of(s).enum = newValues(s.Enum)
	}
	if s.Const != nil {
		x.of(s).constant = newValues([]any{*s.Const})
	}
	return nil
}

// pattern is a regular expression.
type pattern struct {
	*regexp.Regexp
	steps int64 // of a check, for each byte of the text
}

// newPattern compiles a regular expression, within maxProgram. A few bytes such as x{1000} are a large program.
func (x *index) newPattern(text string) (*pattern, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := instructions(tree)
	if x.program += size; x.program > maxProgram {
		return nil, errors.New("its regular expressions are too large")
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}

	// Matching one byte may visit every instruction. One visit takes much less time than one step.
	const visits = 64
	return &pattern{compiled, 1 + int64(size/visits)}, nil
}

// instructions returns about the number of instructions of a compiled regular expression.
func instructions(tree *syntax.Regexp) int {
	n := 1 + len(tree.Rune)
	for _, sub := range tree.Sub {
		n += instructions(sub)
	}
	if tree.Op == syntax.OpRepeat {
		n *= max(tree.Min, tree.Max, 1)
	}
	return min(n, maxProgram+1)
}

// link sets the target of the reference of s: the root, or a schema by its anchor or its JSON pointer.
func (x *index) link(s *jsonschema.Schema) error {
	if x.inside {
		return errors.New("a $ref is supported only in a schema without an $id inside")
	}
	uri, err := url.Parse(s.Ref)
	if err != nil {
		return err
	}

	fragment := uri.Fragment
	uri.Fragment, uri.RawFragment = "", ""
	var target *jsonschema.Schema
	switch address := uri.String(); {
	case address != "" && address != strings.TrimSuffix(x.root.ID, "#"):
	case fragment == "":
		target = x.root
	case strings.HasPrefix(fragment, "/"):
		target = x.at[fragment]
	default:
		target = x.anchors[fragment]
	}
	if target == nil {
		return fmt.Errorf("no schema for the reference %q", s.Ref)
	}

	x.of(s).ref, x.of(target).target = target, true
	return nil
}

// count returns the number of schemas that s applies to one value, capped at maxExpanded+1.
func (x *index) count(s *jsonschema.Schema) (int, error) {
	if n, known := x.cost[s]; known {
		return n, nil
	}
	if x.under[s] {
		return 0, fmt.Errorf("its schema: #%s refers to itself without a property or an item between", x.path[s])
	}

	// Reaching a schema again during its own count is a cycle.
	x.under[s] = true
	defer delete(x.under, s)

	var next []*jsonschema.Schema
	if f := x.facts[s]; f != nil {
		next = append(next, f.ref)
	}
	for _, child := range inPlace(s) {
		next = append(next, child)
	}

	total := 1
	for _, child := range next {
		if child == nil {
			continue
		}
		n, err := x.count(child)
		if err != nil {
			return 0, err
		}
		total = min(total+n, maxExpanded+1)
	}

	x.cost[s] = total
	return total, nil
}

// namedSchemas is a sequence of subschemas with their JSON pointers.
type namedSchemas = iter.Seq2[string, *jsonschema.Schema]

// inPlace yields the subschemas of s that apply to the same value as s, each with its JSON pointer from s.
func inPlace(s *jsonschema.Schema) namedSchemas {
	return func(yield func(string, *jsonschema.Schema) bool) {
		_ = one("/not", s.Not, yield) && one("/if", s.If, yield) &&
			one("/then", s.Then, yield) && one("/else", s.Else, yield) &&
			list("/allOf", s.AllOf, yield) && list("/anyOf", s.AnyOf, yield) && list("/oneOf", s.OneOf, yield) &&
			members("/dependentSchemas", s.DependentSchemas, yield) &&
			members("/dependencies", s.DependencySchemas, yield)
	}
}

// below yields the subschemas of s for members or elements of the value, and the definitions for references.
func below(s *jsonschema.Schema) namedSchemas {
	return func(yield func(string, *jsonschema.Schema) bool) {
		_ = members("/$defs", s.Defs, yield) && members("/definitions", s.Definitions, yield) &&
			members("/properties", s.Properties, yield) && members("/patternProperties", s.PatternProperties, yield) &&
			list("/prefixItems", s.PrefixItems, yield) && list("/items", s.ItemsArray, yield) &&
			one("/items", s.Items, yield) &&
			one("/additionalItems", s.AdditionalItems, yield) && one("/contains", s.Contains, yield) &&
			one("/unevaluatedItems", s.UnevaluatedItems, yield) && one("/propertyNames", s.PropertyNames, yield) &&
			one("/additionalProperties", s.AdditionalProperties, yield) &&
			one("/unevaluatedProperties", s.UnevaluatedProperties, yield) &&
			one("/contentSchema", s.ContentSchema, yield)
	}
}

func one(name string, s *jsonschema.Schema, yield func(string, *jsonschema.Schema) bool) bool {
	return s == nil || yield(name, s)
}

func list(name string, all []*jsonschema.Schema, yield func(string, *jsonschema.Schema) bool) bool {
	for i, s := range all {
		if !one(fmt.Sprintf("%s/%d", name, i), s, yield) {
			return false
		}
	}
	return true
}

func members(name string, all map[string]*jsonschema.Schema, yield func(string, *jsonschema.Schema) bool) bool {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, member := range slices.Sorted(maps.Keys(all)) {
		if !one(name+"/"+escape.Replace(member), all[member], yield) {
			return false
		}
	}
	return true
}
