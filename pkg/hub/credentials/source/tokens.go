package source

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/credentials/bearer"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Tokens reads the accounts' Secrets and remembers its findings, but no token. It is safe
// for concurrent use.
type Tokens struct {
	*findings
	live  client.Reader // bypasses every cache
	clock clock.PassiveClock
}

// NewTokens returns Tokens that have read nothing. every is about how often each Secret is
// read although nothing indicates a change.
func NewTokens(live client.Reader, every time.Duration, clock clock.PassiveClock) *Tokens {
	return &Tokens{live: live, clock: clock, findings: &findings{every: every}}
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
		return t.recordMissing(key, f, now), nil, nil
	case err != nil:
		return Finding{}, nil, fmt.Errorf("reading Secret %s: %w", key.Name, err)
	}
	read, problem := validate(account, secret, now)
	if problem != "" {
		f.Problem = problem
		return t.record(key, f, now), nil, nil
	}
	f.Digest, f.Expires = read.Digest(), read.Expires
	if ends := f.reference.expires; !ends.IsZero() && ends.Before(f.Expires) {
		f.Expires = ends // then the account is refused (Reference.Refusal)
	}
	return t.record(key, f, now), &read, nil
}
