package options

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/edpm-operators/edpm-operators/internal/catalogue"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
	"github.com/edpm-operators/edpm-operators/internal/podified"
)

// maxDecoded is how many catalogues are held in memory, some 500 KiB each.
const maxDecoded = 32

// Finder finds the options of images. Without a reader it finds none.
type Finder struct {
	reader  *inputs.Reader
	decoded *lru.Cache
}

// decoded is a catalogue, and what it was read from.
type decoded struct {
	data  []byte
	known *catalogue.Catalogue
}

// NewFinder returns a Finder that reads ConfigMaps through the reader.
func NewFinder(reader *inputs.Reader) *Finder { return &Finder{reader, lru.New(maxDecoded)} }

// Find returns the options of an image that are known in a namespace, nil if they are not.
func (f *Finder) Find(ctx context.Context, namespace, image string) (*catalogue.Catalogue, error) {
	if f == nil || image == "" {
		return nil, nil
	}
	key := types.NamespacedName{Namespace: namespace, Name: Name(image)}
	data, err := f.reader.ConfigMap(ctx, key.Namespace, key.Name)
	var missing *inputs.MissingError
	switch {
	case errors.As(err, &missing), err == nil && len(data[optionsKey]) == 0:
		return nil, nil
	case err != nil:
		return nil, err
	}
	if last, found := f.decoded.Get(key); found && bytes.Equal(last.(decoded).data, data[optionsKey]) {
		return last.(decoded).known, nil
	}
	known, err := catalogue.Decode(data[optionsKey])
	if err != nil {
		return nil, nil //nolint:nilerr // another user has written it: nothing is known
	}
	f.decoded.Add(key, decoded{data[optionsKey], known})
	return known, nil
}

// maxShown is how many verdicts a message has.
const maxShown = 10

// Check returns what the options of an image say of texts, which a program reads in this order: what
// it refuses, and warnings. The texts can be read: it is known that oslo.config takes them.
func Check(known *catalogue.Catalogue, parts []podified.Part) (refused, warnings []string) {
	var texts []catalogue.Part
	var at []string
	for _, part := range parts {
		if config, err := oslo.Parse(part.Text); err == nil {
			texts, at = append(texts, catalogue.Part{Config: config, Secret: part.Secret}), append(at, part.At)
		}
	}
	for i, verdicts := range known.CheckParts(texts...) {
		for _, v := range verdicts {
			line := fmt.Sprintf("%s: %s", at[i], v)
			if v.Refused {
				refused = append(refused, line)
			} else {
				warnings = append(warnings, line)
			}
		}
	}
	return refused, warnings
}

// Join is the text of verdicts in a message.
func Join(verdicts []string) string {
	shown := strings.Join(verdicts[:min(len(verdicts), maxShown)], "\n")
	if more := len(verdicts) - maxShown; more > 0 {
		shown += fmt.Sprintf("\nand %d more", more)
	}
	return shown
}
