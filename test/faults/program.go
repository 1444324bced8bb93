package faults

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
)

// restartAfter is how long a program that ended by itself stays down, as with a kubelet.
const restartAfter = 500 * time.Millisecond

// program keeps the manager running: it starts it again when it was killed or has ended by
// itself. It is safe for concurrent use.
type program struct {
	// command returns the manager, not yet started.
	command func() *exec.Cmd
	// lost is called when the program has ended, before it is started again.
	lost func()

	mu      sync.Mutex
	cmd     *exec.Cmd
	ended   chan struct{} // of the present process
	stopped bool
	killing bool
	exits   []string // how it ended by itself, each time, and what it had logged last
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
	cmd := p.command()
	cmd.Stdout, cmd.Stderr = writer{p}, writer{p}
	if err := cmd.Start(); err != nil {
		p.err = err
		return err
	}
	ended := make(chan struct{})
	p.cmd, p.ended = cmd, ended
	go func() {
		p.after(ended, cmd.Wait())
	}()
	return nil
}

// after starts the program again. how says how it ended, nil without an error.
func (p *program) after(ended chan struct{}, how error) {
	p.mu.Lock()
	killed := p.killing
	p.killing = false
	if !killed && !p.stopped {
		p.exits = append(p.exits, fmt.Sprintf("%v, after it had logged:\n%s", how, tail(p.log.String())))
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

// stop ends the program for good.
func (p *program) stop() { p.end(true) }

func (p *program) end(stopped bool) {
	p.mu.Lock()
	p.stopped = p.stopped || stopped
	cmd, ended := p.cmd, p.ended
	p.killing = true
	p.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Kill() // it may have ended
	<-ended
}

// pause stops the process, and resume lets it continue.
func (p *program) pause() error  { return p.signal(syscall.SIGSTOP) }
func (p *program) resume() error { return p.signal(syscall.SIGCONT) }

func (p *program) signal(signal syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Signal(signal)
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

// writer collects the log.
type writer struct{ of *program }

// Write implements io.Writer.
func (w writer) Write(text []byte) (int, error) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	return w.of.log.Write(text)
}
