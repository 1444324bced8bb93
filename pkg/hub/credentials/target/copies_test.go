package target

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deleter is a client that only deletes, and remembers what it would log.
type deleter struct {
	client.Client
	logger logr.Logger
}

func (d *deleter) Delete(ctx context.Context, _ client.Object, _ ...client.DeleteOption) error {
	d.logger = klog.FromContext(ctx)
	return nil
}

// An API server responds to the deletion of a Secret that a finalizer holds with the whole
// Secret.
func TestResponseToAWithdrawalIsNotLogged(t *testing.T) {
	account := types.NamespacedName{Namespace: "c1", Name: "reader"}
	ledger, writer := NewLedger(), &deleter{}
	ledger.wrote(account, Key(account, "team"), version{uid: "1", resourceVersion: "7"}, noon)
	copies := NewCopies(nil, writer, ledger, clocktesting.NewFakePassiveClock(noon), "test")

	everything := funcr.New(func(string, string) {}, funcr.Options{Verbosity: 10})
	withdrawn, err := copies.Withdraw(klog.NewContext(t.Context(), everything), account, "team", false)
	if err != nil || !withdrawn {
		t.Fatalf("withdrawn: %t, %v", withdrawn, err)
	}
	if bodies, others := writer.logger.V(8).Enabled(), writer.logger.V(7).Enabled(); bodies || !others {
		t.Errorf("bodies are logged: %t; other lines are: %t", bodies, others)
	}
}

// A write that was pending when the right to the copy ended does not start.
func TestARevokedTokenIsNotWritten(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	copies := NewCopies(nil, nil, NewLedger(), clock, "test") // a request would panic
	want := Want{Account: types.NamespacedName{Namespace: "c", Name: "reader"},
		Namespace: "team", Create: true, Revoked: func() bool { return true }}
	if err := copies.create(t.Context(), want); !errors.Is(err, ErrRevoked) {
		t.Errorf("creating: %v", err)
	}
	if err := copies.patch(t.Context(), want, "1", nil); !errors.Is(err, ErrRevoked) {
		t.Errorf("patching: %v", err)
	}
}
