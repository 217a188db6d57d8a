package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// screen is where lines go, and on a terminal the status below them.
type screen struct {
	mu     sync.Mutex
	out    io.Writer
	width  func() int // of a terminal, nil without one
	status string
	// partial is the beginning of a line.
	partial []byte
}

func newScreen(f *os.File) *screen {
	s := &screen{out: f}
	if term.IsTerminal(int(f.Fd())) {
		s.width = func() int {
			width, _, err := term.GetSize(int(f.Fd()))
			if err != nil {
				return 80
			}
			return width
		}
	}
	return s
}

const clearLine = "\r\x1b[K"

// Write prints the lines that are complete, above the status.
func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partial = append(s.partial, text...)
	end := strings.LastIndexByte(string(s.partial), '\n') + 1
	if end == 0 {
		return len(text), nil
	}
	lines := string(s.partial[:end])
	s.partial = append([]byte(nil), s.partial[end:]...)
	if s.status != "" && s.width != nil {
		lines = clearLine + lines + s.status
	}
	_, err := io.WriteString(s.out, lines)
	return len(text), err
}

// show prints news, if there are any, with the time. On a terminal it replaces the
// status below them; elsewhere the status is told with the news.
func (s *screen) show(now, news, status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = fmt.Sprintf("[%6s] ", now)
	switch {
	case s.width == nil && news != "":
		fmt.Fprintln(s.out, strings.TrimSuffix(now+news+"; "+status, "; "))
	case s.width != nil && news != "":
		s.status = ""
		fmt.Fprint(s.out, clearLine, now, news, "\n")
		fallthrough
	case s.width != nil:
		if status != "" {
			s.status = cut(now+status, s.width()-1)
		}
		fmt.Fprint(s.out, clearLine, s.status)
	}
}

// cut shortens a line to what fits in one of the terminal.
func cut(line string, width int) string {
	if runes := []rune(line); len(runes) > width {
		return string(runes[:max(width-3, 0)]) + "..."
	}
	return line
}
