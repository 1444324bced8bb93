package hub

import (
	"context"
	"crypto/sha256"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// maxTokenBytes is the longest token that is sent to the hub for review.
	maxTokenBytes = 16 << 10

	// reviewTimeout bounds how long the hub may take to respond.
	reviewTimeout = 5 * time.Second

	// reviewsPerSecond and reviewsAtOnce bound how often the hub is asked. It serves the
	// manager's own requests and these from one queue, and anybody who reaches the port
	// causes them.
	reviewsPerSecond = 2
	reviewsAtOnce    = 10

	// rememberFor is how long a permitted reader is not reviewed again, and mostRemembered
	// how many readers are remembered. Refused readers are not remembered.
	rememberFor    = time.Minute
	mostRemembered = 64
)

// reviewer asks the hub who reads the metrics, and whether they may. controller-runtime has
// a filter that does the same, but client-go logs its requests from verbosity 8 on, and the
// token with them.
type reviewer struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	limit  flowcontrol.RateLimiter

	mu      sync.Mutex
	allowed map[[sha256.Size]byte]time.Time // until when, by a digest of token, verb and path
}

// reviewed provides the metrics server's filter.
func reviewed(cfg *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	authentication, err := authenticationclient.NewForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, err
	}
	authorization, err := authorizationclient.NewForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, err
	}
	r := &reviewer{
		tokens: authentication.TokenReviews(), access: authorization.SubjectAccessReviews(),
		limit:   flowcontrol.NewTokenBucketRateLimiter(reviewsPerSecond, reviewsAtOnce),
		allowed: map[[sha256.Size]byte]time.Time{},
	}
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			code, err := r.review(req)
			switch {
			case err != nil:
				log.Error(err, "Cannot authenticate or authorize a reader of the metrics")
				http.Error(w, "cannot authenticate or authorize the request", code)
			case code != http.StatusOK:
				http.Error(w, http.StatusText(code), code)
			default:
				next.ServeHTTP(w, req)
			}
		}), nil
	}, nil
}

// review returns the status code of the response.
func (r *reviewer) review(req *http.Request) (code int, err error) {
	scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if token == "" || len(token) > maxTokenBytes || !strings.EqualFold(scheme, "Bearer") {
		return http.StatusUnauthorized, nil
	}
	key := sha256.Sum256([]byte(token + "\x00" + req.Method + "\x00" + req.URL.Path))
	if r.isRemembered(key, time.Now()) {
		return http.StatusOK, nil
	}
	if !r.limit.TryAccept() {
		return http.StatusTooManyRequests, nil
	}
	ctx, cancel := context.WithTimeout(kube.WithoutBodies(req.Context()), reviewTimeout)
	defer cancel()
	who, err := r.tokens.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return http.StatusInternalServerError, err
	case !who.Status.Authenticated:
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	may, err := r.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{
			Path: req.URL.Path, Verb: strings.ToLower(req.Method),
		},
	}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return http.StatusInternalServerError, err
	case !may.Status.Allowed:
		return http.StatusForbidden, nil
	default:
		r.remember(key, time.Now())
		return http.StatusOK, nil
	}
}

func (r *reviewer) isRemembered(key [sha256.Size]byte, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Before(r.allowed[key])
}

func (r *reviewer) remember(key [sha256.Size]byte, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.allowed, func(_ [sha256.Size]byte, until time.Time) bool { return !now.Before(until) })
	if len(r.allowed) < mostRemembered {
		r.allowed[key] = now.Add(rememberFor)
	}
}
