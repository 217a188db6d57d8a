package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// digest ends a reference that always means the same image.
var digest = regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)

// imageKeys are keys whose value is an image.
var imageKeys = []string{"image", "containerImage"}

// byTag returns the images in YAML documents that are named by tag, or left to the
// manager, which names them by tag. Schemas have no images.
func byTag(text []byte) ([]string, error) {
	var loose []string
	for documents := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var doc any
		err := documents.Decode(&doc)
		if errors.Is(err, io.EOF) {
			slices.Sort(loose)
			return slices.Compact(loose), nil
		}
		if err != nil {
			return nil, err
		}
		if object, ok := doc.(map[string]any); !ok || object["kind"] != "CustomResourceDefinition" {
			loose = append(loose, loosely(doc)...)
		}
	}
}

func loosely(value any) []string {
	var loose []string
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			loose = append(loose, loosely(item)...)
		}
	case map[string]any:
		loose = append(loose, variable(value)...)
		for key, item := range value {
			if image, ok := item.(string); ok && slices.Contains(imageKeys, key) && !digest.MatchString(image) {
				loose = append(loose, image)
			}
			loose = append(loose, loosely(item)...)
		}
	}
	return loose
}

// variable returns the image that an environment variable of the manager names.
func variable(env map[string]any) []string {
	name, _ := env["name"].(string)
	image, _ := env["value"].(string)
	switch {
	case !strings.HasPrefix(name, "RELATED_IMAGE_") || digest.MatchString(image):
		return nil
	case image == "" && strings.Contains(name, "ANSIBLE"):
		return []string{fmt.Sprintf("%s is empty: the manager runs nothing until it is set", name)}
	case image == "":
		return []string{fmt.Sprintf("%s is empty, and the manager's own choice has a tag", name)}
	}
	return []string{image}
}
