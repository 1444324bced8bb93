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

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/bearer"
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
	copies := NewCopies(nil, writer, ledger, clocktesting.NewFakePassiveClock(noon), "test", 0)

	everything := funcr.New(func(string, string) {}, funcr.Options{Verbosity: 10})
	withdrawn, err := copies.Withdraw(klog.NewContext(t.Context(), everything), account, "team", false)
	if err != nil || !withdrawn {
		t.Fatalf("withdrawn: %t, %v", withdrawn, err)
	}
	if bodies, others := writer.logger.V(8).Enabled(), writer.logger.V(7).Enabled(); bodies || !others {
		t.Errorf("bodies are logged: %t; other lines are: %t", bodies, others)
	}
}

// patcher is a client that only patches, and counts.
type patcher struct {
	client.Client
	patches int
}

func (p *patcher) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	p.patches++
	return nil
}

// With a slow API server, a write may end after the next reconciliation has decided on the same one.
func TestACopyIsNotWrittenTwice(t *testing.T) {
	for name, test := range map[string]struct {
		token string
		owner types.UID
		want  int
	}{
		"nothing differs":      {"t", "p", 0},
		"its owner is unknown": {"t", "", 0},
		"another token":        {"u", "p", 1},
		"another owner":        {"t", "q", 1},
	} {
		t.Run(name, func(t *testing.T) {
			account, ledger, writer := types.NamespacedName{Namespace: "c", Name: "reader"}, NewLedger(), &patcher{}
			ledger.wrote(account, Key(account, "team"), version{
				uid: "1", resourceVersion: "7", digest: bearer.Token{Token: []byte("t")}.Digest(), owner: "p",
			}, noon)
			copies := NewCopies(nil, writer, ledger, clocktesting.NewFakePassiveClock(noon), "test", 0)
			err := copies.Put(t.Context(), Want{
				Account: account, Namespace: "team", Create: true, Token: bearer.Token{Token: []byte(test.token)},
				Owner: Owner{UID: test.owner, Name: "c"}, Revoked: func() bool { return false },
			})
			if err != nil || writer.patches != test.want {
				t.Errorf("%d patches, %v; want %d", writer.patches, err, test.want)
			}
		})
	}
}

// A write that was pending when the right to the copy ended does not start.
func TestARevokedTokenIsNotWritten(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	copies := NewCopies(nil, nil, NewLedger(), clock, "test", 0) // a request would panic
	want := Want{Account: types.NamespacedName{Namespace: "c", Name: "reader"},
		Namespace: "team", Create: true, Revoked: func() bool { return true }}
	if err := copies.create(t.Context(), want); !errors.Is(err, ErrRevoked) {
		t.Errorf("creating: %v", err)
	}
	if err := copies.patch(t.Context(), want, "1", nil); !errors.Is(err, ErrRevoked) {
		t.Errorf("patching: %v", err)
	}
}
