package catalogue

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
)

// maxEncoded is how many bytes a catalogue has when it is unpacked.
const maxEncoded = 4 << 20

// Encode returns the catalogue as it is stored, the same bytes for the same options.
func (c *Catalogue) Encode() ([]byte, error) {
	var b bytes.Buffer
	packed, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(packed).Encode(c); err != nil {
		return nil, err
	}
	if err := packed.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Decode reads what Encode has returned. What others have written in its place is an error.
func Decode(data []byte) (*Catalogue, error) {
	packed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("unpacking a catalogue: %w", err)
	}
	c := &Catalogue{}
	if err := json.NewDecoder(io.LimitReader(packed, maxEncoded)).Decode(c); err != nil {
		return nil, fmt.Errorf("reading a catalogue: %w", err)
	}
	return c, nil
}
