package hub

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// maxTokenBytes is the longest token that is sent to the hub for review.
	maxTokenBytes = 16 << 10

	// reviewTimeout bounds how long the hub may take to respond.
	reviewTimeout = 5 * time.Second

	// reviewsPerSecond and reviewsAtOnce bound how often the hub is asked about tokens that
	// were permitted before, and about all others: each kind has its own bucket, so that wrong
	// tokens, which anyone who reaches the port can send, keep out no known reader. The hub
	// serves the manager's own requests from the same queue.
	reviewsPerSecond = 2
	reviewsAtOnce    = 10

	// permittedFor is how long a permitted reader is not reviewed again, and knownFor how
	// long its token uses the bucket of known tokens, counted from the last review. At most
	// mostKnown readers are remembered: those that were last seen.
	permittedFor = time.Minute
	knownFor     = 24 * time.Hour
	mostKnown    = 64
)

// reviewer asks the hub who reads the metrics, and whether they may. controller-runtime has
// a filter that does the same, but client-go logs its requests from verbosity 8 on, and the
// token with them.
type reviewer struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	clock  clock.PassiveClock

	// known holds until when a reader was permitted, by a digest of token, verb and path.
	known             *cache.LRUExpireCache
	forKnown, forRest *rate.Limiter
}

func newReviewer(cfg *rest.Config, httpClient *http.Client, clock clock.PassiveClock) (*reviewer, error) {
	authentication, err := authenticationclient.NewForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, err
	}
	authorization, err := authorizationclient.NewForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, err
	}
	return &reviewer{
		tokens: authentication.TokenReviews(), access: authorization.SubjectAccessReviews(), clock: clock,
		known:    cache.NewLRUExpireCacheWithClock(mostKnown, clock),
		forKnown: rate.NewLimiter(reviewsPerSecond, reviewsAtOnce),
		forRest:  rate.NewLimiter(reviewsPerSecond, reviewsAtOnce),
	}, nil
}

// reviewed provides the metrics server's filter.
func reviewed(cfg *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	r, err := newReviewer(cfg, httpClient, clock.RealClock{})
	if err != nil {
		return nil, err
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
	now := r.clock.Now()
	until, isKnown := r.known.Get(key)
	if isKnown && now.Before(until.(time.Time)) {
		return http.StatusOK, nil
	}
	limit := r.forRest
	if isKnown {
		limit = r.forKnown
	}
	if !limit.AllowN(now, 1) {
		return http.StatusTooManyRequests, nil
	}
	switch code, err = r.ask(req, token); code {
	case http.StatusOK:
		r.known.Add(key, now.Add(permittedFor), knownFor)
	case http.StatusUnauthorized, http.StatusForbidden:
		r.known.Remove(key)
	}
	return code, err
}

// ask asks the hub whether a token's user may make the request.
func (r *reviewer) ask(req *http.Request, token string) (code int, err error) {
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
		return http.StatusOK, nil
	}
}
