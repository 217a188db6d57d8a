package docpage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Shell is one session of bash. What a block leaves behind is there for the next:
// variables, functions, the working directory.
type Shell struct {
	dir string // of the scripts and what they print
	cmd *exec.Cmd
	// commands is read by bash, reports written by it.
	commands io.WriteCloser
	reports  *bufio.Reader
}

// session ends at the first command that fails, after it told where it was.
const session = `set -Eeuo pipefail; trap 'echo $LINENO >"$DOCPAGE_DIR/failed"' ERR` + "\n"

// NewShell starts a session in a directory with further variables, as in os.Environ.
// The caller must Close it.
func NewShell(dir string, env ...string) (*Shell, error) {
	scratch, err := os.MkdirTemp("", "docpage-")
	if err != nil {
		return nil, err
	}
	s := &Shell{dir: scratch, cmd: exec.Command("bash", "--noprofile", "--norc")}
	s.cmd.Dir, s.cmd.Env = dir, append(append(os.Environ(), env...), "DOCPAGE_DIR="+scratch)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting bash: %w", err), os.RemoveAll(scratch))
	}
	return s, nil
}

func (s *Shell) start() error {
	reports, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer write.Close()
	s.cmd.ExtraFiles, s.reports = []*os.File{write}, bufio.NewReader(reports)
	if s.commands, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	_, err = io.WriteString(s.commands, session)
	return err
}

// Run runs a block and returns what it printed, on both standard streams. The first
// command that fails ends the block and the session; the error then names page,
// line and command, and has the output. So does the end of the context.
func (s *Shell) Run(ctx context.Context, b Block) (string, error) {
	// Lines before the text make bash count as the page does.
	script := strings.Repeat("\n", b.Line-1) + b.Text
	file, output := filepath.Join(s.dir, filepath.Base(b.Page)), filepath.Join(s.dir, "output")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		return "", err
	}
	// What continues in the background must not hold the pipe.
	_, err := fmt.Fprintf(s.commands, "source '%s' </dev/null >'%s' 2>&1 3>&-; echo done >&3\n", file, output)
	if err == nil {
		err = s.wait(ctx)
	}
	printed, readErr := os.ReadFile(output)
	if err != nil {
		return string(printed), fmt.Errorf("%s: %w\n%s", s.place(b), err, printed)
	}
	return string(printed), readErr
}

// wait returns an error if bash ends before it reports that the block is done.
func (s *Shell) wait(ctx context.Context) error {
	stop := context.AfterFunc(ctx, s.kill)
	defer stop()
	if _, err := s.reports.ReadString('\n'); err != nil {
		s.kill()
		return errors.Join(ctx.Err(), s.cmd.Wait())
	}
	return nil
}

// place returns the line that failed and what it says, or else the block.
func (s *Shell) place(b Block) string {
	failed, err := os.ReadFile(filepath.Join(s.dir, "failed"))
	if err != nil {
		return b.String() // bash ended otherwise: exit, bad syntax
	}
	line, err := strconv.Atoi(strings.TrimSpace(string(failed)))
	lines := strings.Split(b.Text, "\n")
	if at := line - b.Line; err == nil && at >= 0 && at < len(lines) {
		return fmt.Sprintf("%s:%d: %s", b.Page, line, lines[at])
	}
	return b.String() // in a function of a block before
}

// kill ends bash and all that it started and that made no session of its own.
func (s *Shell) kill() { _ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) }

// Close ends the session.
func (s *Shell) Close() error {
	s.kill()
	_ = s.cmd.Wait() // it was killed
	return os.RemoveAll(s.dir)
}
