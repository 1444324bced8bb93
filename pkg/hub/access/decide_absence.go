package access

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// absences hold back the absence of shared objects until it counts.
type absences struct {
	configurations kube.Held[*[]configuration]
	apiWasGone     bool // since the relevant configuration was there
	service        kube.Held[*corev1.Service]
	secret         kube.Held[*corev1.Secret]
}

// settle returns the facts that count, and the time until they may change by themselves;
// zero means never. The absence of the ConfigMap that stores the CA is not held back:
// users delete it to have the old CA forgotten at once.
func (a *absences) settle(o ClusterProxyOptions, facts proxyFacts, now time.Time) (proxyFacts, time.Duration) {
	facts, wait := a.settleConfigurations(o, facts, now)
	if o.URL == "" {
		facts.service = settleObject(&a.service, facts.service, now, &wait)
	}
	if len(o.CABundle) == 0 {
		facts.secret = settleObject(&a.secret, facts.secret, now, &wait)
	}
	return facts, wait
}

// settleConfigurations holds back the absence of the relevant configuration, alone or with
// its API. A new API is followed again, so that the objects of the old one are unknown for
// a moment, and then missing until they are restored. So if the API was gone, absence counts only
// after the time that other objects have to be restored, too.
func (a *absences) settleConfigurations(
	o ClusterProxyOptions, facts proxyFacts, now time.Time,
) (proxyFacts, time.Duration) {
	var last *[]configuration
	var wait time.Duration
	if facts.unknown != "" {
		last = a.configurations.Unknown()
		if !watch.IsTransient(facts.unknown) {
			return facts, 0
		}
	} else {
		var found *[]configuration
		isTheOne := func(c configuration) bool { return c.name == o.Configuration }
		if facts.served && slices.ContainsFunc(facts.configurations, isTheOne) {
			found = &facts.configurations
		}
		patience := kube.AbsenceCounts
		a.apiWasGone = found == nil && (a.apiWasGone || !facts.served)
		if a.apiWasGone && a.configurations.Any() {
			patience = watch.RestoreTime
		}
		last, wait = a.configurations.SettleAfter(patience, found, now)
	}
	switch {
	case last != nil:
		facts.unknown, facts.served, facts.configurations = "", true, *last
	case wait > 0:
		facts.unknown = watch.NotFoundYet
	}
	return facts, wait
}

// settleObject holds back the absence of one object, and shortens wait to the time at which
// it counts.
func settleObject[T any](held *kube.Held[*T], f found[T], now time.Time, wait *time.Duration) found[T] {
	if f.unknown != "" {
		return f
	}
	last, left := held.Settle(f.object, now)
	*wait = kube.Sooner(*wait, left)
	if last == nil && left > 0 {
		return found[T]{unknown: watch.NotFoundYet}
	}
	return found[T]{object: last}
}
