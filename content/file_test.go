package content_test

import (
	"fmt"

	"github.com/plait-dev/plait/content"
)

func ExampleImageOf() {
	image := content.ImageOf("image/png", []byte("\x89PNG"))
	fmt.Println(image.Source.MediaType, image.Source.Data)
	// Output: image/png iVBORw==
}
