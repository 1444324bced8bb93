package journeys

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// metricsReader is the chart's ClusterRole for scrapers.
const metricsReader = "open-cluster-management:cluster-inventory:metrics-reader"

// reader is the ServiceAccount of a scraper.
var reader = metav1.ObjectMeta{Namespace: "default", Name: "journeys-metrics-reader"}

// ManagerMetrics returns what the manager serves of metrics, read as Prometheus would.
func ManagerMetrics(ctx context.Context, t *testing.T) string {
	t.Helper()
	pod := ManagerPod(ctx, t)
	url, as := "http://"+pod.Status.PodIP+":8080/metrics", http.DefaultClient
	err := Hub(t).Get(ctx, client.ObjectKey{Name: metricsReader}, &rbacv1.ClusterRole{})
	if !apierrors.IsNotFound(err) { // the chart is not from before there was TLS
		apitest.Must(t, err)
		url, as = "https://"+pod.Status.PodIP+":8080/metrics", scraper(ctx, t)
	}
	var text string
	// On a busy machine, a connection may be reset. The next scrape is another one.
	apitest.Within(t, Soon, "the manager serves metrics", func(ctx context.Context) (err error) {
		text, err = read(ctx, as, url)
		return err
	})
	return text
}

// scraper returns a client with a token that may read metrics.
func scraper(ctx context.Context, t *testing.T) *http.Client {
	t.Helper()
	hub := Hub(t)
	account := &corev1.ServiceAccount{ObjectMeta: reader}
	for _, object := range []client.Object{account, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: reader.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: metricsReader},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: reader.Namespace, Name: reader.Name}},
	}} {
		if err := hub.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	apitest.Within(t, Eventually, "the hub lets the scraper read metrics", func(ctx context.Context) error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:                  "system:serviceaccount:" + reader.Namespace + ":" + reader.Name,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
		}}
		if err := hub.Create(ctx, review); err != nil || review.Status.Allowed {
			return err
		}
		return fmt.Errorf("not allowed: %s", review.Status.Reason)
	})
	request := &authenticationv1.TokenRequest{}
	apitest.Must(t, hub.SubResource("token").Create(ctx, account, request))
	as, err := rest.HTTPClientFor(&rest.Config{
		BearerToken: request.Status.Token, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	})
	apitest.Must(t, err)
	return as
}

// read returns what a GET is answered with.
func read(ctx context.Context, as *http.Client, url string) (text string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := as.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %d %s", url, response.StatusCode, body)
	}
	return string(body), err
}
