package executor

import (
	"encoding"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/plait-dev/plait/content"
)

// schema is a JSON Schema, ready to check arguments.
type schema struct {
	tree     *jsonschema.Schema
	resolved *jsonschema.Resolved
}

func newSchema(tree *jsonschema.Schema) (*schema, error) {
	resolved, err := tree.Resolve(nil)
	if err != nil {
		return nil, err
	}
	return &schema{tree, resolved}, nil
}

// parseSchema reads a schema that a definition holds.
func parseSchema(text content.JSON) (*schema, error) {
	if !text.IsObject() {
		return nil, errors.New("its schema is not a JSON object")
	}
	var tree jsonschema.Schema
	if err := stdjson.Unmarshal([]byte(text), &tree); err != nil {
		return nil, fmt.Errorf("its schema: %w", err)
	}
	made, err := newSchema(&tree)
	if err != nil {
		return nil, err
	}
	return made, newPlaces(&tree).check()
}

// mostExpanded is how many schemas a schema may apply to one and the same value.
const mostExpanded = 10_000

// places knows the schemas that a schema is made of, and which of them apply to the same value.
type places struct {
	base  map[*jsonschema.Schema]*jsonschema.Schema // the nearest schema around it with an $id, else the root
	at    map[string]*jsonschema.Schema             // by JSON pointer, from the root
	path  map[*jsonschema.Schema]string             // the reverse of at
	cost  map[*jsonschema.Schema]int
	under map[*jsonschema.Schema]bool // being counted
}

func newPlaces(root *jsonschema.Schema) *places {
	p := &places{
		map[*jsonschema.Schema]*jsonschema.Schema{}, map[string]*jsonschema.Schema{}, map[*jsonschema.Schema]string{},
		map[*jsonschema.Schema]int{}, map[*jsonschema.Schema]bool{},
	}
	p.collect(root, root, "")
	return p
}

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

// check refuses a schema that comes back to itself for one and the same value, or applies too many schemas to it.
func (p *places) check() error {
	for _, path := range slices.Sorted(maps.Keys(p.at)) {
		n, err := p.count(p.at[path])
		if err == nil && n > mostExpanded {
			err = fmt.Errorf("its schema: #%s applies more than %d schemas to one value", path, mostExpanded)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// count is how many schemas s applies to one value, or a little more than mostExpanded.
func (p *places) count(s *jsonschema.Schema) (int, error) {
	if n, known := p.cost[s]; known {
		return n, nil
	}
	if p.under[s] {
		return 0, fmt.Errorf("its schema: #%s refers to itself without a property or an item between", p.path[s])
	}
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
		total = min(total+n, mostExpanded+1)
	}
	p.cost[s] = total
	return total, nil
}

// refers returns what the reference in s may mean: where several schemas come into question, all of them.
func (p *places) refers(s *jsonschema.Schema, ref string) (found []*jsonschema.Schema) {
	if ref == "" {
		return nil
	}
	uri, fragment, _ := strings.Cut(ref, "#")
	if plain, err := url.PathUnescape(fragment); err == nil {
		fragment = plain
	}
	for other, base := range p.base {
		switch {
		case uri != "" && lastSegment(base.ID) != lastSegment(uri), uri == "" && base != p.base[s] && s.DynamicRef == "":
		case fragment == "" && other == base,
			strings.HasPrefix(fragment, "/") && p.path[other] == p.path[base]+fragment,
			fragment != "" && (other.Anchor == fragment || other.DynamicAnchor == fragment):
			found = append(found, other)
		}
	}
	return found
}

func lastSegment(uri string) string {
	uri, _, _ = strings.Cut(uri, "#")
	return uri[strings.LastIndexAny(uri, "/:")+1:]
}

type namedSchemas = iter.Seq2[string, *jsonschema.Schema]

// inPlace yields the parts of s that apply to the value that s applies to, each with its JSON pointer from s.
func inPlace(s *jsonschema.Schema) namedSchemas {
	return func(yield func(string, *jsonschema.Schema) bool) {
		_ = one("/not", s.Not, yield) && one("/if", s.If, yield) && one("/then", s.Then, yield) && one("/else", s.Else, yield) &&
			list("/allOf", s.AllOf, yield) && list("/anyOf", s.AnyOf, yield) && list("/oneOf", s.OneOf, yield) &&
			members("/dependentSchemas", s.DependentSchemas, yield) && members("/dependencies", s.DependencySchemas, yield)
	}
}

// below yields the parts of s that apply to members or elements, or only where they are referred to.
func below(s *jsonschema.Schema) namedSchemas {
	return func(yield func(string, *jsonschema.Schema) bool) {
		_ = members("/$defs", s.Defs, yield) && members("/definitions", s.Definitions, yield) &&
			members("/properties", s.Properties, yield) && members("/patternProperties", s.PatternProperties, yield) &&
			list("/prefixItems", s.PrefixItems, yield) && list("/items", s.ItemsArray, yield) && one("/items", s.Items, yield) &&
			one("/additionalItems", s.AdditionalItems, yield) && one("/contains", s.Contains, yield) &&
			one("/unevaluatedItems", s.UnevaluatedItems, yield) && one("/propertyNames", s.PropertyNames, yield) &&
			one("/additionalProperties", s.AdditionalProperties, yield) &&
			one("/unevaluatedProperties", s.UnevaluatedProperties, yield) && one("/contentSchema", s.ContentSchema, yield)
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

// inferSchema makes the schema of the arguments that t describes.
func inferSchema(t reflect.Type) (made *schema, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the schema of %s: panic: %v", t, v)
		}
	}()
	own := map[reflect.Type]*jsonschema.Schema{}
	special(t, own, map[reflect.Type]bool{})
	tree, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: own})
	if err != nil {
		return nil, err
	}
	if err := decodable(t, map[reflect.Type]bool{}); err != nil {
		return nil, err
	}
	if err := refine(t, tree); err != nil {
		return nil, err
	}
	if t.Kind() == reflect.Struct && specialSchema(t) != nil {
		return nil, fmt.Errorf("its arguments are %s, which has an UnmarshalJSON, UnmarshalText or Enum method of its own", t)
	}
	if tree.Type != "object" {
		return nil, fmt.Errorf("its arguments are %s: take a struct", t)
	}
	return newSchema(tree)
}

// JSON returns the schema as it is declared.
func (s *schema) JSON() (content.JSON, error) {
	text, err := s.tree.MarshalJSON()
	if len(s.tree.Properties) == 0 && s.tree.AdditionalProperties != nil && s.tree.AdditionalProperties.Not != nil {
		return `{"type":"object","properties":{},"additionalProperties":false}`, err // some APIs want to see properties
	}
	return content.JSON(text), err
}

// decodable refuses what no arguments can ever be decoded into.
func decodable(t reflect.Type, seen map[reflect.Type]bool) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if seen[t] || specialSchema(t) != nil {
		return nil
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Errorf("no argument can be decoded into %s, an interface with methods", t)
		}
	case reflect.Slice, reflect.Array, reflect.Map:
		return decodable(t.Elem(), seen)
	case reflect.Struct:
		return decodableFields(t, seen)
	}
	return nil
}

func decodableFields(t reflect.Type, seen map[reflect.Type]bool) error {
	names := map[string]string{}
	for i := range t.NumField() {
		field := t.Field(i)
		tag := field.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" || !field.IsExported() && !field.Anonymous {
			continue
		}
		if name == "" && !field.Anonymous {
			name = field.Name
		}
		err := decodable(field.Type, seen)
		switch {
		case err != nil:
		case tag == "-,":
			err = errors.New("its tag json:\"-,\" is not supported")
		case slices.Contains(strings.Split(options, ","), "string"):
			err = errors.New("its tag option string is not supported")
		case field.Anonymous && !field.IsExported() && field.Type.Kind() == reflect.Pointer:
			err = errors.New("a pointer to an unexported struct cannot be embedded")
		case name != "" && names[name] != "":
			err = fmt.Errorf("field %s has the JSON name %q as well", names[name], name)
		}
		if err != nil {
			return fmt.Errorf("field %s of %s: %w", field.Name, t, err)
		}
		names[name] = field.Name
	}
	return nil
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
)

type enumerated interface{ Enum() []any }

// special collects the types below t whose JSON does not follow from their kind.
func special(t reflect.Type, own map[reflect.Type]*jsonschema.Schema, seen map[reflect.Type]bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if seen[t] {
		return
	}
	seen[t] = true
	if s := specialSchema(t); s != nil {
		own[t] = s
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			special(t.Field(i).Type, own, seen)
		}
	case reflect.Slice, reflect.Array, reflect.Map:
		special(t.Elem(), own, seen)
	}
}

func specialSchema(t reflect.Type) *jsonschema.Schema {
	switch {
	case t == timeType:
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case t == durationType:
		return &jsonschema.Schema{Type: "string", Description: `a duration, such as "90s" or "1h30m"`}
	case t.Kind() == reflect.Interface:
		return nil
	case decodes[enumerated](t):
		values, kind := plain(reflect.New(t).Interface().(enumerated).Enum())
		return &jsonschema.Schema{Type: kind, Enum: values}
	case decodes[stdjson.Unmarshaler](t):
		return &jsonschema.Schema{}
	case decodes[encoding.TextUnmarshaler](t):
		return &jsonschema.Schema{Type: "string"}
	case (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && t.Elem().Kind() == reflect.Uint8:
		return &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}
	}
	return nil
}

func decodes[T any](t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[T]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[T]())
}

// plain turns enum values into what they are once decoded from JSON, and says their common type.
func plain(values []any) ([]any, string) {
	list, kind := make([]any, len(values)), ""
	for i, v := range values {
		j, _ := content.ToJSON(v) // what has no JSON is null, which no argument equals
		_ = j.Decode(&list[i])
		kind = typeOf(list[i])
	}
	return list, kind
}

// refine adds to an inferred schema what the library does not: pointers that are optional, enum tags, and no null where an
// absent member says the same.
func refine(t reflect.Type, s *jsonschema.Schema) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	switch {
	case t.Kind() == reflect.Struct && s.Type == "object":
		return refineFields(t, s)
	case s.Items != nil:
		return refine(t.Elem(), s.Items)
	case t.Kind() == reflect.Map && s.AdditionalProperties != nil:
		return refine(t.Elem(), s.AdditionalProperties)
	}
	return nil
}

func refineFields(t reflect.Type, s *jsonschema.Schema) error {
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name != "":
			return fmt.Errorf("the embedded field %s has the JSON name %q: give it a field name as well", field.Name, name)
		case field.Anonymous || !field.IsExported() || name == "-":
			continue
		case name == "":
			name = field.Name
		}
		property := s.Properties[name]
		if property == nil {
			continue
		}
		if field.Type.Kind() == reflect.Pointer {
			s.Required = slices.DeleteFunc(s.Required, func(r string) bool { return r == name })
		}
		if err := refine(field.Type, property); err != nil {
			return err
		}
		if tag := field.Tag.Get("enum"); tag != "" {
			if err := limitTo(property, strings.Split(tag, ",")); err != nil {
				return fmt.Errorf("the enum of field %s: %w", field.Name, err)
			}
		}
	}
	return nil
}

// limitTo lets s, or its elements, be one of the words only.
func limitTo(s *jsonschema.Schema, words []string) error {
	switch {
	case s.Items != nil:
		return limitTo(s.Items, words)
	case s.Type == "object" && s.AdditionalProperties != nil:
		return limitTo(s.AdditionalProperties, words)
	}
	for _, word := range words {
		word = strings.TrimSpace(word)
		var value any = word
		if s.Type != "string" {
			value = nil
			if err := content.JSON(word).Decode(&value); err != nil || !fits(s.Type, value) {
				return fmt.Errorf("%q is no %s", word, s.Type)
			}
		}
		s.Enum = append(s.Enum, value)
	}
	return nil
}

// argumentError says why a call's arguments were refused, in words for the model.
type argumentError struct {
	tool     string
	problems []string
	input    content.JSON
}

// What an argumentError shows at most.
const (
	mostProblems = 20
	mostInput    = 1000
)

func (e *argumentError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Validation failed for tool %q:\n", e.tool)
	for i, problem := range e.problems {
		if i == mostProblems {
			fmt.Fprintf(&b, "  - and %d more\n", len(e.problems)-i)
			break
		}
		b.WriteString("  - " + excerpt(problem, mostInput) + "\n")
	}
	b.WriteString("\nReceived arguments:\n" + excerpt(string(e.input), mostInput))
	return b.String()
}

// excerpt is text, cut to at most limit bytes between two characters.
func excerpt(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	cut := text[:limit]
	for len(cut) > 0 && text[len(cut)]&0xC0 == 0x80 {
		cut = cut[:len(cut)-1]
	}
	return fmt.Sprintf("%s… (%d bytes)", cut, len(text))
}

// verify checks arguments. With nulls, a member that is null and not required counts as absent.
func (s *schema) verify(tool string, input content.JSON, nulls bool) error {
	var value any
	if err := input.Decode(&value); err != nil {
		return &argumentError{tool, []string{"root: " + err.Error()}, input}
	}
	if nulls {
		dropNulls(s.tree, value)
	}
	err := s.resolved.Validate(value)
	if err == nil {
		return nil
	}
	problems := explain(s.tree, "", value)
	if len(problems) == 0 {
		problems = []string{"root: " + strings.TrimPrefix(err.Error(), "validating root: ")}
	}
	return &argumentError{tool, problems, input}
}

func dropNulls(s *jsonschema.Schema, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			property := s.Properties[name]
			switch {
			case property == nil && s.AdditionalProperties != nil:
				dropNulls(s.AdditionalProperties, member)
			case property == nil:
			case member == nil && property.Type != "" && !slices.Contains(s.Required, name):
				delete(value, name)
			default:
				dropNulls(property, member)
			}
		}
	case []any:
		for _, element := range value {
			if s.Items != nil {
				dropNulls(s.Items, element)
			}
		}
	}
}

// explain lists what is wrong with value, path by path, in an order that does not change. It knows the keywords that inferred
// schemas use; what it does not find, the library's own error tells.
func explain(s *jsonschema.Schema, path string, value any) []string {
	if s.Type != "" && !fits(s.Type, value) {
		return problem(path, "must be %s, is %s", s.Type, typeOf(value))
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(e any) bool { return jsonschema.Equal(e, value) }) {
		return problem(path, "must be one of %s", words(s.Enum))
	}
	switch value := value.(type) {
	case map[string]any:
		return explainObject(s, path, value)
	case []any:
		return explainArray(s, path, value)
	case float64:
		switch {
		case s.Minimum != nil && value < *s.Minimum:
			return problem(path, "must be at least %v", *s.Minimum)
		case s.Maximum != nil && value > *s.Maximum:
			return problem(path, "must be at most %v", *s.Maximum)
		}
	}
	return nil
}

func explainObject(s *jsonschema.Schema, path string, value map[string]any) (problems []string) {
	for _, name := range s.Required {
		if _, has := value[name]; !has {
			problems = append(problems, problem(join(path, name), "is required")...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(value)) {
		switch below := s.Properties[name]; {
		case below != nil:
			problems = append(problems, explain(below, join(path, name), value[name])...)
		case s.AdditionalProperties == nil:
		case s.AdditionalProperties.Not != nil:
			problems = append(problems, problem(join(path, name), "is not an argument of this tool")...)
		default:
			problems = append(problems, explain(s.AdditionalProperties, join(path, name), value[name])...)
		}
	}
	return problems
}

func explainArray(s *jsonschema.Schema, path string, value []any) (problems []string) {
	switch {
	case s.MinItems != nil && len(value) < *s.MinItems:
		return problem(path, "must have at least %d items", *s.MinItems)
	case s.MaxItems != nil && len(value) > *s.MaxItems:
		return problem(path, "must have at most %d items", *s.MaxItems)
	case s.Items == nil:
		return nil
	}
	for i, element := range value {
		problems = append(problems, explain(s.Items, fmt.Sprintf("%s[%d]", path, i), element)...)
	}
	return problems
}

func problem(path, format string, args ...any) []string {
	if path == "" {
		path = "root"
	}
	return []string{excerpt(path, 200) + ": " + fmt.Sprintf(format, args...)}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func words(values []any) string {
	j, _ := content.ToJSON(values) // they were decoded from JSON, or are strings
	return strings.Trim(strings.ReplaceAll(string(j), ",", ", "), "[]")
}

// typeOf is the JSON Schema type of a decoded value.
func typeOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

func fits(kind string, value any) bool {
	is := typeOf(value)
	return is == kind || kind == "number" && is == "integer"
}
