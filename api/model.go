package api

// ModelOf returns the name of the model requested by a provider, from its method Model() string, or "" if it has none.
// The response may name another one, such as a version of it. A [Client] and [With] have the model of their provider; a
// [Fallback] has none, because each request may go to another model.
func ModelOf(p Provider) string {
	if named, ok := p.(interface{ Model() string }); ok {
		return named.Model()
	}
	return ""
}

// Model returns the name of the model requested by the client's provider. See [ModelOf].
func (c *Client) Model() string { return ModelOf(c.provider) }

func (w with) Model() string { return ModelOf(w.provider) }
