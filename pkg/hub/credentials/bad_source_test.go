package credentials

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
)

func TestBadSourcesAreRefused(t *testing.T) {
	hour := time.Now().Add(time.Hour)
	for name, test := range map[string]struct {
		source func(w *world, account *authv1beta1.ManagedServiceAccount)
		says   string
	}{
		"no token yet": {func(*world, *authv1beta1.ManagedServiceAccount) {}, "its status names no Secret"},
		"another Secret": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			secret := sourceSecret(a, newToken(hour), certificate())
			secret.Name = "admin"
			w.create(secret)
			w.report(a, "admin", hour)
		}, "a Secret that is not its own"},
		"no Secret": {func(w *world, a *authv1beta1.ManagedServiceAccount) { w.report(a, a.Name, hour) }, "is not there"},
		"empty token": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			w.store(a, "", certificate())
			w.report(a, a.Name, hour)
		}, "holds no token"},
		"no authorities": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			w.store(a, newToken(hour), "")
			w.report(a, a.Name, hour)
		}, "holds no ca.crt"},
		"a private key": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			w.store(a, newToken(hour), certificate()+"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
			w.report(a, a.Name, hour)
		}, "is not a list of PEM certificates"},
		"no token at all": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			w.store(a, "password", certificate())
			w.report(a, a.Name, hour)
		}, "is not a JSON web token"},
		"expired": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			w.store(a, newToken(time.Now().Add(-time.Minute)), certificate())
			w.report(a, a.Name, hour)
		}, "has expired at"},
		"oversize": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			w.store(a, newToken(hour)+strings.Repeat("A", 16<<10), certificate())
			w.report(a, a.Name, hour)
		}, "and 16384 are allowed"},
		"another's Secret": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			other := a.DeepCopy()
			other.UID = "another"
			w.store(other, newToken(hour), certificate())
			w.report(a, a.Name, hour)
		}, "no owner reference has its UID"},
		"not managed-serviceaccount's": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			secret := sourceSecret(a, newToken(hour), certificate())
			secret.Labels = nil
			w.create(secret)
			w.report(a, a.Name, hour)
		}, "is not labelled"},
		"another type": {func(w *world, a *authv1beta1.ManagedServiceAccount) {
			secret := sourceSecret(a, newToken(hour), certificate())
			secret.Type = "example.com/other"
			w.create(secret)
			w.report(a, a.Name, hour)
		}, "is of type"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c, team := w.cluster(w.name("c")), w.team()
			w.publish(team, c)
			w.start()
			account := w.tokenless(c, "reader", team)
			test.source(w, account)
			w.mentions(c, "InvalidSource", "Account reader is not copied: ", test.says)
			w.stays(func() string {
				if w.copied(team, c, "reader") != nil {
					return "it was copied"
				}
				return ""
			})
			// Mended, it is copied.
			if err := w.Delete(t.Context(), sourceSecret(account, "", "")); err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			w.holds(team, c, "reader", w.rotate(account))
		})
	}
}
