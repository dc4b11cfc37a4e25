package content

import "encoding/base64"

// ImageOf returns an image with the given bytes. The media type is a MIME type such as "image/png". The bytes are not
// checked, but [Of] refuses an image without any.
func ImageOf(mediaType string, data []byte) Image {
	return Image{Source: Source{MediaType: mediaType, Data: base64.StdEncoding.EncodeToString(data)}}
}

// DocumentOf returns a document with the given bytes. The media type is a MIME type such as "application/pdf". The
// bytes are not checked, but [Of] refuses a document without any.
func DocumentOf(mediaType string, data []byte) Document {
	return Document{Source: Source{MediaType: mediaType, Data: base64.StdEncoding.EncodeToString(data)}}
}
