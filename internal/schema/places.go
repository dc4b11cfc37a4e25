package schema

import (
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// maxExpanded is the maximum number of schemas for one value.
const maxExpanded = 10_000

// places indexes a schema and its subschemas. It finds all schemas for the same value.
type places struct {
	base  map[*jsonschema.Schema]*jsonschema.Schema // the nearest schema around each with an $id, else the root
	at    map[string]*jsonschema.Schema             // the schemas by their JSON pointers from the root
	path  map[*jsonschema.Schema]string             // the reverse of at
	cost  map[*jsonschema.Schema]int                // the finished results of count
	under map[*jsonschema.Schema]bool               // the schemas being counted
}

// newPlaces indexes root and its subschemas.
func newPlaces(root *jsonschema.Schema) *places {
	p := &places{
		map[*jsonschema.Schema]*jsonschema.Schema{}, map[string]*jsonschema.Schema{}, map[*jsonschema.Schema]string{},
		map[*jsonschema.Schema]int{}, map[*jsonschema.Schema]bool{},
	}
	p.collect(root, root, "")
	return p
}

// collect adds s, with its JSON pointer path, and its subschemas.
func (p *places) collect(s, base *jsonschema.Schema, path string) {
	if s.ID != "" {
		base = s
	}
	p.base[s], p.at[path], p.path[s] = base, s, path

	for name, child := range inPlace(s) {
		p.collect(child, base, path+name)
	}
	for name, child := range below(s) {
		p.collect(child, base, path+name)
	}
}

// check returns an error if a schema leads back to itself for the same value, or applies too many schemas to it.
func (p *places) check() error {
	// In a fixed order: the same schema always has the same error.
	for _, path := range slices.Sorted(maps.Keys(p.at)) {
		n, err := p.count(p.at[path])
		if err == nil && n > maxExpanded {
			err = fmt.Errorf("its schema: #%s applies more than %d schemas to one value", path, maxExpanded)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// count returns the number of schemas that s applies to one value, capped at maxExpanded+1.
func (p *places) count(s *jsonschema.Schema) (int, error) {
	if n, known := p.cost[s]; known {
		return n, nil
	}
	if p.under[s] {
		return 0, fmt.Errorf("its schema: #%s refers to itself without a property or an item between", p.path[s])
	}

	// Reaching a schema again during its own count is a cycle.
	p.under[s] = true
	defer delete(p.under, s)

	next := append(p.refers(s, s.Ref), p.refers(s, s.DynamicRef)...)
	for _, child := range inPlace(s) {
		next = append(next, child)
	}

	total := 1
	for _, child := range next {
		n, err := p.count(child)
		if err != nil {
			return 0, err
		}
		total = min(total+n, maxExpanded+1)
	}

	p.cost[s] = total
	return total, nil
}

// refers returns the possible targets of the reference ref in s: all candidates, if it is ambiguous.
func (p *places) refers(s *jsonschema.Schema, ref string) (found []*jsonschema.Schema) {
	if ref == "" {
		return nil
	}
	uri, fragment, _ := strings.Cut(ref, "#")
	if plain, err := url.PathUnescape(fragment); err == nil {
		fragment = plain
	}

	// Compare only the last segments of URIs: relative ones need not be resolved. A wrong match makes the count too
	// large, never too small.
	for other, base := range p.base {
		switch {
		// The reference is into another document than other.
		case uri != "" && lastSegment(base.ID) != lastSegment(uri),
			uri == "" && base != p.base[s] && s.DynamicRef == "":

		// The fragment is empty, a JSON pointer or an anchor.
		case fragment == "" && other == base,
			strings.HasPrefix(fragment, "/") && p.path[other] == p.path[base]+fragment,
			fragment != "" && (other.Anchor == fragment || other.DynamicAnchor == fragment):
			found = append(found, other)
		}
	}
	return found
}

// lastSegment returns the last path segment of a URI, without its fragment.
func lastSegment(uri string) string {
	uri, _, _ = strings.Cut(uri, "#")
	return uri[strings.LastIndexAny(uri, "/:")+1:]
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
