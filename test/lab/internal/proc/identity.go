package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Identity names one process for good. A pid alone does not: the kernel reuses
// it, and a lab that crashed yesterday must not kill today's shell. Start time
// and boot id together make it unique.
type Identity struct {
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"startTicks"`
	BootID     string `json:"bootID"`
}

// Identify returns the identity of the process that has pid now.
func Identify(pid int) (Identity, error) {
	s, err := readStat(pid)
	if err != nil {
		return Identity{}, err
	}
	return Identity{PID: pid, StartTicks: s.startTicks, BootID: bootID()}, nil
}

// Alive says whether this very process still runs. A zombie does not.
func (id Identity) Alive() bool {
	if id.PID <= 0 || id.BootID != bootID() {
		return false
	}
	s, err := readStat(id.PID)
	return err == nil && s.startTicks == id.StartTicks && s.state != 'Z' && s.state != 'X'
}

type stat struct {
	state      byte
	startTicks uint64
}

func readStat(pid int) (stat, error) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return stat{}, err
	}
	return parseStat(string(b))
}

// parseStat reads /proc/<pid>/stat (proc(5)). The second field, the command,
// may hold spaces and parentheses, so fields are counted from the last ')'.
func parseStat(line string) (stat, error) {
	end := strings.LastIndexByte(line, ')')
	if end < 0 {
		return stat{}, fmt.Errorf("no command in stat line %q", line)
	}
	fields := strings.Fields(line[end+1:])
	const state, startTime = 0, 19 // fields 3 and 22 of proc(5)
	if len(fields) <= startTime || len(fields[state]) != 1 {
		return stat{}, fmt.Errorf("short stat line %q", line)
	}
	ticks, err := strconv.ParseUint(fields[startTime], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("reading start time of stat line %q: %w", line, err)
	}
	return stat{state: fields[state][0], startTicks: ticks}, nil
}

func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}
