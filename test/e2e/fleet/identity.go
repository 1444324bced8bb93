package fleet

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// identity is a process beyond doubt: the kernel gives process numbers out
// again, but never with the same start time in the same boot.
type identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // in clock ticks since boot
	Boot  string `json:"boot"`
}

// identify reads the identity of a running process.
func identify(pid int) (identity, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return identity{}, err
	}
	start, err := startTime(string(stat))
	if err != nil {
		return identity{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return identity{}, err
	}
	return identity{PID: pid, Start: start, Boot: strings.TrimSpace(string(boot))}, nil
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

// alive tells whether exactly this process still runs (a zombie does not).
func (id identity) alive() bool {
	if id.PID <= 0 {
		return false
	}
	now, err := identify(id.PID)
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

// kill ends this process, and its group where it leads one, unless the number
// belongs to another by now.
func (id identity) kill() error {
	if !id.alive() {
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
