package main

import (
	"fmt"
	"strings"
)

// section returns what the changelog says of a version, without its heading
// (https://keepachangelog.com/en/1.1.0/).
func section(changelog, version string) (string, error) {
	var lines []string
	found := false
	for line := range strings.Lines(changelog) {
		if strings.HasPrefix(line, "## ") {
			if found {
				break
			}
			found = strings.HasPrefix(line, "## ["+version+"]")
			continue
		}
		if found {
			lines = append(lines, line)
		}
	}
	text := strings.TrimSpace(strings.Join(lines, ""))
	if text == "" {
		return "", fmt.Errorf("it says nothing of version %s: give it a section that begins with \"## [%s]\"", version, version)
	}
	return text + "\n", nil
}
