package credentials

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest/ocmtest"
)

func TestBadSourcesAreRefused(t *testing.T) {
	hour := time.Now().Add(time.Hour)
	for name, test := range map[string]struct {
		source func(w *world, account *authv1beta1.ManagedServiceAccount)
		says   string
	}{
		"no token yet": {func(*world, *authv1beta1.ManagedServiceAccount) {}, "its status names no Secret"},
		"another Secret": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			secret := ocmtest.TokenSecret(a, ocmtest.Token(hour), ocmtest.CA())
			secret.Name = "admin"
			w.MustCreate(secret)
			w.ReportToken(a, "admin", hour)
		}, "a Secret that is not its own"},
		"no Secret": {func(w *world, a *authv1beta1.ManagedServiceAccount) { w.ReportToken(a, a.Name, hour) },
			"is not there"},
		"empty token": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			w.StoreToken(a, "", ocmtest.CA())
			w.ReportToken(a, a.Name, hour)
		}, "holds no token"},
		"no authorities": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			w.StoreToken(a, ocmtest.Token(hour), "")
			w.ReportToken(a, a.Name, hour)
		}, "holds no ca.crt"},
		"a private key": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			w.StoreToken(a, ocmtest.Token(hour), ocmtest.CA()+"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
			w.ReportToken(a, a.Name, hour)
		}, "is not a list of PEM certificates"},
		"no token at all": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			w.StoreToken(a, "password", ocmtest.CA())
			w.ReportToken(a, a.Name, hour)
		}, "is not a JSON web token"},
		"expired": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			w.StoreToken(a, ocmtest.Token(time.Now().Add(-time.Minute)), ocmtest.CA())
			w.ReportToken(a, a.Name, hour)
		}, "has expired at"},
		"oversize": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			w.StoreToken(a, ocmtest.Token(hour)+strings.Repeat("A", 16<<10), ocmtest.CA())
			w.ReportToken(a, a.Name, hour)
		}, "and 16384 are allowed"},
		"another's Secret": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			other := a.DeepCopy()
			other.UID = "another"
			w.StoreToken(other, ocmtest.Token(hour), ocmtest.CA())
			w.ReportToken(a, a.Name, hour)
		}, "no owner reference has its UID"},
		"not managed-serviceaccount's": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			secret := ocmtest.TokenSecret(a, ocmtest.Token(hour), ocmtest.CA())
			secret.Labels = nil
			w.MustCreate(secret)
			w.ReportToken(a, a.Name, hour)
		}, "is not labeled"},
		"another type": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			secret := ocmtest.TokenSecret(a, ocmtest.Token(hour), ocmtest.CA())
			secret.Type = "example.com/other"
			w.MustCreate(secret)
			w.ReportToken(a, a.Name, hour)
		}, "is of type"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c, team := w.cluster(w.Name("c")), w.team()
			w.publish(team, c)
			w.start()
			account := w.Account(c, "reader", team)
			test.source(w, account)
			w.mentions(c, "InvalidSource", "Account reader is not copied: ", test.says)
			w.Stays(quietly, "no copy is made", func() string {
				if w.copied(team, c, "reader") != nil {
					return "it was copied"
				}
				return ""
			})
			// Once it is fixed, it is copied.
			if err := w.Delete(t.Context(), ocmtest.TokenSecret(account, "", "")); err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			w.holds(team, c, "reader", w.Rotate(account))
		})
	}
}
