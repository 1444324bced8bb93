package meter

import (
	"fmt"
	"os"
	"strings"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet"
)

// Usage is the resource usage of one process since its start.
type Usage struct {
	// PID and Start identify the process: numbers are reused.
	PID   int
	Start uint64
	// CPU is its time in user and kernel mode.
	CPU time.Duration
	// RSS is its anonymous resident memory in bytes: without the pages of its binary,
	// which the kernel can drop and read again.
	RSS int64
}

// ticksPerSecond is the unit of /proc/<pid>/stat, which is the same on every
// architecture that Go runs on.
const ticksPerSecond = 100

// Process reads the usage of a process.
func Process(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, err
	}
	usage, err := parseStat(string(stat))
	if err != nil {
		return Usage{}, err
	}
	usage.PID = pid
	usage.RSS, err = fleet.ProcessRSS(pid)
	return usage, err
}

// parseStat reads fields 14, 15 and 22 of proc_pid_stat(5). The second is the name of the
// program in parentheses, which may contain anything.
func parseStat(stat string) (Usage, error) {
	end := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[end+1:])
	const state, user, system, start = 3, 14, 15, 22
	if end < 0 || len(fields) <= start-state {
		return Usage{}, fmt.Errorf("%q is not what /proc/<pid>/stat looks like", stat)
	}
	var inUser, inSystem, began uint64
	for field, value := range map[int]*uint64{user: &inUser, system: &inSystem, start: &began} {
		if _, err := fmt.Sscan(fields[field-state], value); err != nil {
			return Usage{}, fmt.Errorf("field %d of %q: %w", field, stat, err)
		}
	}
	ticks := time.Duration(inUser + inSystem)
	return Usage{Start: began, CPU: ticks * time.Second / ticksPerSecond}, nil
}

// since returns the CPU time between two readings of a process. A replaced process counts
// from its start.
func (u Usage) since(before Usage) time.Duration {
	if u.PID != before.PID || u.Start != before.Start {
		return u.CPU
	}
	return u.CPU - before.CPU
}
