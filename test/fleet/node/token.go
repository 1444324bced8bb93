package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// tokens requests and renews the service account tokens of one pod. They are bound to the pod.
type tokens struct {
	client kubernetes.Interface
	pod    *corev1.Pod
	now    func() time.Time

	mu     sync.Mutex
	issued map[tokenKey]token
}

type tokenKey struct {
	audience string
	seconds  int64
}

type token struct {
	value           []byte
	issued, expires time.Time
}

const defaultTokenSeconds = int64(3600)

// renewAt is when a token is replaced: after 80% of its validity, or after a day if that is sooner.
func (t token) renewAt() time.Time {
	const share, daily = 0.8, 24 * time.Hour
	life := time.Duration(share * float64(t.expires.Sub(t.issued)))
	return t.issued.Add(min(life, daily))
}

// get returns a token for the projection, and renews it when due. If that fails, it returns the old
// token while that is valid.
func (t *tokens) get(ctx context.Context, projection *corev1.ServiceAccountTokenProjection) ([]byte, error) {
	key := tokenKey{projection.Audience, defaultTokenSeconds}
	if projection.ExpirationSeconds != nil {
		key.seconds = *projection.ExpirationSeconds
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	old, have := t.issued[key]
	if have && t.now().Before(old.renewAt()) {
		return old.value, nil
	}
	fresh, err := t.request(ctx, key)
	switch {
	case err == nil:
		t.issued[key] = fresh
		return fresh.value, nil
	case have && t.now().Before(old.expires):
		return old.value, nil
	default:
		return nil, fmt.Errorf("request a token of service account %q: %w", t.pod.Spec.ServiceAccountName, err)
	}
}

func (t *tokens) request(ctx context.Context, key tokenKey) (token, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &key.seconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1",
			Kind:       "Pod",
			Name:       t.pod.Name,
			UID:        t.pod.UID,
		},
	}}
	if key.audience != "" {
		request.Spec.Audiences = []string{key.audience}
	}
	asked := t.now()
	answer, err := t.client.CoreV1().ServiceAccounts(t.pod.Namespace).CreateToken(
		ctx, t.pod.Spec.ServiceAccountName, request, metav1.CreateOptions{},
	)
	if err != nil {
		return token{}, err
	}
	return token{value: []byte(answer.Status.Token), issued: asked, expires: answer.Status.ExpirationTimestamp.Time}, nil
}

// renewal returns when the next token is due, and false when the pod has none.
func (t *tokens) renewal() (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var next time.Time
	for _, issued := range t.issued {
		if at := issued.renewAt(); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next, !next.IsZero()
}
