package faults

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// restartAfter is how long a program that ended by itself stays down, as with a kubelet.
const restartAfter = 500 * time.Millisecond

// leaveLimit bounds how long a program takes to end that was asked to, as with a kubelet.
const leaveLimit = 30 * time.Second

// program keeps processes running, which end and start together: it starts them again when they
// were killed or one of them has ended by itself. It is safe for concurrent use.
type program struct {
	// commands returns the processes, not yet started.
	commands func() []*exec.Cmd
	// lost is called when the program has ended, before it is started again.
	lost func()

	mu      sync.Mutex
	cmds    []*exec.Cmd
	ended   chan struct{} // of the present processes
	stopped bool
	killing bool
	exits   []string // how it ended by itself, each time, and what it had logged last
	starts  []time.Time
	err     error
	log     bytes.Buffer
}

// start starts the program.
func (p *program) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run()
}

// run requires the lock.
func (p *program) run() error {
	var started []*exec.Cmd
	for _, cmd := range p.commands() {
		cmd.Stdout, cmd.Stderr = logWriter{p}, logWriter{p}
		if err := cmd.Start(); err != nil {
			p.err = err
			killAll(started)
			return err
		}
		started = append(started, cmd)
	}
	ended := make(chan struct{})
	p.cmds, p.ended = started, ended
	p.starts = append(p.starts, time.Now())
	ends := make(chan string, len(started))
	for _, cmd := range started {
		go func() { ends <- fmt.Sprintf("%s: %v", filepath.Base(cmd.Path), cmd.Wait()) }()
	}
	go func() {
		how := <-ends
		killAll(started)
		for range started[1:] {
			<-ends
		}
		p.after(ended, how)
	}()
	return nil
}

func killAll(cmds []*exec.Cmd) {
	for _, cmd := range cmds {
		_ = cmd.Process.Kill() // it may have ended
	}
}

// after starts the program again. how says which process ended first, and how.
func (p *program) after(ended chan struct{}, how string) {
	p.mu.Lock()
	killed := p.killing
	p.killing = false
	if !killed && !p.stopped {
		p.exits = append(p.exits, fmt.Sprintf("%s, after it had logged:\n%s", how, tail(p.log.String())))
	}
	p.mu.Unlock()
	close(ended)
	p.lost()
	if !killed {
		timer := time.NewTimer(restartAfter)
		defer timer.Stop()
		<-timer.C
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopped {
		_ = p.run() // remembered in err
	}
}

// kill ends the program at once and returns when it has ended. It is started again.
func (p *program) kill() { p.end(false) }

// stop ends the program, which is not started again.
func (p *program) stop() { p.end(true) }

func (p *program) end(stopped bool) {
	p.mu.Lock()
	p.stopped = p.stopped || stopped
	cmds, ended := p.cmds, p.ended
	p.killing = true
	p.mu.Unlock()
	if len(cmds) == 0 {
		return
	}
	killAll(cmds)
	<-ended
}

// leave asks the processes to end and returns when they have ended. They are not started again.
func (p *program) leave() error {
	p.mu.Lock()
	p.stopped = true
	ended := p.ended
	p.mu.Unlock()
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.NewTimer(leaveLimit)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		return fmt.Errorf("the program did not end within %s: %w", leaveLimit, errNotReached)
	}
}

// pause stops the processes, and resume lets them continue.
func (p *program) pause() error  { return p.signal(syscall.SIGSTOP) }
func (p *program) resume() error { return p.signal(syscall.SIGCONT) }

func (p *program) signal(signal syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, cmd := range p.cmds {
		errs = append(errs, cmd.Process.Signal(signal))
	}
	return errors.Join(errs...)
}

// peak is the most memory that the processes have had since they started, in MiB; 0 if they have just
// ended.
func (p *program) peak() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	total := 0
	for _, cmd := range p.cmds {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		if err != nil {
			return 0
		}
		for line := range strings.Lines(string(status)) {
			var kib int
			if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
				total += kib
			}
		}
	}
	return total >> 10
}

// forget forgets the log, and how often the program ended by itself.
func (p *program) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exits = nil
	p.log.Reset()
}

// report returns how the program ended by itself, each time, its log, and whether it could be
// started.
func (p *program) report() (exits []string, log string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.exits), p.log.String(), p.err
}

// began returns when the program was started, each time.
func (p *program) began() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.starts)
}

// logWriter collects the log.
type logWriter struct{ of *program }

// Write implements io.Writer.
func (w logWriter) Write(text []byte) (int, error) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	return w.of.log.Write(text)
}
