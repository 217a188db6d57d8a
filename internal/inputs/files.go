package inputs

import (
	"context"
	"strings"

	"github.com/edpm-operators/edpm-operators/apis/common"
)

// FileNames are the Secrets and ConfigMaps that have the content of files, each as
// "Secret/name" or "ConfigMap/name".
func FileNames(files []common.ConfigFile) []string {
	var names []string
	for _, f := range files {
		if kind, from := f.Source(); from != nil {
			names = append(names, kind+"/"+from.Name)
		}
	}
	return names
}

// FileSources are the names of the objects of a kind, Secret or ConfigMap, among those that have
// the content of files.
func FileSources(kind string, files []common.ConfigFile) []string {
	var names []string
	for _, full := range FileNames(files) {
		if name, ok := strings.CutPrefix(full, kind+"/"); ok {
			names = append(names, name)
		}
	}
	return names
}

// File reads the content of a file, which the caller must not change: that of a ConfigMap may
// be empty. Errors are those of SecretKey and ConfigMap.
func (r *Reader) File(ctx context.Context, namespace string, f common.ConfigFile) ([]byte, error) {
	kind, from := f.Source()
	if kind == "Secret" {
		return r.SecretKey(ctx, namespace, from.Name, from.Key)
	}
	if from == nil {
		return nil, &MissingError{Kind: "ConfigMap", Key: f.Name} // the schema allows none
	}
	data, err := r.ConfigMap(ctx, namespace, from.Name)
	if err != nil {
		return nil, err
	}
	if content, ok := data[from.Key]; ok {
		return content, nil
	}
	return nil, &MissingError{Kind: kind, Name: from.Name, Key: from.Key}
}
