package supervisor

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Identity names one process unambiguously: the kernel reuses process numbers, but
// never with the same start time in the same boot.
type Identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // in clock ticks since boot
	Boot  string `json:"boot"`
}

// Identify reads the identity of a running process.
func Identify(pid int) (Identity, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Identity{}, err
	}
	start, err := startTime(string(stat))
	if err != nil {
		return Identity{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Identity{}, err
	}
	return Identity{PID: pid, Start: start, Boot: strings.TrimSpace(string(boot))}, nil
}

// startTime is field 22 of proc(5)'s stat. The second field is the command in
// parentheses and may itself hold spaces and parentheses.
func startTime(stat string) (uint64, error) {
	end := strings.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, errors.New("no command name")
	}
	fields := strings.Fields(stat[end+1:])
	const afterCommand = 22 - 3
	if len(fields) <= afterCommand {
		return 0, errors.New("too few fields")
	}
	return strconv.ParseUint(fields[afterCommand], 10, 64)
}

// Alive reports whether exactly this process still runs (a zombie does not).
func (id Identity) Alive() bool {
	if id.PID <= 0 {
		return false
	}
	now, err := Identify(id.PID)
	if err != nil || now != id {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id.PID))
	if err != nil {
		return false
	}
	end := strings.LastIndexByte(string(stat), ')')
	return end >= 0 && !strings.HasPrefix(string(stat[end+1:]), " Z")
}

// Kill ends this process and the group it leads, if any. It returns
// os.ErrProcessDone when the process is gone.
func (id Identity) Kill() error {
	if !id.Alive() {
		return os.ErrProcessDone
	}
	target := id.PID
	if group, err := syscall.Getpgid(id.PID); err == nil && group == id.PID {
		target = -id.PID
	}
	if err := syscall.Kill(target, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
