// Package anthropic speaks to Anthropic's Messages API through the official SDK.
package anthropic

import _ "github.com/anthropics/anthropic-sdk-go"
