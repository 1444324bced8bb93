package report

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// ThisMachine describes the machine. Unreadable facts are left out.
func ThisMachine() Machine {
	m := Machine{CPU: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version()}
	if value, found := field("/proc/cpuinfo", "model name"); found {
		m.CPU = value
	}
	if value, found := field("/proc/meminfo", "MemTotal"); found {
		var kib int64
		if _, err := fmt.Sscan(value, &kib); err == nil {
			m.Memory = kib << 10
		}
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(release))
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		if _, err := fmt.Sscan(string(load), &m.Load); err != nil {
			m.Load = 0
		}
	}
	return m
}

// field is the value of the first line "name : value" of a file.
func field(path, name string) (string, bool) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", false
	}
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		if key, value, found := strings.Cut(lines.Text(), ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}
