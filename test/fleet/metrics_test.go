package fleet

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const someMetrics = `# HELP apiserver_request_total [STABLE] Counter of apiserver requests
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="multicluster.x-k8s.io",resource="clusterprofiles",scope="resource",subresource="status",verb="PATCH",version="v1alpha1"} 7
apiserver_request_total{code="409",component="apiserver",dry_run="",group="multicluster.x-k8s.io",resource="clusterprofiles",scope="resource",subresource="status",verb="PATCH",version="v1alpha1"} 2
apiserver_request_total{code="201",component="apiserver",dry_run="",group="multicluster.x-k8s.io",resource="clusterprofiles",scope="resource",subresource="",verb="POST",version="v1alpha1"} 3
apiserver_request_total{code="422",component="apiserver",dry_run="All",group="multicluster.x-k8s.io",resource="clusterprofiles",scope="resource",subresource="",verb="POST",version="v1alpha1"} 13
apiserver_request_total{code="200",component="apiserver",dry_run="",group="multicluster.x-k8s.io",resource="clusterprofiles",scope="cluster",subresource="",verb="LIST",version="v1alpha1"} 11
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="secrets",scope="resource",subresource="",verb="POST",version="v1"} 5
# TYPE process_open_fds gauge
process_open_fds 12
`

func TestParseWrites(t *testing.T) {
	for name, test := range map[string]struct {
		resources []string
		want      map[string]int
	}{
		"attempts of all outcomes add up, reads and dry runs do not count": {
			resources: []string{"clusterprofiles"},
			want:      map[string]int{"PATCH clusterprofiles/status": 9, "POST clusterprofiles": 3},
		},
		"several resources": {
			resources: []string{"secrets", "clusterclaims", "clusterprofiles"},
			want:      map[string]int{"POST secrets": 5, "PATCH clusterprofiles/status": 9, "POST clusterprofiles": 3},
		},
		"never written": {resources: []string{"clusterclaims"}, want: map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseWrites(strings.NewReader(someMetrics), test.resources)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := parseWrites(strings.NewReader("no metrics{"), nil); err == nil {
		t.Error("nonsense was parsed")
	}
}

func TestAnonymousRSS(t *testing.T) {
	got, err := anonymousRSS("Name:\tmanager\nVmRSS:\t   80000 kB\nRssAnon:\t   34567 kB\nRssFile:\t   45433 kB\n")
	if err != nil || got != 34567*1024 {
		t.Errorf("got %d, %v", got, err)
	}
	for _, bad := range []string{"", "RssAnon:\t12 MB\n", "RssAnon:\n"} {
		if got, err := anonymousRSS(bad); err == nil {
			t.Errorf("%q gives %d", bad, got)
		}
	}
}
