package proxy

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Kind is what happens to a write or to an event of a watch.
type Kind string

// Faults of one write. The program is killed before the API server gets the write, or after
// it has answered but before the program knows; the others leave it running. Lost writes take
// effect, hanging ones after HangFor; the others are answered with that HTTP status, without
// the API server.
const (
	KillBefore Kind = "kill-before"
	KillAfter  Kind = "kill-after"
	Lost       Kind = "lost"
	Hang       Kind = "hang"
	Status409  Kind = "409"
	Status422  Kind = "422"
	Status429  Kind = "429"
	Status500  Kind = "500"
	Status503  Kind = "503"
	Status504  Kind = "504"
)

// Faults of the watches of one kind. An event is delayed by DelayFor, with all that follow it;
// left out until DropFor later an expired resource version makes the client list again; or
// sent twice. Or the connections are closed every CloseEvery, or all resource versions expire
// once.
const (
	EventDelayed    Kind = "event-delayed"
	EventDropped    Kind = "event-dropped"
	EventDuplicated Kind = "event-duplicated"
	WatchClosed     Kind = "watch-closed"
	WatchExpired    Kind = "watch-expired"
)

// Faults of all writes into one namespace, the key's object: each takes effect only after SlowFor,
// as if a slow admission webhook had to admit it. API servers grant webhooks at most 30 seconds.
const (
	SlowWebhook    Kind = "slow-webhook"
	SlowWebhook29s Kind = "slow-webhook-29s"
)

// An API server that is cut off from etcd when the program starts: after the program's first write
// took effect, the program is killed. When it starts again, lists from the API server's cache show
// what there was before, and watches show nothing newer, until LagFor after the first of these lists.
// Reads that must be current are.
const (
	Lagging    Kind = "lagging"
	Lagging1s  Kind = "lagging-1s"
	Lagging60s Kind = "lagging-60s"
)

// How long faults last.
const (
	HangFor    = 10 * time.Second
	DelayFor   = 5 * time.Second
	DropFor    = 3 * time.Second
	CloseEvery = time.Second
)

// How long a write is slow and an API server lags, by the kind of the fault.
var (
	SlowFor = map[Kind]time.Duration{SlowWebhook: 8 * time.Second, SlowWebhook29s: 29 * time.Second}
	LagFor  = map[Kind]time.Duration{
		Lagging: 10 * time.Second, Lagging1s: time.Second, Lagging60s: time.Minute,
	}
)

// None is a run without a fault.
const None Kind = "none"

// OfWrites are the faults of a write, OfEvents those of an event and OfWatches those of all
// watches of a kind, OfNamespaces those of all writes into a namespace, and OfStarts those of a
// program that starts.
var (
	OfWrites = []Kind{
		KillBefore, KillAfter, Lost, Hang, Status409, Status422, Status429, Status500, Status503, Status504,
	}
	OfEvents  = []Kind{EventDelayed, EventDropped, EventDuplicated}
	OfWatches = []Kind{WatchClosed, WatchExpired}

	OfNamespaces = []Kind{SlowWebhook, SlowWebhook29s}
	OfStarts     = []Kind{Lagging, Lagging1s, Lagging60s}
)

// Key names a write or an event by what it is, so that another run of the same story has it,
// too.
type Key struct {
	// Verb is create, update, patch or delete, or the type of an event in capitals.
	Verb string
	// Resource is the kind with its group, such as clusterprofiles.multicluster.x-k8s.io,
	// and perhaps a subresource after a slash.
	Resource string
	// Object is namespace/name, or name.
	Object string
	// N counts, from one, those that are alike in everything else.
	N int
}

// String returns the key's fields, separated by spaces.
func (k Key) String() string { return fmt.Sprintf("%s %s %s %d", k.Verb, k.Resource, k.Object, k.N) }

// ParseKey reads what String returns.
func ParseKey(text string) (Key, error) {
	fields := strings.Fields(text)
	const parts = 4
	if len(fields) != parts {
		return Key{}, fmt.Errorf("%q is not a verb, a resource, an object and a number", text)
	}
	n, err := strconv.Atoi(fields[3])
	if err != nil || n < 1 {
		return Key{}, fmt.Errorf("%q does not end with a positive number", text)
	}
	return Key{Verb: fields[0], Resource: fields[1], Object: fields[2], N: n}, nil
}

// Fault is one fault. Faults of all watches of a kind use only the key's Resource, those of all
// writes into a namespace only its Object.
type Fault struct {
	Kind Kind
	Key  Key
}

// statuses are the answers of the API server's own faults.
var statuses = map[Kind]struct {
	code            int
	reason, message string
}{
	Status409: {http.StatusConflict, "Conflict", "the object has been modified (injected)"},
	Status422: {http.StatusUnprocessableEntity, "Invalid", "the object is invalid (injected)"},
	Status429: {http.StatusTooManyRequests, "TooManyRequests", "too many requests (injected)"},
	Status500: {http.StatusInternalServerError, "InternalError", "internal error (injected)"},
	Status503: {http.StatusServiceUnavailable, "ServiceUnavailable", "service unavailable (injected)"},
	Status504: {http.StatusGatewayTimeout, "Timeout", "request did not complete in time (injected)"},
}
