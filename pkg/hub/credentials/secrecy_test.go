package credentials

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

// TestNoTokenIsDisclosed searches for every token of a busy period in everything that
// people can read.
func TestNoTokenIsDisclosed(t *testing.T) {
	s := newScene(t)
	tokens := []string{s.token}
	for range 3 {
		s.token = s.Rotate(s.account)
		tokens = append(tokens, s.token)
		s.copied()
	}
	s.wire.Fail(func(c apitest.Call) apitest.Fault {
		if c.IsWrite() && c.Resource == "secrets" {
			return apitest.Fault{Status: 403, Reason: "Forbidden",
				Message: "a webhook does not like " + base64.StdEncoding.EncodeToString([]byte(s.token))}
		}
		return apitest.Fault{}
	})
	s.token = ocmtest.Token(time.Now().Add(time.Hour))
	tokens = append(tokens, s.token)
	s.StoreToken(s.account, s.token, ocmtest.CA())
	s.ReportToken(s.account, "reader", time.Now().Add(time.Hour))
	s.mentions(s.cluster, "CopyFailed", "it quotes the token")
	s.wire.Fail(nil)
	s.copied()
	s.settled()
	for _, call := range s.wire.Calls() {
		if call.Resource == "secrets" {
			continue
		}
		for _, token := range tokens {
			if strings.Contains(call.Body, token[40:80]) ||
				strings.Contains(call.Body, base64.StdEncoding.EncodeToString([]byte(token))[40:80]) {
				t.Errorf("%s %s holds a token", call.Method, call.Path)
			}
		}
	}
}

func TestARefusedWithdrawalQuotesNoToken(t *testing.T) {
	s := newScene(t)
	s.settled()
	s.wire.Fail(func(c apitest.Call) apitest.Fault {
		if c.Method == http.MethodDelete && c.Resource == "secrets" {
			return apitest.Fault{Status: 403, Reason: "Forbidden", Message: "a webhook keeps what holds " + s.token}
		}
		return apitest.Fault{}
	})
	s.rule.say(s.team, s.cluster, selection.Result{Answer: selection.No, Why: "is out"})
	s.mentions(s.cluster, "TargetNotEntitled", "a webhook keeps what holds (left out)")
	s.wire.Fail(nil)
	s.withdrawn()
}
