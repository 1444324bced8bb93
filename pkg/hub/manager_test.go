package hub

import (
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection"
)

// docs/operations.md promises that a killed leader is replaced within 15 seconds. Another
// manager checks the Lease at intervals of retryPeriod, lengthened at random: it sees the
// last renewal one such interval late, and the expiry of the Lease another one.
func TestKilledLeaderIsReplacedInTime(t *testing.T) {
	interval := time.Duration((1 + leaderelection.JitterFactor) * float64(retryPeriod))
	if followed := leaseDuration + 2*interval; followed > 15*time.Second {
		t.Errorf("it is followed after up to %s", followed)
	}
	// A leader that cannot renew the Lease must have exited before another may follow.
	if renewDeadline+retryPeriod > leaseDuration {
		t.Errorf("one that cannot renew its Lease ends after %s, which another holds after %s", renewDeadline, leaseDuration)
	}
}
