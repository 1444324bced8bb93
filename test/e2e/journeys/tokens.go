package journeys

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/canary"
)

// Tokens are those that stories dealt with.
var Tokens = canary.New()

// endings holds the stories that will search for tokens when they end.
var endings = map[string]bool{}

// searchForTokens ends the story with a search for tokens, if its fleet can have any. It
// returns the Helm arguments that make manager and agents log everything, so that a
// logged token is found.
func searchForTokens(t *testing.T) (helmArgs []string) {
	t.Helper()
	if !access && !options.Token {
		return nil
	}
	if story, _, _ := strings.Cut(t.Name(), "/"); !endings[story] {
		endings[story] = true
		t.Cleanup(func() { noTokenAnywhere(t) })
	}
	return []string{"--set", "logLevel=10", "--set", "agent.logLevel=10"}
}

// noTokenAnywhere looks for every token of every story so far in all that people
// and other programs read.
func noTokenAnywhere(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Eventually)
	defer cancel()
	found := []error{Tokens.Logs(Fleet.LogDir())}
	for _, cluster := range []string{"hub", Cluster1, Cluster2} {
		found = append(found, Tokens.Objects(ctx, ClientOf(t, cluster)))
	}
	if installedWith != nil {
		found = append(found, Tokens.Text("the manager's metrics", ManagerMetrics(ctx, t)))
	}
	if err := errors.Join(found...); err != nil {
		t.Error(err)
	}
}

// TokenValidity returns from when until when a token of a ServiceAccount is valid.
func TokenValidity(token string) (from, until time.Time, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return from, until, errors.New("not a token of a ServiceAccount")
	}
	content, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return from, until, err
	}
	claims := struct{ Iat, Exp int64 }{}
	err = json.Unmarshal(content, &claims)
	return time.Unix(claims.Iat, 0), time.Unix(claims.Exp, 0), err
}
