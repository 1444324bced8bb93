package node

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

func TestTokensAreRenewedBeforeTheyExpire(t *testing.T) {
	now := earlier
	var requests []authenticationv1.TokenRequestSpec
	var fail error
	client := fake.NewClientset()
	client.PrependReactor("create", "serviceaccounts", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if fail != nil {
			return true, nil, fail
		}
		request := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenRequest).DeepCopy()
		requests = append(requests, request.Spec)
		request.Status.Token = fmt.Sprint("token ", len(requests))
		request.Status.ExpirationTimestamp = metav1.NewTime(
			now.Add(time.Duration(*request.Spec.ExpirationSeconds) * time.Second),
		)
		return true, request, nil
	})
	source := &tokens{
		client: client,
		pod:    examplePod(),
		now:    func() time.Time { return now },
		issued: map[tokenKey]token{},
	}
	projection := &corev1.ServiceAccountTokenProjection{Audience: "hub", ExpirationSeconds: ptr.To(int64(1000))}
	for _, step := range []struct {
		name  string
		after time.Duration
		fail  error
		want  string
	}{
		{"the first is requested", 0, nil, "token 1"},
		{"it is kept while it is young", 799 * time.Second, nil, "token 1"},
		{"it is kept while it cannot be renewed and is good", 801 * time.Second, errors.New("down"), "token 1"},
		{"it is renewed when most of its life is over", 802 * time.Second, nil, "token 2"},
		{
			"an expired one that cannot be renewed is an error", 2000 * time.Second, errors.New("down"),
			`request a token of service account "agent": down`,
		},
	} {
		now, fail = earlier.Add(step.after), step.fail
		value, err := source.get(context.Background(), projection)
		if err != nil {
			value = []byte(err.Error())
		}
		if diff := cmp.Diff(step.want, string(value)); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
	bound := authenticationv1.TokenRequestSpec{
		Audiences: []string{"hub"}, ExpirationSeconds: ptr.To(int64(1000)),
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "agent-0", UID: "uid-1"},
	}
	if diff := cmp.Diff([]authenticationv1.TokenRequestSpec{bound, bound}, requests); diff != "" {
		t.Error(diff)
	}
	if due, have := source.renewal(); !have || !due.Equal(earlier.Add(802*time.Second+800*time.Second)) {
		t.Errorf("renewal at %s, %v", due, have)
	}
}

func TestALongLivedTokenIsRenewedDaily(t *testing.T) {
	got := token{issued: earlier, expires: earlier.AddDate(1, 0, 0)}.renewAt()
	if want := earlier.Add(24 * time.Hour); !got.Equal(want) {
		t.Errorf("got %s, want %s", got, want)
	}
}
