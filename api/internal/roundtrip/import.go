package roundtrip

import (
	"fmt"
	"strconv"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// NotRead returns an error for an unreadable part of an imported body. Where locates the part. The outermost caller
// sets the error's kind with ImportError.
func NotRead(where string, err error) error { return fmt.Errorf("%s cannot be read: %w", where, err) }

// ImportError returns the error for a failed import of a body.
func ImportError(name string, err error) error {
	return &api.Error{Kind: api.ErrInvalidRequest, API: name, Err: err}
}

// Imported is an object in a list of an imported body: its bytes and its members.
type Imported struct {
	Raw  content.JSON
	List []jsonx.Member
}

// ImportObjects reads a list of objects. Where is its position in the body.
func ImportObjects(where string, j content.JSON) ([]Imported, error) {
	items, err := jsonx.Items(j)
	if err != nil {
		return nil, NotRead(where, err)
	}

	objects := make([]Imported, len(items))
	for i, one := range items {
		list, err := jsonx.Members(one)
		if err != nil {
			return nil, NotRead(fmt.Sprintf("%s[%d]", where, i), err)
		}
		objects[i] = Imported{one, list}
	}
	return objects, nil
}

// ImportTools reads the definitions of tools.
func ImportTools(j content.JSON, read func(tool Imported, names ToolNames) content.Tool) ([]content.Tool, error) {
	list, err := ImportObjects("tools", j)
	if err != nil {
		return nil, err
	}

	var tools []content.Tool
	names := ToolNames{}
	for _, one := range list {
		tools = append(tools, read(one, names))
	}
	return tools, nil
}

// ToolNames names server tools after their type. The second tool of a type is named "type_2", and so on.
type ToolNames map[string]int

// Name returns the name of the next tool of a type.
func (n ToolNames) Name(kind string) string {
	n[kind]++
	if n[kind] == 1 {
		return kind
	}
	return kind + "_" + strconv.Itoa(n[kind])
}
