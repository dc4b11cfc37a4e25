package roundtrip

import (
	"bytes"
	"slices"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// Details collects the facts about a response that Plait does not model, for api.Finish.Details. The zero value is
// empty.
type Details struct {
	list []jsonx.Member
	last jsonx.Raw // the last object added: the chunks of a stream repeat theirs

	usage     content.JSON // see AddUsage; the last member, whenever it is reported
	lastUsage jsonx.Raw
}

// Add adds the members of an object, except null members and the ones named in but. A later value replaces an earlier
// one of the same name. Anything but an object is ignored: a response must not fail because of it.
func (d *Details) Add(object jsonx.Raw, but ...string) {
	if len(object) == 0 || bytes.Equal(object, d.last) {
		return
	}

	members, err := jsonx.Members(content.JSON(object))
	if err != nil {
		return
	}
	d.last = object

	for _, m := range members {
		if !slices.Contains(but, m.Name) {
			d.Set(m.Name, m.Value)
		}
	}
}

// Set sets one member, unless its value is "" or null.
func (d *Details) Set(name string, value content.JSON) {
	if value == "" || value == "null" {
		return
	}
	for i := range d.list {
		if d.list[i].Name == name {
			d.list[i].Value = value
			return
		}
	}
	d.list = append(d.list, jsonx.Member{Name: name, Value: value})
}

// Get returns the value of a member, or "".
func (d *Details) Get(name string) content.JSON {
	value, _ := jsonx.Take(d.list, name)
	return value
}

// JSON returns the members as an object, or "" if there are none or if they are not valid JSON.
func (d *Details) JSON() content.JSON {
	list := Header(d.list)
	if list.Set(usageMember, d.usage); len(list) == 0 {
		return ""
	}
	if object := jsonx.Object(list); object.Valid() {
		return object
	}
	return ""
}
