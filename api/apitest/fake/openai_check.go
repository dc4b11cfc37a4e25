package fake

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/api"
)

// openAICheck is the state of a check of a request to one of OpenAI's APIs. Only the first failure counts.
type openAICheck struct {
	api        string
	compatible bool // the server is not OpenAI's, and may have members unknown to OpenAI
	err        *api.Error
}

// openAIRule checks one value. It is not called for a null if the API treats null as absent.
type openAIRule func(c *openAICheck, path string, v jsontext.Value)

// openAIMembers holds the members of an object.
type openAIMembers map[string]openAIRule

func (c *openAICheck) fail(param, code, format string, args ...any) {
	c.failAs(http.StatusBadRequest, param, code, format, args...)
}

func (c *openAICheck) failAs(status int, param, code, format string, args ...any) {
	if c.err == nil {
		c.err = refuseOpenAI(c.api, status, param, code, fmt.Sprintf(format, args...))
	}
}

func (c *openAICheck) result() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

// body returns the members of the request.
func (c *openAICheck) body(body []byte) object {
	v := jsontext.Value(body)
	if !v.IsValid() || v.Kind() != '{' {
		c.fail("", "", "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "+
			"correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON. If you have trouble figuring out "+
			"how to fix this, please contact us through our help center at help.openai.com.)")
		return nil
	}
	return withoutNulls(v)
}

// withoutNulls returns the members of an object, except null ones.
func withoutNulls(v jsontext.Value) object {
	var o object
	_ = json.Unmarshal(v, &o) // the body was valid
	maps.DeleteFunc(o, func(_ string, v jsontext.Value) bool { return v.Kind() == 'n' })
	return o
}

// object checks that v is an object with only known members and all required ones. Each member must pass its rule.
func (c *openAICheck) object(path string, v jsontext.Value, known openAIMembers, required ...string) object {
	if v.Kind() != '{' {
		c.wrong(path, "an object", v)
		return object{}
	}
	o := withoutNulls(v)
	c.members(path, o, known)
	c.required(path, v, o, required...)
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if rule := known[name]; rule != nil {
			rule(c, within(path, name), o[name])
		}
	}
	return o
}

func (c *openAICheck) members(path string, o object, known openAIMembers) {
	if c.compatible {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if _, ok := known[name]; !ok {
			c.fail(within(path, name), "unknown_parameter", "Unknown parameter: '%s'.", within(path, name))
		}
	}
}

func (c *openAICheck) required(path string, v jsontext.Value, o object, names ...string) {
	// A null has another error text than a missing member. The members in o are without nulls, so look into v.
	var all object
	for _, name := range names {
		if _, ok := o[name]; ok {
			continue
		}
		if all == nil {
			_ = json.Unmarshal(v, &all)
		}

		at := within(path, name)
		if null, ok := all[name]; ok {
			c.wrong(at, "a string", null)
		} else {
			c.fail(at, "missing_required_parameter", "Missing required parameter: '%s'.", at)
		}
	}
}

func within(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// wrong fails the check for a value of the wrong type.
func (c *openAICheck) wrong(path, want string, v jsontext.Value) {
	got := map[jsontext.Kind]string{'"': "a string", '{': "an object", '[': "an array", 't': "a boolean",
		'f': "a boolean", 'n': "null"}[v.Kind()]
	if v.Kind() == '0' {
		got = "an integer"
		if strings.ContainsAny(string(v), ".eE") {
			got = "a decimal number"
		}
	}
	c.fail(path, "invalid_type", "Invalid type for '%s': expected %s, but got %s instead.", path, want, got)
}

// list returns the items of an array. Parameter what names them in the error text.
func (c *openAICheck) list(path, what string, v jsontext.Value) []jsontext.Value {
	if v.Kind() != '[' {
		c.wrong(path, "an array of "+what, v)
		return nil
	}
	var list []jsontext.Value
	_ = json.Unmarshal(v, &list) // the body was valid
	return list
}

// atMost checks the length of a list.
func (c *openAICheck) atMost(path string, n, limit int) {
	if n > limit {
		c.fail(path, "array_above_max_length",
			"Invalid '%s': array too long. Expected an array with maximum length %d, but got an array "+
				"with length %d instead.", path, limit, n)
	}
}

func (c *openAICheck) notEmpty(path string, n int) {
	if n == 0 {
		c.fail(path, "empty_array",
			"Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", path)
	}
}

// choice checks that a word is a known one.
func (c *openAICheck) choice(path, word string, known ...string) bool {
	if slices.Contains(known, word) {
		return true
	}
	c.fail(path, "invalid_value", "Invalid value: '%s'. Supported values are: %s.", word, enumerated(known, "and"))
	return false
}

// enumerated lists words as in a sentence: 'a', 'b', and 'c'.
func enumerated(words []string, conjunction string) string {
	var b strings.Builder
	for i, word := range words {
		switch {
		case i > 0 && len(words) == 2:
			b.WriteString(" " + conjunction + " ")
		case i > 0 && i == len(words)-1:
			b.WriteString(", " + conjunction + " ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString("'" + word + "'")
	}
	return b.String()
}

// The rules shared by many members.

func aString(c *openAICheck, path string, v jsontext.Value) {
	if v.Kind() != '"' {
		c.wrong(path, "a string", v)
	}
}

func aBool(c *openAICheck, path string, v jsontext.Value) {
	if v.Kind() != 't' && v.Kind() != 'f' {
		c.wrong(path, "a boolean", v)
	}
}

// ofLength accepts a string of low to high characters.
func ofLength(low, high int) openAIRule {
	return func(c *openAICheck, path string, v jsontext.Value) {
		aString(c, path, v)
		s := text(v)
		switch n := len([]rune(s)); {
		case n == 0 && low > 0:
			c.fail(path, "empty_string",
				"Invalid '%s': empty string. Expected a string with minimum length %d, but got an empty string "+
					"instead.", path, low)
		case n > high:
			c.fail(path, "string_above_max_length",
				"Invalid '%s': string too long. Expected a string with maximum length %d, but got a "+
					"string with length %d instead.", path, high, n)
		}
	}
}

// matching accepts a string of 1 to high characters if it matches a pattern.
func matching(pattern string, high int) openAIRule {
	re, length := regexp.MustCompile(pattern), ofLength(1, high)
	return func(c *openAICheck, path string, v jsontext.Value) {
		length(c, path, v)
		if !re.MatchString(text(v)) {
			c.fail(path, "invalid_value",
				"Invalid '%s': string does not match pattern. Expected a string that matches the pattern '%s'.", path,
				pattern)
		}
	}
}

// aDecimal accepts a number from low to high.
func aDecimal(low, high float64) openAIRule {
	return func(c *openAICheck, path string, v jsontext.Value) {
		if v.Kind() != '0' {
			c.wrong(path, "a decimal", v)
			return
		}
		c.between(path, "decimal", v, low, high)
	}
}

// anInteger accepts a whole number from low to high.
func anInteger(low, high float64) openAIRule {
	return func(c *openAICheck, path string, v jsontext.Value) {
		if v.Kind() != '0' || strings.ContainsAny(string(v), ".eE") {
			c.wrong(path, "an integer", v)
			return
		}
		c.between(path, "integer", v, low, high)
	}
}

func (c *openAICheck) between(path, kind string, v jsontext.Value, low, high float64) {
	n, _ := strconv.ParseFloat(string(v), 64) // infinite if it is out of range
	if n < low {
		c.fail(path, kind+"_below_min_value",
			"Invalid '%s': %s below minimum value. Expected a value >= %v, but got %s instead.", path, kind, low, v)
	}
	if n > high {
		c.fail(path, kind+"_above_max_value",
			"Invalid '%s': %s above maximum value. Expected a value <= %v, but got %s instead.", path, kind, high, v)
	}
}

// oneOf accepts one of the known words.
func oneOf(known ...string) openAIRule {
	return func(c *openAICheck, path string, v jsontext.Value) {
		if v.Kind() != '"' {
			c.wrong(path, "one of "+enumerated(known, "or"), v)
			return
		}
		c.choice(path, text(v), known...)
	}
}

// shaped accepts an object with the known members.
func shaped(known openAIMembers, required ...string) openAIRule {
	return func(c *openAICheck, path string, v jsontext.Value) { c.object(path, v, known, required...) }
}

// listOf accepts a list if all its items pass the rule. Parameter what names them in error texts.
func listOf(what string, rule openAIRule) openAIRule {
	return func(c *openAICheck, path string, v jsontext.Value) {
		for i, item := range c.list(path, what, v) {
			rule(c, fmt.Sprintf("%s[%d]", path, i), item)
		}
	}
}

// openAIMetadata accepts at most 16 short strings.
func openAIMetadata(c *openAICheck, path string, v jsontext.Value) {
	if v.Kind() != '{' {
		c.wrong(path, "a metadata object", v)
		return
	}

	var o object
	_ = json.Unmarshal(v, &o) // the body was valid

	if len(o) > 16 {
		c.fail(path, "object_above_max_properties",
			"Invalid '%s': too many properties. Expected an object with at most 16 properties, but "+
				"got an object with %d properties instead.", path, len(o))
	}

	for _, name := range slices.Sorted(maps.Keys(o)) {
		if runes := []rune(name); len(runes) > 64 {
			c.fail(within(path, name), "property_name_above_max_length",
				"Invalid property name in '%s': '%s...%s' is too long. Expected a "+
					"string with maximum length 64, but got a string with length %d instead.", path, string(runes[:3]),
				string(runes[len(runes)-3:]), len(runes))
		}
		ofLength(0, 512)(c, within(path, name), o[name])
	}
}

var (
	openAIToolName = matching(`^[a-zA-Z0-9_-]+$`, 64)
	openAITiers    = oneOf("auto", "default", "fast", "flex", "priority")
	openAIEfforts  = oneOf("none", "minimal", "low", "medium", "high", "xhigh", "max")
	openAIPinned   = oneOf("in_memory", "24h")
	openAIPoint    = shaped(openAIMembers{"mode": oneOf("explicit"), "ttl": aString}, "mode")
	openAICaching  = shaped(openAIMembers{"mode": oneOf("implicit", "explicit"), "ttl": aString})
)

const openAIDataURL = "Expected a base64-encoded data URL with a%s MIME type (e.g. '%s'), but got %s."

// dataURL decodes a data URL. The error texts are the API's, for the expected content: an image or a file.
func (c *openAICheck) dataURL(path, at, article, example, url string) (mediaType string, data []byte) {
	rest, ok := strings.CutPrefix(url, "data:")
	bad := func(got string) { c.fail(path, "invalid_value", at+" "+openAIDataURL, article, example, got) }
	if !ok {
		bad("a value without the 'data:' prefix")
		return "", nil
	}

	mediaType, encoded, ok := strings.Cut(rest, ";base64,")
	if !ok {
		bad("a value without the ';base64,' separator")
		return "", nil
	}

	// Go's decoder skips line breaks, so they are looked for apart.
	data, err := base64.StdEncoding.Strict().DecodeString(encoded)
	switch {
	case err != nil || strings.ContainsAny(encoded, "\r\n"):
		bad("an invalid base64-encoded value")
	case len(data) == 0:
		bad("empty base64-encoded bytes")
	}
	return mediaType, data
}

var openAIImages = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// image checks the source of an image: a URL or a data URL.
func (c *openAICheck) image(path, url string) {
	// The API loads a linked image; the fake does not.
	if strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") {
		return
	}
	if !strings.HasPrefix(url, "data:") {
		c.fail(path, "invalid_value",
			"Invalid '%s'. Expected a valid URL, but got a value with an invalid format.", path)
		return
	}

	mediaType, data := c.dataURL(path, "Invalid '"+path+"'.", "n image",
		"data:image/png;base64,aW1nIGJ5dGVzIGhlcmU=", url)
	if !strings.HasPrefix(mediaType, "image/") {
		c.fail(path, "invalid_value", "Invalid '%s'. "+openAIDataURL, path, "n image", "data:image/png;base64,aW1nIGJ5dGVzIGhlcmU=",
			"unsupported MIME type '"+mediaType+"'")
	}

	// The bytes decide: they may be an image of another type than the declared one.
	if !slices.Contains(openAIImages, http.DetectContentType(data)) {
		c.fail("", "invalid_image_format",
			"You uploaded an unsupported image. Please make sure your image has of one the following formats: "+
				"['png', 'jpeg', 'gif', 'webp'].")
	}
}

// file checks the bytes of a file.
func (c *openAICheck) file(path, url string) {
	const example = "data:text/plain;base64,SGVsbG8sIFdvcmxkIQ=="
	at := "Invalid file data: '" + path + "'."
	mediaType, _ := c.dataURL(path, at, " valid file", example, url)
	family, _, _ := strings.Cut(mediaType, "/")
	if slices.Contains([]string{"audio", "video", "image"}, family) {
		c.fail(path, "invalid_value",
			at+" "+openAIDataURL+" Please see https://platform.openai.com/docs/assistants/tools/file-search#supported-files "+
				"for supported file types.", " valid file", example, "unsupported MIME type '"+mediaType+"'")
	}
}

// base64 checks bytes in base64.
func (c *openAICheck) base64(path, data string) {
	b, err := base64.StdEncoding.Strict().DecodeString(data)
	if err != nil || len(b) == 0 || strings.ContainsAny(data, "\r\n") {
		c.fail(path, "invalid_value", "Invalid '%s'. Expected a base64-encoded value.", path)
	}
}
