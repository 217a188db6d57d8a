package proc

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Find returns the processes whose command line match accepts. It serves to
// sweep up what no record names: containerd's shims, and components whose
// starter died before writing the record.
func Find(match func(argv []string) bool) []Identity {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var found []Identity
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if argv := commandLine(dir); len(argv) == 0 || !match(argv) {
			continue
		}
		if id, err := Identify(pid); err == nil && id.Alive() {
			found = append(found, id)
		}
	}
	return found
}

// Mentions returns a matcher for commands of one of the given base names with
// an argument that holds text.
func Mentions(text string, names ...string) func(argv []string) bool {
	return func(argv []string) bool {
		for _, name := range names {
			if filepath.Base(argv[0]) == name {
				return strings.Contains(strings.Join(argv[1:], "\x00"), text)
			}
		}
		return false
	}
}

func commandLine(procDir string) []string {
	b, err := os.ReadFile(filepath.Join(procDir, "cmdline"))
	if err != nil || len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
}
