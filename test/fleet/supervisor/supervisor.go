package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/files"
)

// Run supervises the fleet in dir until ctx ends or Control.Shutdown is called,
// and returns when all its processes have ended.
func Run(ctx context.Context, dir string) error {
	listener, closeListener, err := listen(runDir(dir))
	if err != nil {
		return err
	}
	defer closeListener()

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := newSupervisor(dir, log.New(os.Stderr, "", log.LstdFlags))
	server := &http.Server{Handler: s.handler(stop), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.log.Printf("control socket: %v", err)
			stop()
		}
	}()
	if err := s.record(); err != nil {
		return err
	}
	s.log.Printf("supervising %s", dir)
	<-ctx.Done()
	s.log.Printf("stopping")
	s.stopAll()
	return server.Close()
}

func runDir(dir string) string { return filepath.Join(dir, "run") }

func recordPath(dir string) string { return filepath.Join(runDir(dir), "processes.json") }

// LogPath is the file that a process of the fleet in dir logs to.
func LogPath(dir, process string) string { return filepath.Join(dir, "logs", process+".log") }

// supervisor owns the child processes of one fleet.
type supervisor struct {
	dir     string
	starter *starter
	log     *log.Logger

	mu       sync.Mutex
	children map[string]*child
	stopping bool
}

func newSupervisor(dir string, logger *log.Logger) *supervisor {
	return &supervisor{dir: dir, starter: newStarter(), log: logger, children: map[string]*child{}}
}

// child is one process and its restarts.
type child struct {
	status Status
	// Closing stop asks the present session to end, done is closed when it has;
	// both are nil while there is none.
	stop, done chan struct{}
	// turn is held by the goroutine that starts or stops the process.
	turn sync.Mutex
}

// ensure makes a process run as described, restarting it if it runs otherwise.
func (s *supervisor) ensure(p Process) error {
	c := s.child(p.Name, true)
	c.turn.Lock()
	defer c.turn.Unlock()
	s.mu.Lock()
	same := reflect.DeepEqual(c.status.Process, p)
	s.mu.Unlock()
	if !same {
		s.end(c)
	}
	s.mu.Lock()
	c.status.Process = p
	s.mu.Unlock()
	return s.begin(c)
}

func (s *supervisor) start(name string) error {
	c := s.child(name, false)
	if c == nil {
		return unknown(name)
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	return s.begin(c)
}

// stop returns when the process is gone.
func (s *supervisor) stop(name string) error {
	c := s.child(name, false)
	if c == nil {
		return unknown(name)
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	s.end(c)
	return s.record()
}

func unknown(name string) error { return fmt.Errorf("unknown process %q", name) }

func (s *supervisor) child(name string, create bool) *child {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.children[name] == nil && create {
		s.children[name] = &child{status: Status{Process: Process{Name: name}}}
	}
	return s.children[name]
}

// begin starts the session of a process that has none; the caller has the turn.
func (s *supervisor) begin(c *child) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return errors.New("the fleet is stopping")
	}
	if c.done != nil {
		return nil
	}
	c.status.Wanted, c.stop, c.done = true, make(chan struct{}), make(chan struct{})
	go s.session(c, c.stop, c.done)
	return s.recordLocked()
}

// end ends the session of a process, if it has one; the caller has the turn.
func (s *supervisor) end(c *child) {
	s.mu.Lock()
	c.status.Wanted = false
	done := c.done
	if done != nil {
		close(c.stop)
	}
	s.mu.Unlock()
	if done != nil {
		<-done
	}
	s.mu.Lock()
	c.stop, c.done = nil, nil
	s.mu.Unlock()
}

func (s *supervisor) stopAll() {
	s.mu.Lock()
	s.stopping = true
	tiers := map[Tier][]string{}
	for name, c := range s.children {
		tiers[c.status.Tier] = append(tiers[c.status.Tier], name)
	}
	s.mu.Unlock()
	for _, tier := range slices.Backward(slices.Sorted(maps.Keys(tiers))) {
		var group sync.WaitGroup
		for _, name := range tiers[tier] {
			group.Go(func() {
				if err := s.stop(name); err != nil {
					s.log.Printf("stop %s: %v", name, err)
				}
			})
		}
		group.Wait()
	}
}

func (s *supervisor) change(c *child, edit func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	edit(&c.status)
	c.status.Since = time.Now()
	if err := s.recordLocked(); err != nil {
		s.log.Printf("%v", err)
	}
}

func (s *supervisor) statuses() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.statusesLocked()
}

func (s *supervisor) statusesLocked() []Status {
	all := make([]Status, 0, len(s.children))
	for _, name := range slices.Sorted(maps.Keys(s.children)) {
		all = append(all, s.children[name].status)
	}
	return all
}

// records are what KillRecorded uses if the supervisor does not respond.
type records struct {
	Supervisor Identity `json:"supervisor"`
	Processes  []Status `json:"processes"`
}

func (s *supervisor) record() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recordLocked()
}

func (s *supervisor) recordLocked() error {
	self, err := Identify(os.Getpid())
	if err != nil {
		return err
	}
	content, err := json.MarshalIndent(records{Supervisor: self, Processes: s.statusesLocked()}, "", " ")
	if err != nil {
		return err
	}
	if err := files.Write(recordPath(s.dir), content, files.Private); err != nil {
		return fmt.Errorf("record processes: %w", err)
	}
	return nil
}
