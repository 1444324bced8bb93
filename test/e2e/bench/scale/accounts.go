package scale

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/bench/scale/observe"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/simulated"
)

// accounts are one account of each cluster.
type accounts []*simulated.Account

func newAccounts(hub client.Client, clusters *population, ca []byte) accounts {
	all := make(accounts, clusters.size())
	for i, name := range clusters.names {
		all[i] = simulated.NewAccount(hub, name, ca)
	}
	return all
}

func (a accounts) create(ctx context.Context) error {
	return simulated.Each(ctx, len(a), func(ctx context.Context, i int) error { return a[i].Create(ctx) })
}

func (a accounts) revoke(ctx context.Context, i int) error { return a[i].Revoke(ctx) }

// serialOf returns the ID of such a token.
func serialOf(token string) int {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return observe.Incomplete
	}
	content, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return observe.Incomplete
	}
	var claims struct {
		ID string `json:"jti"`
	}
	if json.Unmarshal(content, &claims) != nil {
		return observe.Incomplete
	}
	serial, err := strconv.Atoi(claims.ID)
	if err != nil {
		return observe.Incomplete
	}
	return serial
}

// readSecret reads a copy.
func readSecret(object any) (observe.Key, int, bool) {
	secret, ok := object.(*corev1.Secret)
	if !ok {
		return observe.Key{}, 0, false
	}
	return observe.Key{Namespace: secret.Namespace, Name: secret.Name}, serialOf(string(secret.Data["token"])), true
}
