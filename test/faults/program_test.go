package faults

import (
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// processes is a program of two, the second of which runs until it is killed.
func processes(first string) (p *program, starts *atomic.Int64) {
	starts = &atomic.Int64{}
	return &program{
		commands: func() []*exec.Cmd {
			starts.Add(1)
			return []*exec.Cmd{exec.Command("sh", "-c", first), exec.Command("sleep", "600")}
		},
		lost: func() {},
	}, starts
}

func TestProcessesEndAndStartTogether(t *testing.T) {
	p, starts := processes("exec sleep 600")
	apitest.Must(t, p.start())
	t.Cleanup(p.stop)
	before := p.cmds
	p.kill()
	for _, cmd := range before {
		if cmd.ProcessState == nil {
			t.Errorf("%s runs on", cmd.Path)
		}
	}
	apitest.Eventually(t, apitest.Patience, "both are started again", func() string {
		if starts.Load() != 2 {
			return "they are not"
		}
		return ""
	})
	if exits, _, _ := p.report(); len(exits) > 0 {
		t.Errorf("a killed program has ended by itself: %q", exits)
	}
}

func TestProgramSaysWhichProcessEndedByItself(t *testing.T) {
	p, starts := processes("exit 3")
	apitest.Must(t, p.start())
	t.Cleanup(p.stop)
	apitest.Eventually(t, apitest.Patience, "the program is started again", func() string {
		if starts.Load() < 2 {
			return "it is not"
		}
		return ""
	})
	if exits, _, _ := p.report(); len(exits) == 0 || !strings.HasPrefix(exits[0], "sh: exit status 3") {
		t.Errorf("exits %q", exits)
	}
}

func TestProgramLeavesForGood(t *testing.T) {
	p, starts := processes("trap 'exit 0' TERM; while :; do sleep 0.05; done")
	apitest.Must(t, p.start())
	t.Cleanup(p.stop)
	apitest.Must(t, p.leave())
	for _, cmd := range p.cmds {
		if cmd.ProcessState == nil {
			t.Errorf("%s runs on", cmd.Path)
		}
	}
	if exits, _, err := p.report(); len(exits) > 0 || err != nil || starts.Load() != 1 {
		t.Errorf("started %d times, exits %q, %v", starts.Load(), exits, err)
	}
}
