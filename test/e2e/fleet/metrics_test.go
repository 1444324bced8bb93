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
apiserver_request_total{code="200",component="apiserver",dry_run="",group="multicluster.x-k8s.io",resource="clusterprofiles",scope="cluster",subresource="",verb="LIST",version="v1alpha1"} 11
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="secrets",scope="resource",subresource="",verb="POST",version="v1"} 5
# TYPE process_open_fds gauge
process_open_fds 12
`

func TestParseWriteCounts(t *testing.T) {
	for name, test := range map[string]struct {
		resources []string
		want      map[Write]int
	}{
		"attempts of all outcomes add up, reads do not count": {
			resources: []string{"clusterprofiles.multicluster.x-k8s.io"},
			want: map[Write]int{
				{Resource: "clusterprofiles.multicluster.x-k8s.io", Subresource: "status", Verb: "PATCH"}: 9,
				{Resource: "clusterprofiles.multicluster.x-k8s.io", Verb: "POST"}:                         3,
			},
		},
		"core resources have no group": {
			resources: []string{"secrets"},
			want:      map[Write]int{{Resource: "secrets", Verb: "POST"}: 5},
		},
		"a resource of another group is another": {
			resources: []string{"clusterprofiles"},
			want:      map[Write]int{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseWriteCounts(strings.NewReader(someMetrics), test.resources)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := parseWriteCounts(strings.NewReader("no metrics{"), nil); err == nil {
		t.Error("nonsense was parsed")
	}
}

func TestWritesBetween(t *testing.T) {
	post, patch := Write{Resource: "a", Verb: "POST"}, Write{Resource: "a", Subresource: "status", Verb: "PATCH"}
	got := WritesBetween(map[Write]int{post: 4, patch: 1}, map[Write]int{post: 4, patch: 3})
	if diff := cmp.Diff(map[Write]int{patch: 2}, got); diff != "" {
		t.Error(diff)
	}
	if got := patch.String(); got != "PATCH a/status" {
		t.Errorf("reads %q", got)
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
