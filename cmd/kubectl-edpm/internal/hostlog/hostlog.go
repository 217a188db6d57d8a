// Package hostlog picks out of the output of a run of Ansible what is about one
// of its hosts.
package hostlog

import (
	"bufio"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
)

// What lines of Ansible's default callback look like.
var (
	// header begins a play, a task or a part of the output.
	header = regexp.MustCompile(`^[A-Z][A-Z ]*[A-Z](?: \[.*\])? \*{3,}\s*$`)
	// play is a header below which tasks come.
	play = regexp.MustCompile(`^PLAY\b`)
	// endOfStep follows the plays of each step of a run of several.
	endOfStep = regexp.MustCompile(`^PLAY \[End of step [^\]]*\] \*{3,}\s*$`)
	// result of a host, which may have been delegated: ok: [host -> other] => ...
	result = regexp.MustCompile(`^(?:[a-z]+|FAILED - RETRYING): \[([^\]]+)\]`)
	// included files name their hosts at the end.
	included = regexp.MustCompile(`^included: .* for (.+)$`)
	// async tasks name the host after a preposition.
	async = regexp.MustCompile(`^ASYNC \w+ on ([^\s:]+):`)
	// recap at the end: host : ok=1 changed=0 ...
	recap = regexp.MustCompile(`^(\S+)\s+: ok=\d+ `)
	// ahead is text that comes before the result that it belongs to.
	ahead = regexp.MustCompile(`^(?:\[(?:WARNING|ERROR|DEPRECATION WARNING)\]|--- )`)
)

// owner is whose the text is that continues a line.
type owner int

const (
	nobody  owner = iota // what concerns the whole run
	ours                 // the result of the host
	others               // the result of another host
	next                 // the result that comes next
	heading              // a task or play that has no result yet
)

// Filter takes lines of a run and keeps those of one host: its results with the
// play and the task that they belong to, its recap, and what concerns all hosts.
type Filter struct {
	host string
	// step is the index of the only step that is wanted, if only is true; ended counts the
	// steps that are over.
	step, ended int
	only        bool
	last        owner
	// play and task are headings that have not been needed yet, ahead is text
	// whose host is not known yet.
	play, task, ahead []string
}

// New returns a filter for the host, named as in the inventory.
func New(host string) *Filter { return &Filter{host: host} }

// Step leaves out what is not about the step with the index, from 0, of a run of several.
func (f *Filter) Step(index int) *Filter {
	f.step, f.only = index, true
	return f
}

// Copy writes the lines that the filter keeps from a stream until that ends.
func Copy(out io.Writer, in io.Reader, f *Filter) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		kept := f.Line(strings.TrimRight(line, "\r\n"))
		if err != nil {
			kept = append(kept, f.End()...)
		}
		for _, l := range kept {
			if _, err := io.WriteString(out, l+"\n"); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Line takes the next line and returns what is to be printed because of it.
func (f *Filter) Line(line string) []string {
	end := endOfStep.MatchString(line)
	if end {
		f.ended++
	}
	switch {
	case f.only && (end || f.ended != f.step):
		f.play, f.task, f.ahead, f.last = nil, nil, nil, nobody
		return nil
	case line == "":
		return nil // empty lines are put before headings again
	case header.MatchString(line):
		return f.heading(line)
	case len(hosts(line)) > 0:
		return f.result(line, hosts(line))
	case ahead.MatchString(line):
		f.ahead, f.last = append(f.ahead, line), next
		return nil
	}
	return f.continued(line)
}

// End returns what is to be printed when no more lines come.
func (f *Filter) End() []string {
	text := f.ahead
	f.ahead = nil
	return text
}

// heading keeps a heading until something below it is printed.
func (f *Filter) heading(line string) []string {
	text := f.End()
	if play.MatchString(line) {
		f.play, f.task = []string{"", line}, nil
	} else {
		f.task = []string{"", line}
	}
	f.last = heading
	return text
}

func (f *Filter) result(line string, hosts []string) []string {
	text := f.End()
	if !slices.Contains(hosts, f.host) {
		f.last = others
		return nil
	}
	text = append(append(f.play, f.task...), append(text, line)...)
	f.play, f.task, f.last = nil, nil, ours
	return text
}

// continued takes a line that continues with what came before.
func (f *Filter) continued(line string) []string {
	switch f.last {
	case others:
		return nil
	case next:
		f.ahead = append(f.ahead, line)
		return nil
	case heading:
		if f.task != nil {
			f.task = append(f.task, line)
		} else {
			f.play = append(f.play, line)
		}
		return nil
	}
	return []string{line}
}

// hosts that a line is about.
func hosts(line string) []string {
	if m := result.FindStringSubmatch(line); m != nil {
		name, _, _ := strings.Cut(m[1], " -> ")
		return []string{name}
	}
	if m := included.FindStringSubmatch(line); m != nil {
		names, _, _ := strings.Cut(m[1], " => ")
		return strings.Split(names, ", ")
	}
	for _, pattern := range []*regexp.Regexp{async, recap} {
		if m := pattern.FindStringSubmatch(line); m != nil {
			return []string{m[1]}
		}
	}
	return nil
}
