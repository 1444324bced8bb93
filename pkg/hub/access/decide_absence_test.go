package access

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// secretAt is a Secret that is found, with a version to tell it by.
func secretAt(version string) found[corev1.Secret] {
	return found[corev1.Secret]{object: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}}
}

func serviceAt(version string) found[corev1.Service] {
	return found[corev1.Service]{object: &corev1.Service{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}}
}

func TestSharedObjectIsAbsentOnceAbsenceLasted(t *testing.T) {
	theOne := configuration{name: "cluster-proxy", userServer: true}
	changed := configuration{name: "cluster-proxy"}
	other := configuration{name: "another"}
	all := func() proxyFacts {
		return proxyFacts{
			served: true, configurations: []configuration{other, theOne}, secret: secretAt("1"), service: serviceAt("1"),
		}
	}
	without := func(change func(*proxyFacts)) proxyFacts {
		facts := all()
		change(&facts)
		return facts
	}
	type step struct {
		after  time.Duration
		facts  proxyFacts
		counts proxyFacts
		wait   time.Duration
	}
	noSecret := without(func(f *proxyFacts) { f.secret.object = nil })
	noService := without(func(f *proxyFacts) { f.service.object = nil })
	noAPI := without(func(f *proxyFacts) { f.served, f.configurations = false, nil })
	newAPI := without(func(f *proxyFacts) { f.unknown, f.configurations = "has not been read yet", nil })
	emptyAPI := without(func(f *proxyFacts) { f.configurations = []configuration{} })
	onlyOther := without(func(f *proxyFacts) { f.configurations = []configuration{other} })
	forbidden := without(func(f *proxyFacts) { f.unknown, f.configurations = "may not be read", nil })
	const lasts, restored = 10 * time.Second, time.Minute
	const notFound = "was not found, which may be only for a moment"

	tests := map[string]struct {
		options ClusterProxyOptions
		steps   []step
	}{
		"the Secret is replaced": {steps: []step{
			{0, all(), all(), 0},
			{time.Hour, noSecret, all(), lasts},
			{300 * time.Millisecond, all(), all(), 0},
		}},
		"the Secret is gone": {steps: []step{
			{0, all(), all(), 0},
			{time.Hour, noSecret, all(), lasts},
			{lasts, noSecret, noSecret, 0},
		}},
		"the Service is gone, and the Secret a moment later": {steps: []step{
			{0, all(), all(), 0},
			{0, noService, all(), lasts},
			{time.Second, without(func(f *proxyFacts) { f.service.object, f.secret.object = nil, nil }), all(), 9 * time.Second},
			{9 * time.Second, without(func(f *proxyFacts) { f.service.object, f.secret.object = nil, nil }),
				noService, time.Second},
		}},
		"the Secret is changed: at once, although the Service is gone": {steps: []step{
			{0, all(), all(), 0},
			{0, noService, all(), lasts},
			{
				time.Second, without(func(f *proxyFacts) { f.service.object, f.secret = nil, secretAt("2") }),
				without(func(f *proxyFacts) { f.secret = secretAt("2") }), 9 * time.Second,
			},
		}},
		"the configuration is gone, another stays": {steps: []step{
			{0, all(), all(), 0},
			{0, onlyOther, all(), lasts},
			{lasts, onlyOther, onlyOther, 0},
		}},
		"the configuration is changed: at once": {steps: []step{
			{0, all(), all(), 0},
			{
				0, without(func(f *proxyFacts) { f.configurations = []configuration{changed} }),
				without(func(f *proxyFacts) { f.configurations = []configuration{changed} }), 0,
			},
		}},
		"the API is replaced, and the configuration restored later": {steps: []step{
			{0, all(), all(), 0},
			{0, noAPI, all(), restored},
			{59 * time.Second, newAPI, all(), 0},
			{time.Second, emptyAPI, all(), restored},
			{59 * time.Second, all(), all(), 0},
			{0, onlyOther, all(), lasts},
		}},
		"the API is replaced at once": {steps: []step{
			{0, all(), all(), 0},
			{0, newAPI, all(), 0},
			{0, all(), all(), 0},
		}},
		"the API is gone": {steps: []step{
			{0, all(), all(), 0},
			{0, noAPI, all(), restored},
			{restored, noAPI, noAPI, 0},
		}},
		"the API is replaced, and the configuration never restored": {steps: []step{
			{0, all(), all(), 0},
			{0, noAPI, all(), restored},
			{9 * time.Second, newAPI, all(), 0},
			{time.Second, emptyAPI, all(), restored},
			{restored, emptyAPI, emptyAPI, 0},
		}},
		"the API may not be read any more: that is said": {steps: []step{
			{0, all(), all(), 0},
			{0, forbidden, forbidden, 0},
		}},
		"everything is missing from the first: unknown, then absent": {steps: []step{
			{0, proxyFacts{}, proxyFacts{
				unknown: notFound,
				secret:  found[corev1.Secret]{unknown: notFound},
				service: found[corev1.Service]{unknown: notFound},
			}, lasts},
			{lasts, proxyFacts{}, proxyFacts{}, 0},
		}},
		"what is not used is not timed": {
			options: ClusterProxyOptions{URL: "https://proxy", CABundle: []byte("CA")},
			steps: []step{{0, without(func(f *proxyFacts) { f.service.object, f.secret.object = nil, nil }),
				without(func(f *proxyFacts) { f.service.object, f.secret.object = nil, nil }), 0}},
		},
		"the remembered CA is forgotten at once": {steps: []step{
			{0, without(func(f *proxyFacts) { f.remembered.object = &corev1.ConfigMap{} }),
				without(func(f *proxyFacts) { f.remembered.object = &corev1.ConfigMap{} }), 0},
			{0, all(), all(), 0},
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.options.Configuration = "cluster-proxy"
			a, now := absences{}, time.Unix(1_000_000, 0)
			for i, s := range test.steps {
				now = now.Add(s.after)
				counts, wait := a.settle(test.options, s.facts, now)
				if wait != s.wait {
					t.Errorf("step %d: waits %s, want %s", i+1, wait, s.wait)
				}
				if diff := cmp.Diff(s.counts, counts, cmp.AllowUnexported(
					proxyFacts{}, problem{}, configuration{},
					found[corev1.Secret]{}, found[corev1.Service]{}, found[corev1.ConfigMap]{},
				)); diff != "" {
					t.Errorf("step %d: what counts (-want +got):\n%s", i+1, diff)
				}
			}
		})
	}
}
