package content_test

import (
	"fmt"

	"github.com/plait-dev/plait/content"
)

// Printing blocks shows all of them as JSON; Text has the texts alone.
func ExampleBlocks_String() {
	blocks, err := content.Of(content.Text{Text: "A square:"}, content.ImageOf("image/png", []byte("png")))
	if err != nil {
		panic(err)
	}

	fmt.Println(blocks)
	fmt.Println(blocks.Text())
	// Output:
	// [{"type":"text","text":"A square:"},{"type":"image","source":{"media_type":"image/png","data":"cG5n"}}]
	// A square:
}
