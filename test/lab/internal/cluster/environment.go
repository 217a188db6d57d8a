package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// FromEnvironment returns the lab that EDPM_LAB_DIR and EDPM_LAB_PORT_BASE say, by
// default the one in /var/lib/edpm-lab, running or not.
func FromEnvironment() (*Lab, error) {
	layout := Layout{Dir: envOr("EDPM_LAB_DIR", "/var/lib/edpm-lab"), PortBase: 16443}
	if s := os.Getenv("EDPM_LAB_PORT_BASE"); s != "" {
		port, err := strconv.Atoi(s)
		if err != nil {
			return nil, fmt.Errorf("reading EDPM_LAB_PORT_BASE: %w", err)
		}
		layout.PortBase = port
	}
	source, err := SourceDir()
	if err != nil {
		return nil, err
	}
	return New(layout, "", filepath.Join(source, "images")), layout.Validate()
}

// SourceDir returns test/lab of the repository that holds the working directory.
func SourceDir() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		source := filepath.Join(dir, "test", "lab")
		if _, err := os.Stat(filepath.Join(source, "binaries")); err == nil {
			return source, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not within the edpm-operators repository", wd)
		}
	}
}

func envOr(name, fallback string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return fallback
}
