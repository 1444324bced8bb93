package source

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/bearer"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Tokens reads the accounts' Secrets and remembers its findings, but no token. It is safe
// for concurrent use.
type Tokens struct {
	live     client.Reader // bypasses every cache
	clock    clock.PassiveClock
	findings *findings
}

// NewTokens returns Tokens that have read nothing. every is about how often each Secret is
// read although nothing indicates a change.
func NewTokens(live client.Reader, every time.Duration, clock clock.PassiveClock) *Tokens {
	return &Tokens{live: live, clock: clock, findings: newFindings(every)}
}

// Current returns the finding for the account's present reference. ok is false if it is
// time to read again.
func (t *Tokens) Current(key types.NamespacedName, ref Reference, now time.Time) (f Finding, ok bool) {
	return t.findings.current(key, ref, now)
}

// Read reads the Secret with the account's own name, which its reference must name. token
// is nil if there is nothing to copy, or if the Secret is missing and an earlier finding
// stays in force. An error means that the Secret's state is unknown.
func (t *Tokens) Read(
	ctx context.Context, account *authv1beta1.ManagedServiceAccount,
) (f Finding, token *bearer.Token, err error) {
	key := client.ObjectKeyFromObject(account)
	secret := &corev1.Secret{}
	err = t.live.Get(kube.WithoutBodies(ctx), key, secret)
	now := t.clock.Now()
	f = Finding{reference: ReferenceOf(account)}
	switch {
	case apierrors.IsNotFound(err):
		f.Problem = "its Secret " + key.Name + " is not there"
		return t.findings.recordMissing(key, f, now), nil, nil
	case err != nil:
		return Finding{}, nil, fmt.Errorf("reading Secret %s: %w", key.Name, err)
	}
	read, problem := judge(account, secret, now)
	if problem != "" {
		f.Problem = problem
		return t.findings.record(key, f, now), nil, nil
	}
	f.Digest, f.Expires = read.Digest(), read.Expires
	return t.findings.record(key, f, now), &read, nil
}

// Forget drops what is known about an account with nothing to copy.
func (t *Tokens) Forget(key types.NamespacedName) { t.findings.forget(key) }
