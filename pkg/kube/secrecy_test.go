package kube

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// client-go logs bodies from some verbosity on; those of Secrets must not be there
// at any, and everything else must.
func TestSecretsAreLoggedAtNoVerbosity(t *testing.T) {
	const secret = "a-token-nobody-may-see"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		err := json.NewEncoder(w).Encode(&corev1.Secret{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			Data:     map[string][]byte{"token": []byte(secret)},
		})
		if err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()

	var logged bytes.Buffer
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&logged), textlogger.Verbosity(10)))
	// As a controller's logger comes: with a name and values.
	ctx := klog.NewContext(t.Context(), logger.WithName("test").WithValues("for", "nothing"))
	c, err := kubernetes.NewForConfig(
		&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	withToken := &corev1.Secret{Data: map[string][]byte{"token": []byte(secret)}}
	secrets := c.CoreV1().Secrets("ns")
	patch, err := json.Marshal(withToken)
	if err != nil {
		t.Fatal(err)
	}
	requests := map[string]func(ctx context.Context) error{
		"GET": func(ctx context.Context) error {
			_, err := secrets.Get(ctx, "s", metav1.GetOptions{})
			return err
		},
		"POST": func(ctx context.Context) error {
			_, err := secrets.Create(ctx, withToken, metav1.CreateOptions{})
			return err
		},
		"PATCH": func(ctx context.Context) error {
			_, err := secrets.Patch(ctx, "s", types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		},
		// The answer is the whole Secret where a finalizer holds it.
		"DELETE": func(ctx context.Context) error { return secrets.Delete(ctx, "s", metav1.DeleteOptions{}) },
	}
	encoded := base64.StdEncoding.EncodeToString([]byte(secret))
	for method, request := range requests {
		t.Run(method, func(t *testing.T) {
			ask := func(ctx context.Context) string {
				logged.Reset()
				if err := request(ctx); err != nil {
					t.Fatal(err)
				}
				klog.FromContext(ctx).Info("Said")
				return logged.String()
			}
			if got := ask(ctx); !strings.Contains(got, encoded) {
				t.Fatalf("client-go does not log bodies any more, so this test shows nothing:\n%s", got)
			}
			got := ask(WithoutBodies(ctx))
			if strings.Contains(got, encoded) || strings.Contains(got, secret) {
				t.Errorf("the Secret was logged:\n%s", got)
			}
			if !strings.Contains(got, "Said") || !strings.Contains(got, `for="nothing"`) {
				t.Errorf("the rest was not logged:\n%s", got)
			}
		})
	}
}
