package progress

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// first is about how long steps take on two CPUs when there is nothing yet. Any other
// takes a few seconds.
var first = map[string]time.Duration{
	"packages":              time.Minute,
	"executables":           5 * time.Minute,
	"executables of OLM":    4 * time.Minute,
	"manager":               time.Minute,
	"lab":                   8 * time.Minute,
	"image ansibleee":       2 * time.Minute,
	"image edpm-host":       2 * time.Minute,
	"image edpm-machine":    2 * time.Minute,
	"image edpm-controller": 5 * time.Minute,
	"image nova":            4 * time.Minute,
	"image glance":          2 * time.Minute,
	"image ovn":             3 * time.Minute,
	"hosts":                 time.Minute,
	"test-stories":          8 * time.Minute,
	"test-pure":             4 * time.Minute,
	"test-served":           4 * time.Minute,
	"test-modules":          2 * time.Minute,
	"test-python":           2 * time.Minute,
}

// CacheDir returns the directory for what is kept from one command to the next:
// executables and images of the lab, and durations.
func CacheDir() (string, error) {
	if dir := os.Getenv("EDPM_CACHE"); dir != "" {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".cache", "edpm-operators"), err
}

// file remembers the durations of the command.
func (r *Runner) file() (string, error) {
	dir, err := CacheDir()
	return filepath.Join(dir, "durations", strings.ReplaceAll(r.title, " ", "-")+".json"), err
}

// recall returns how long steps took last, or the first time.
func (r *Runner) recall() map[string]time.Duration {
	known := maps.Clone(first)
	if file, err := r.file(); err == nil {
		if text, err := os.ReadFile(file); err == nil {
			_ = json.Unmarshal(text, &known) // if it is damaged, the first times are as good
		}
	}
	return known
}

// remember keeps how long the steps took. A step that took a tenth of what it did before
// found its result in a cache, which says nothing of the next time that it does not.
// No command fails because its durations cannot be kept.
func (r *Runner) remember(known map[string]time.Duration, tasks []*task) {
	kept := map[string]time.Duration{}
	for _, t := range tasks {
		kept[t.Name] = known[t.Name]
		if t.succeeded() && t.took >= known[t.Name]/10 {
			kept[t.Name] = t.took
		}
	}
	file, err := r.file()
	if err != nil {
		return
	}
	text, err := json.MarshalIndent(kept, "", "  ")
	if err != nil {
		return
	}
	if os.MkdirAll(filepath.Dir(file), 0o755) == nil {
		_ = os.WriteFile(file, text, 0o644)
	}
}

// left returns how long the rest takes if each step takes as long as was estimated.
func (x *run) left() time.Duration {
	ends, succeeded := map[*task]time.Duration{}, map[string]bool{}
	var waiting []*task
	for _, t := range x.tasks {
		succeeded[t.Name] = t.succeeded()
		if t.runs() { // a late one takes a little more
			ends[t] = max(t.estimate-time.Since(t.began), t.estimate/10)
		} else if !t.started {
			waiting = append(waiting, t)
		}
	}
	for now := time.Duration(0); ; {
		waiting = slices.DeleteFunc(waiting, func(t *task) bool {
			starts := x.hasRoom(len(ends)) && t.comesAfter(succeeded)
			if starts {
				ends[t] = now + t.estimate
			}
			return starts
		})
		if len(ends) == 0 {
			return now
		}
		next := slices.MinFunc(slices.Collect(maps.Keys(ends)), func(a, b *task) int { return cmp.Compare(ends[a], ends[b]) })
		now, succeeded[next.Name] = ends[next], true
		delete(ends, next)
	}
}
