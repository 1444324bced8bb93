package spoke

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/spoke/property"
)

// stage is a sessions in a situation that the test sets, whose sessions only log that they
// ran. It runs in a synctest bubble, where time passes at once.
type stage struct {
	t   *testing.T
	all *sessions
	end func()

	mu   sync.Mutex
	next situation
	// apiErr, hubErr and removedErr make observing fail, runErr the next session.
	apiErr, hubErr, removedErr, runErr error
	// lastWrite is how long a session takes to end.
	lastWrite time.Duration

	log []string
	// printed are the errors in the agent's log.
	printed []string
}

func newStage(t *testing.T, now situation) *stage {
	s := &stage{t: t, next: now}
	s.all = newSessions(observers{
		api: func(context.Context) (property.API, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.next.api, s.apiErr
		},
		hub: func() (*rest.Config, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.next.hub, s.hubErr
		},
		removed: func(context.Context) (bool, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.next.removed, s.removedErr
		},
	}, s.run, nil)
	return s
}

func (s *stage) start() {
	ctx, cancel := context.WithCancel(log.IntoContext(s.t.Context(), funcr.New(s.print, funcr.Options{})))
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.all.follow(ctx)
	}()
	s.end = func() {
		cancel()
		<-done
	}
	synctest.Wait()
}

func (s *stage) print(_, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Contains(line, `"error"=`) {
		s.printed = append(s.printed, line)
	}
}

func (s *stage) run(ctx context.Context, now situation, ready func()) error {
	hub := "none"
	if now.hub != nil {
		hub = now.hub.Host
	}
	name := fmt.Sprintf("%s absent=%v removed=%v hub=%s", now.api.Version, now.api.Absent, now.removed, hub)
	if now.hubProblem != "" {
		name += ": " + now.hubProblem
	}
	if err := s.begun(name); err != nil {
		return err
	}
	ready()
	<-ctx.Done()
	<-time.After(s.lastWrite)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, "end "+name)
	return nil
}

func (s *stage) begun(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, "begin "+name)
	err := s.runErr
	s.runErr = nil
	return err
}

// change changes what is observed next.
func (s *stage) change(how func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how()
}

func (s *stage) passes(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (s *stage) expect(want ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if diff := cmp.Diff(want, s.log); diff != "" {
		s.t.Errorf("sessions (-want +got):\n%s", diff)
	}
	s.log = nil
}

var (
	hubOne, hubTwo = &rest.Config{Host: "one"}, &rest.Config{Host: "two"}

	errLook = errors.New("no answer")
)

func TestSessionsFollowTheSituationOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, situation{api: property.API{Absent: true}, hub: hubOne})
		s.lastWrite = time.Second
		s.start()
		s.expect("begin  absent=true removed=false hub=one")

		s.change(func() { s.next.api = property.API{Version: "v1alpha1"} })
		s.all.crdChanged <- struct{}{}
		s.passes(2 * time.Second)
		s.expect("end  absent=true removed=false hub=one", "begin v1alpha1 absent=false removed=false hub=one")

		s.change(func() { s.next.hub = hubTwo })
		s.passes(slowPoll + 2*time.Second)
		s.expect("end v1alpha1 absent=false removed=false hub=one", "begin v1alpha1 absent=false removed=false hub=two")

		s.passes(time.Hour)
		s.expect()
		s.end()
		s.expect("end v1alpha1 absent=false removed=false hub=two")
	})
}

// A kubeconfig that cannot be used is reported with the previous one, once.
func TestSessionsReportAnUnusableKubeconfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, situation{api: property.API{Version: "v1beta1"}, hub: hubOne})
		s.start()
		s.expect("begin v1beta1 absent=false removed=false hub=one")
		s.change(func() { s.hubErr = fmt.Errorf("the pod's path: %w", unusable{"its token is empty", errLook}) })
		s.passes(time.Hour)
		s.expect("end v1beta1 absent=false removed=false hub=one",
			"begin v1beta1 absent=false removed=false hub=one: its token is empty")
		s.change(func() { s.hubErr = nil })
		s.passes(slowPoll)
		s.expect("end v1beta1 absent=false removed=false hub=one: its token is empty",
			"begin v1beta1 absent=false removed=false hub=one")
		s.end()
	})
}

// An agent that starts while the Secret cannot be used publishes, and reports that it
// cannot report.
func TestSessionsStartWithoutAHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, situation{api: property.API{Version: "v1beta1"}})
		s.hubErr = unusable{"its token is empty", errLook}
		s.start()
		s.expect("begin v1beta1 absent=false removed=false hub=none: its token is empty")
		if err := s.all.Ready(nil); err != nil {
			t.Errorf("it does not publish: %v", err)
		}
		if s.all.Reporting(nil) == nil {
			t.Error("it reports although it has no hub")
		}
		s.passes(time.Hour)
		s.expect()

		s.change(func() { s.next.hub, s.hubErr = hubOne, nil })
		s.passes(slowPoll)
		s.expect("end v1beta1 absent=false removed=false hub=none: its token is empty",
			"begin v1beta1 absent=false removed=false hub=one")
		if err := s.all.Reporting(nil); err != nil {
			t.Errorf("it does not report: %v", err)
		}
		s.change(func() { s.hubErr = unusable{"its token is empty", errLook} })
		s.passes(slowPoll)
		if err := s.all.Reporting(nil); err != nil {
			t.Errorf("it does not report with the previous configuration: %v", err)
		}
		s.end()
	})
}

func TestKubeconfigProblemIsLoggedWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, situation{api: property.API{Version: "v1beta1"}, hub: hubOne})
		s.start()
		expect := func(what string, want int) {
			t.Helper()
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.printed) != want {
				t.Errorf("%s: %d errors, want %d: %s", what, len(s.printed), want, s.printed)
			}
			s.printed = nil
		}
		wrong := func(problem string) func() { return func() { s.hubErr = unusable{problem, errLook} } }
		s.passes(time.Hour)
		expect("nothing is wrong", 0)
		s.change(wrong("its token is empty"))
		s.passes(time.Hour)
		expect("the token is empty", 1)
		s.change(wrong("its kubeconfig cannot be read"))
		s.passes(time.Hour)
		expect("the kubeconfig cannot be read", 1)
		s.change(func() { s.hubErr = nil })
		s.passes(time.Hour)
		expect("nothing is wrong any more", 0)
		s.change(wrong("its kubeconfig cannot be read"))
		s.passes(time.Hour)
		expect("the same is wrong again", 1)
		apitest.Must(t, s.all.StopPublishing(t.Context()))
		s.passes(time.Hour)
		expect("the addon is being removed", 0)
		s.end()
	})
}

func TestDiscoveryThatLagsBehindTheDefinitionIsFollowedQuickly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, situation{api: property.API{Absent: true}, hub: hubOne})
		s.start()
		s.passes(time.Second)
		s.all.crdChanged <- struct{}{}
		s.passes(time.Second)
		s.expect("begin  absent=true removed=false hub=one")
		s.change(func() { s.next.api = property.API{Version: "v1beta1"} })
		s.passes(fastPoll)
		s.expect("end  absent=true removed=false hub=one", "begin v1beta1 absent=false removed=false hub=one")
		s.end()
	})
}

func TestUnknownChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, situation{api: property.API{Version: "v1beta1"}, hub: hubOne})
		s.apiErr = errLook
		s.start()
		s.passes(time.Hour)
		s.expect()
		if s.all.Ready(nil) == nil {
			t.Error("ready although nothing is known yet")
		}

		s.change(func() { s.apiErr = nil })
		s.passes(slowPoll)
		s.expect("begin v1beta1 absent=false removed=false hub=one")
		if err := s.all.Ready(nil); err != nil {
			t.Errorf("not ready: %v", err)
		}

		s.change(func() { s.apiErr, s.hubErr, s.next.api = errLook, errLook, property.API{} })
		s.passes(time.Hour)
		s.expect()
		s.end()
	})
}

func TestPublishingHasStoppedOnlyAfterTheLastWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, situation{api: property.API{Version: "v1beta1"}, hub: hubOne})
		s.lastWrite = 3 * time.Second
		s.start()
		begin := time.Now()
		apitest.Must(t, s.all.StopPublishing(t.Context()))
		if took := time.Since(begin); took != s.lastWrite {
			t.Errorf("stopped after %s, want %s", took, s.lastWrite)
		}
		synctest.Wait()
		s.expect(
			"begin v1beta1 absent=false removed=false hub=one",
			"end v1beta1 absent=false removed=false hub=one",
			"begin  absent=false removed=true hub=one",
		)
		apitest.Must(t, s.all.StopPublishing(t.Context()))

		s.change(func() { s.next.api = property.API{Version: "v1alpha1"} })
		s.passes(time.Hour)
		s.expect()
		s.end()
	})
}

// The marker's cache may be old: before each session, the hook's request is looked for on the API server.
func TestASessionBeginsOnlyIfTheAddonIsNotBeingRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, situation{api: property.API{Version: "v1beta1"}, hub: hubOne})
		s.removedErr = errLook
		s.start()
		s.passes(sessionRetry)
		s.expect()
		s.change(func() { s.removedErr = nil })
		s.passes(sessionRetry)
		s.expect("begin v1beta1 absent=false removed=false hub=one")

		s.change(func() { s.next.api, s.next.removed = property.API{Version: "v1alpha1"}, true })
		s.passes(slowPoll)
		s.expect("end v1beta1 absent=false removed=false hub=one", "begin  absent=false removed=true hub=one")
		apitest.Must(t, s.all.StopPublishing(t.Context()))
		s.end()
	})
}

func TestStoppingDoesNotWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, situation{hub: hubOne})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.all.StopPublishing(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error = %v, want %v", err, context.DeadlineExceeded)
		}
	})
}

func TestFailedSessionIsRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, situation{api: property.API{Version: "v1beta1"}, hub: hubOne})
		s.runErr = errLook
		s.start()
		if s.all.Ready(nil) == nil {
			t.Error("ready although the session failed")
		}
		s.passes(sessionRetry)
		s.expect("begin v1beta1 absent=false removed=false hub=one", "begin v1beta1 absent=false removed=false hub=one")
		if err := s.all.Ready(nil); err != nil {
			t.Errorf("not ready: %v", err)
		}
		s.end()
	})
}

func TestWhenASessionPublishes(t *testing.T) {
	for name, tc := range map[string]struct {
		now  situation
		want bool
	}{
		"a version is served: yes":              {situation{api: property.API{Version: "v1beta1"}}, true},
		"there are no properties for sure: yes": {situation{api: property.API{Absent: true}}, true},
		"they cannot be read: no":               {situation{}, false},
		"the addon is being removed: no":        {situation{api: property.API{Version: "v1beta1"}, removed: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.now.publishes(); got != tc.want {
				t.Errorf("publishes() = %v, want %v", got, tc.want)
			}
		})
	}
}
