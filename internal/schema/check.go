package schema

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/plait-dev/plait/content"
)

// The limits on a check. The verdicts about the targets of references are remembered, so only a large schema on a large
// value reaches them.
const (
	minSteps     = 10_000_000 // of any check
	stepsByte    = 10         // further steps for each byte of the value
	stepsVerdict = 20         // for a remembered verdict: it takes memory until the check ends
	stepsLook    = 10_000     // between two looks at the context
	maxSchemas   = 50_000     // schemas inside one another, for the stack
	maxProblems  = 100
)

// checker checks one value. Its verdict is the one of jsonschema.Resolved.Validate, but for unevaluatedItems,
// unevaluatedProperties and $dynamicRef, which it does not check.
//
// Validate has no context and takes time exponential in the depth of the value if a schema refers to itself in more
// than one way. A checker remembers the verdict about each value for each schema that references lead to. All other
// schemas have one way to them, so they meet a value once.
type checker struct {
	*index
	ctx      context.Context
	left     int64 // steps
	look     int64 // the context is asked when fewer steps are left
	depth    int   // schemas inside one another now
	over     bool  // the check has ended early: verdicts mean nothing
	err      error // of the context, if over
	verdicts map[applied]bool
	unknown  string // Check.Unknown
}

// applied is a schema applied to an object or a list, which its address identifies.
type applied struct {
	schema *jsonschema.Schema
	value  uintptr
}

// Check holds the options of Problems.
type Check struct {
	// Nulls accepts null for an optional member.
	Nulls bool
	// Unknown is the text of the problem for an unknown member, such as "is not an argument of this tool".
	Unknown string
}

// Problems returns the problems of a value, each with its path, and at most 100. It returns nothing if the value is
// valid.
//
// The time for it is limited: a check has 10,000,000 steps, and 10 for each byte of j. A step is a keyword of a
// subschema for one value, for example. A value that needs more has a problem that says so. If ctx ends before, the
// error is that of ctx. A check of few steps does not look at ctx.
func (s *Schema) Problems(ctx context.Context, j content.JSON, check Check) ([]string, error) {
	var value any
	if err := j.Decode(&value); err != nil {
		return []string{"root: " + err.Error()}, nil
	}
	if check.Nulls {
		dropNulls(s.tree, value)
	}
	if !slices.Contains(draft7, s.tree.Schema) && !slices.Contains(draft2020, s.tree.Schema) {
		return []string{fmt.Sprintf("root: cannot be checked: the version %q of its schema is unknown", s.tree.Schema)}, nil
	}

	steps := minSteps + stepsByte*int64(len(j))
	c := checker{
		index: s.index, ctx: ctx, left: steps, look: steps - stepsLook,
		verdicts: map[applied]bool{}, unknown: check.Unknown,
	}
	ok := c.fits(s.tree, value, nil)
	if ok && !c.over {
		return nil, nil
	}

	// Only an invalid value needs paths and texts.
	r := &report{limit: maxProblems}
	at := &place{report: r}
	if c.err != nil {
		return nil, c.err
	}
	if c.over {
		at.fail("is too complex to check: the check needs more than %d steps", steps)
	} else {
		c.left, c.look = steps, steps-stepsLook
		c.fits(s.tree, value, at)
	}
	if len(r.problems) == 0 {
		at.fail("does not fit the schema")
	}
	return r.problems, nil
}

// spend takes steps. It reports whether the check continues.
func (c *checker) spend(steps int64) bool {
	if c.left -= steps; c.left < 0 {
		c.over = true
	}
	if c.left < c.look && !c.over {
		c.look = c.left - stepsLook
		c.ended()
	}
	return !c.over
}

// ended ends the check if the context has ended.
func (c *checker) ended() {
	if err := c.ctx.Err(); err != nil {
		c.over, c.err = true, err
	}
}

// fits reports whether value fits s. With a place it also reports the problems, at least one for a value that does not
// fit.
func (c *checker) fits(s *jsonschema.Schema, value any, at *place) bool {
	f := c.facts[s]
	if f == nil {
		f = &none
	}

	key := applied{s, 0}
	if f.target {
		key.value = address(value)
	}
	if key.value != 0 {
		fits, known := c.verdicts[key]
		switch {
		case known && (fits || at == nil):
			return fits
		case !known && at != nil && c.fits(s, value, nil):
			return true
		}
	}
	c.over = c.over || c.depth == maxSchemas
	if at != nil && at.full() || !c.spend(1) {
		return false
	}

	c.depth++
	ok := c.apply(s, f, value, at)
	c.depth--

	if key.value != 0 && at == nil && c.spend(stepsVerdict) {
		c.verdicts[key] = ok
	}
	return ok
}

// none are the facts about a schema that has none.
var none facts

// address returns the address of an object or a list, or 0 for an empty one and for any other value.
func address(value any) uintptr {
	switch v := value.(type) {
	case map[string]any:
		if len(v) > 0 {
			return reflect.ValueOf(v).Pointer()
		}
	case []any:
		if len(v) > 0 {
			return reflect.ValueOf(v).Pointer()
		}
	}
	return 0
}

// apply is fits without memory.
func (c *checker) apply(s *jsonschema.Schema, f *facts, value any, at *place) bool {
	if f.ref != nil {
		if c.draft7 { // any other keyword beside a reference has no meaning
			return c.fits(f.ref, value, at)
		}
		if !c.fits(f.ref, value, at) {
			return false
		}
	}

	if !c.plain(s, f, value, at) {
		return false
	}
	ok := true
	if f.combined {
		ok = c.combined(s, f, value, at)
		if !ok && at.full() {
			return false
		}
	}
	switch value := value.(type) {
	case []any:
		return c.array(s, value, at, ok)
	case map[string]any:
		return c.object(s, f, value, at, ok)
	}
	return ok
}

// plain checks the keywords about a value as a whole. At most one problem is reported.
func (c *checker) plain(s *jsonschema.Schema, f *facts, value any, at *place) bool {
	switch {
	case f.types != nil && !slices.Contains(f.types, TypeOf(value)):
		return at.fail("must be %s, is %s", cmp.Or(s.Type, either(s.Types)), TypeOf(value))
	case f.enum != nil && !c.among(f.enum, value):
		return at.fail("must be one of %s", words(s.Enum))
	case f.constant != nil && !c.among(f.constant, value):
		return at.fail("must be %s", words([]any{*s.Const}))
	}

	switch value := value.(type) {
	case float64:
		return number(s, value, at)
	case string:
		return c.text(s, f, value, at)
	}
	return true
}

func number(s *jsonschema.Schema, value float64, at *place) bool {
	switch {
	case s.MultipleOf != nil && !whole(value / *s.MultipleOf):
		return at.fail("must be a multiple of %v", *s.MultipleOf)
	case s.Minimum != nil && value < *s.Minimum:
		return at.fail("must be at least %v", *s.Minimum)
	case s.Maximum != nil && value > *s.Maximum:
		return at.fail("must be at most %v", *s.Maximum)
	case s.ExclusiveMinimum != nil && value <= *s.ExclusiveMinimum:
		return at.fail("must be greater than %v", *s.ExclusiveMinimum)
	case s.ExclusiveMaximum != nil && value >= *s.ExclusiveMaximum:
		return at.fail("must be less than %v", *s.ExclusiveMaximum)
	}
	return true
}

// whole reports whether v has no fraction. An infinite number has one, as in the library.
func whole(v float64) bool {
	_, fraction := math.Modf(v)
	return fraction == 0
}

func (c *checker) text(s *jsonschema.Schema, f *facts, value string, at *place) bool {
	if s.MinLength != nil || s.MaxLength != nil {
		const bytesStep = 100
		if !c.spend(int64(len(value) / bytesStep)) {
			return false
		}
		n := utf8.RuneCountInString(value)
		switch {
		case s.MinLength != nil && n < *s.MinLength:
			return at.fail("must have at least %d characters, has %d", *s.MinLength, n)
		case s.MaxLength != nil && n > *s.MaxLength:
			return at.fail("must have at most %d characters, has %d", *s.MaxLength, n)
		}
	}
	if f.pattern != nil && !c.matches(f.pattern, value) {
		return at.fail("must match the regular expression %q", s.Pattern)
	}
	return true
}

// combined checks the keywords with schemas for the same value.
func (c *checker) combined(s *jsonschema.Schema, f *facts, value any, at *place) bool {
	ok := true
	for _, each := range s.AllOf {
		if !ok && at.full() {
			return false
		}
		ok = c.fits(each, value, at) && ok
	}
	if !ok && at.full() {
		return false
	}

	ok = (s.AnyOf == nil || c.anyOf(s, value, at)) && (s.OneOf == nil || c.oneOf(s, value, at)) && ok
	if s.Not != nil && c.fits(s.Not, value, nil) && !c.over {
		if isFalse(s) {
			return at.fail("is not allowed")
		}
		return at.fail(`must not fit the schema of its "not"`)
	}
	return c.condition(s, value, at) && ok
}

func (c *checker) anyOf(s *jsonschema.Schema, value any, at *place) bool {
	for _, each := range s.AnyOf {
		if c.fits(each, value, nil) {
			return true
		}
	}
	return c.failAll(s.AnyOf, value, at)
}

func (c *checker) oneOf(s *jsonschema.Schema, value any, at *place) bool {
	found := -1
	for i, each := range s.OneOf {
		switch {
		case !c.fits(each, value, nil):
		case found >= 0:
			return at.fail("must fit one alternative, fits the alternatives %d and %d", found+1, i+1)
		default:
			found = i
		}
	}
	return found >= 0 || c.failAll(s.OneOf, value, at)
}

// failAll reports that a value fits none of the alternatives, each with its first problem.
func (c *checker) failAll(alternatives []*jsonschema.Schema, value any, at *place) bool {
	if at == nil || c.over {
		return false
	}

	// Alternatives inside alternatives are shown to a depth of 2.
	const shown, deepest = 5, 2
	text := fmt.Sprintf("fits none of %d alternatives", len(alternatives))
	if at.inner < deepest {
		reasons := make([]string, min(len(alternatives), shown))
		for i := range reasons {
			reasons[i] = c.firstProblem(alternatives[i], value, at)
		}
		text += " (" + strings.Join(reasons, " | ") + ")"
	}
	return at.fail("%s", text)
}

// firstProblem returns the first problem of the value at a place that does not fit s, with its path from the value.
func (c *checker) firstProblem(s *jsonschema.Schema, value any, at *place) string {
	r := &report{limit: 1, inner: at.inner + 1}
	c.fits(s, value, &place{report: r})
	if len(r.problems) == 0 {
		return "does not fit"
	}
	return r.problems[0]
}

// condition checks if, then and else.
func (c *checker) condition(s *jsonschema.Schema, value any, at *place) bool {
	if s.If == nil || s.Then == nil && s.Else == nil {
		return true
	}
	next := s.Else
	if c.fits(s.If, value, nil) {
		next = s.Then
	}
	return next == nil || c.fits(next, value, at)
}

// array checks the keywords about lists. ok is the verdict so far.
func (c *checker) array(s *jsonschema.Schema, value []any, at *place, ok bool) bool {
	switch {
	case s.MinItems != nil && len(value) < *s.MinItems:
		return at.fail("must have at least %d items", *s.MinItems)
	case s.MaxItems != nil && len(value) > *s.MaxItems:
		return at.fail("must have at most %d items", *s.MaxItems)
	case s.UniqueItems && !c.unique(value):
		return at.fail("must not have equal items")
	}

	// Draft 7 has the tuple in items, and the schema of the elements after it in additionalItems.
	tuple, rest := s.PrefixItems, s.Items
	if c.draft7 && s.ItemsArray != nil {
		tuple, rest = s.ItemsArray, s.AdditionalItems
	} else if c.draft7 {
		tuple = nil
	}
	for i, element := range value {
		each := rest
		if i < len(tuple) {
			each = tuple[i]
		}
		if each == nil {
			break
		}
		ok = c.fits(each, element, at.element(i)) && ok
		if !ok && at.full() {
			return false
		}
	}
	return c.contains(s, value, at) && ok
}

func (c *checker) contains(s *jsonschema.Schema, value []any, at *place) bool {
	if s.Contains == nil {
		return true
	}
	n := 0
	for _, element := range value {
		if c.fits(s.Contains, element, nil) {
			n++
		}
	}

	least := 1
	if s.MinContains != nil {
		least = *s.MinContains
	}
	switch {
	case c.over:
		return false
	case n < least:
		return at.fail(`must have at least %d items that fit its "contains", has %d`, least, n)
	case s.MaxContains != nil && n > *s.MaxContains:
		return at.fail(`must have at most %d items that fit its "contains", has %d`, *s.MaxContains, n)
	}
	return true
}

// object checks the keywords about objects. ok is the verdict so far.
func (c *checker) object(s *jsonschema.Schema, f *facts, value map[string]any, at *place, ok bool) bool {
	if f.required {
		ok = c.required(s, value, at) && ok
		if !ok && at.full() {
			return false
		}
	}

	// Most schemas inside allOf and the like are not about members.
	each := s.Properties != nil || f.members != nil || s.AdditionalProperties != nil || s.PropertyNames != nil
	if each && !c.spend(int64(len(value))) {
		return false
	}
	if each {
		for name, member := range inOrder(value, at) {
			if !c.member(s, f, name, member, at) {
				ok = false
			}
			if s.PropertyNames != nil && !c.fits(s.PropertyNames, name, nil) {
				ok = false
				if at != nil && !c.over {
					at.member(name).fail("its name is not allowed: %s", c.firstProblem(s.PropertyNames, name, at))
				}
			}
			if !ok && at.full() {
				return false
			}
		}
	}

	if s.DependentSchemas != nil || s.DependencySchemas != nil {
		ok = c.dependents(s, value, at) && ok
	}
	return ok
}

// inOrder yields the members of an object: in the order of their names for a report, which is the same each time.
func inOrder(value map[string]any, at *place) iter.Seq2[string, any] {
	if at == nil {
		return maps.All(value)
	}
	return func(yield func(string, any) bool) {
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if !yield(name, value[name]) {
				return
			}
		}
	}
}

// member checks one member by properties, patternProperties and additionalProperties.
func (c *checker) member(s *jsonschema.Schema, f *facts, name string, member any, at *place) (ok bool) {
	ok, known := true, false
	if property := s.Properties[name]; property != nil {
		ok, known = c.fits(property, member, at.member(name)), true
	}
	for _, p := range f.members {
		if (ok || at != nil) && c.matches(p.name, name) {
			ok, known = c.fits(p.schema, member, at.member(name)) && ok, true
		}
	}
	if !known && s.AdditionalProperties != nil {
		return c.failOr(s.AdditionalProperties, member, at.member(name))
	}
	return ok
}

// failOr is fits, for a schema of unknown members: if there may be none, the problem is Check.Unknown.
func (c *checker) failOr(s *jsonschema.Schema, member any, at *place) bool {
	if at != nil && isFalse(s) {
		return at.fail("%s", c.unknown)
	}
	return c.fits(s, member, at)
}

// isFalse reports whether s is the schema false, which nothing fits.
func isFalse(s *jsonschema.Schema) bool { return s.Not != nil && reflect.ValueOf(*s.Not).IsZero() }

// required checks the keywords about the names and the number of members.
func (c *checker) required(s *jsonschema.Schema, value map[string]any, at *place) bool {
	ok := c.given(s.Required, value, at, "is required")

	dependent := s.DependentRequired
	if c.draft7 {
		dependent = s.DependencyStrings
	}
	c.spend(int64(len(dependent)))
	for _, name := range slices.Sorted(maps.Keys(dependent)) {
		if _, has := value[name]; has {
			ok = c.given(dependent[name], value, at, "is required beside "+name) && ok
		}
	}

	switch {
	case s.MinProperties != nil && len(value) < *s.MinProperties:
		return at.fail("must have at least %d members, has %d", *s.MinProperties, len(value))
	case s.MaxProperties != nil && len(value) > *s.MaxProperties:
		return at.fail("must have at most %d members, has %d", *s.MaxProperties, len(value))
	}
	return ok
}

// given checks that all names are members of value.
func (c *checker) given(names []string, value map[string]any, at *place, text string) bool {
	ok := c.spend(int64(len(names)))
	for _, name := range names {
		if _, has := value[name]; !has {
			ok = at.member(name).fail("%s", text)
		}
	}
	return ok
}

// dependents checks the schemas for an object that has a certain member.
func (c *checker) dependents(s *jsonschema.Schema, value map[string]any, at *place) bool {
	dependent := s.DependentSchemas
	if c.draft7 {
		dependent = s.DependencySchemas
	}
	ok := c.spend(int64(len(dependent)))
	for _, name := range slices.Sorted(maps.Keys(dependent)) {
		if _, has := value[name]; has {
			ok = c.fits(dependent[name], value, at) && ok
		}
	}
	return ok
}
