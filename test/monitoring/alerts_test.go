package monitoring

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

const chart = "../../charts/cluster-inventory/monitoring/"

func rules(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	all, err := Rules(chart + "alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]rulefmt.Rule{}
	for _, rule := range all {
		byName[rule.Alert] = rule
	}
	return byName
}

// values is a series by the minute, with a gap where ok is false.
type values func(minute int) (value float64, ok bool)

func always(value float64) values { return func(int) (float64, bool) { return value, true } }

// from is one value until a minute, and another from then on.
func from(minute int, before, after float64) values {
	return func(now int) (float64, bool) {
		if now < minute {
			return before, true
		}
		return after, true
	}
}

func until(minute int, value float64) values {
	return func(now int) (float64, bool) { return value, now < minute }
}

// rate is a counter that grows by so much every minute.
func rate(perMinute float64) values {
	return func(minute int) (float64, bool) { return perMinute * float64(minute), true }
}

// steps is a gauge that is high for some minutes and low for one, again and again.
func steps(high, low float64, minutes int) values {
	return func(minute int) (float64, bool) {
		if minute%(minutes+1) == minutes {
			return low, true
		}
		return high, true
	}
}

// counted is a gauge that is counted again from a minute on, that many a minute.
func counted(start int, all, perMinute float64) values {
	return func(minute int) (float64, bool) {
		if minute < start {
			return all, true
		}
		return min(all, float64(minute-start)*perMinute), true
	}
}

func stored(t *testing.T, all map[string]values, minutes int) *Store {
	t.Helper()
	s := NewStore()
	for text, values := range all {
		of, err := parser.ParseMetric(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for minute := range minutes + 1 {
			if value, ok := values(minute); ok {
				if err := s.Add(of, time.Unix(int64(60*minute), 0), value); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return s
}

const (
	build    = `cluster_inventory_build_info{version="v1",instance="a"}`
	leads    = `leader_election_master_status{name="cluster-inventory-manager",instance="a"}`
	standsBy = `leader_election_master_status{name="cluster-inventory-manager",instance="b"}`
)

func profiles(state string) string {
	return fmt.Sprintf(`cluster_inventory_profiles{state=%q,instance="a"}`, state)
}

func policy(name string) string {
	return fmt.Sprintf(`cluster_inventory_policy_enforced{policy=%q,instance="a"}`, name)
}

func credentials(state string) string {
	return fmt.Sprintf(`cluster_inventory_credentials{state=%q}`, state)
}

func mode(writer, mode string) string {
	return fmt.Sprintf(`cluster_inventory_upstream_mode{writer=%q,mode=%q}`, writer, mode)
}

func addons(condition, status, reason string) string {
	return fmt.Sprintf(`cluster_inventory_addons{condition=%q,status=%q,reason=%q}`, condition, status, reason)
}

func agents(state string) string {
	return fmt.Sprintf(`cluster_inventory_agents{revision="r",state=%q}`, state)
}

func writes(outcome string) string {
	return fmt.Sprintf(`cluster_inventory_writes_total{resource="clusterprofiles/status",verb="patch",outcome=%q}`, outcome)
}

// delays are the buckets of a histogram of which some observations per minute are slow.
func delays(fast, slow float64) map[string]values {
	const bucket = `cluster_inventory_profile_delay_seconds_bucket{le=%q}`
	return map[string]values{
		fmt.Sprintf(bucket, "1"): rate(fast), fmt.Sprintf(bucket, "30"): rate(fast),
		fmt.Sprintf(bucket, "60"): rate(fast + slow), fmt.Sprintf(bucket, "+Inf"): rate(fast + slow),
	}
}

func TestAlerts(t *testing.T) {
	type fires []string // descriptions
	tests := map[string]map[string]struct {
		series  map[string]values
		minutes int
		want    fires
	}{
		"ClusterInventoryDown": {
			"scraped":            {series: map[string]values{build: always(1)}, minutes: 60},
			"gone for a moment":  {series: map[string]values{build: until(5, 1)}, minutes: 12},
			"gone":               {series: map[string]values{build: until(5, 1)}, minutes: 30, want: fires{"ClusterProfiles and copies of tokens stay as they are, and are not withdrawn either."}},
			"another takes over": {series: map[string]values{build: until(5, 1), `cluster_inventory_build_info{instance="b"}`: always(1)}, minutes: 30},
		},
		"ClusterInventoryNoLeader": {
			"one leads, one stands by":   {series: map[string]values{leads: always(1), standsBy: always(0)}, minutes: 20},
			"the other one takes over":   {series: map[string]values{leads: from(5, 1, 0), standsBy: from(6, 0, 1)}, minutes: 20},
			"a stranger holds the Lease": {series: map[string]values{leads: from(5, 1, 0), standsBy: always(0), build: always(1)}, minutes: 20, want: fires{"The managers run, but none of them reconciles."}},
			"none leads":                 {series: map[string]values{leads: from(5, 1, 0), standsBy: always(0)}, minutes: 20, want: fires{"The managers run, but none of them reconciles."}},
		},
		"ClusterInventoryPolicyNotEnforced": {
			"all are":                     {series: map[string]values{policy("a"): always(1), policy("b"): always(1)}, minutes: 60},
			"one is not for a moment":     {series: map[string]values{policy("a"): always(1), policy("b"): steps(0, 1, 4)}, minutes: 60},
			"one is not":                  {series: map[string]values{policy("a"): always(1), policy("b"): from(5, 1, 0)}, minutes: 20, want: fires{"b does not limit what the manager may write, or the manager cannot tell. Its log says why."}},
			"nothing is known at a start": {series: map[string]values{build: always(1)}, minutes: 60},
		},
		"ClusterInventoryProfilesDropped": {
			"as many as before":       {series: map[string]values{profiles("Synced"): always(1000)}, minutes: 120},
			"some clusters leave":     {series: map[string]values{profiles("Synced"): from(70, 1000, 900)}, minutes: 120},
			"a restart counts anew":   {series: map[string]values{profiles("Synced"): counted(70, 1000, 200)}, minutes: 120},
			"a third is gone":         {series: map[string]values{profiles("Synced"): from(70, 1000, 650)}, minutes: 85, want: fires{"650 remain. Check whether a ManagedClusterSet, a binding or a Placement was changed by mistake."}},
			"a third is gone for now": {series: map[string]values{profiles("Synced"): from(70, 1000, 650)}, minutes: 75},
		},
		"ClusterInventoryWriteFailed": {
			"none":          {series: map[string]values{profiles("WriteFailed"): always(0)}, minutes: 60},
			"for a moment":  {series: map[string]values{profiles("WriteFailed"): steps(3, 0, 10)}, minutes: 60},
			"for long":      {series: map[string]values{profiles("WriteFailed"): from(10, 0, 3)}, minutes: 60, want: fires{"3 cannot be written. The condition ProfilesSynced of the clusters' addons says why."}},
			"other states":  {series: map[string]values{profiles("Synced"): always(7), profiles("LeftAlone"): always(7)}, minutes: 60},
			"by namespaces": {series: map[string]values{`cluster_inventory_profiles{namespace="a",state="WriteFailed"}`: always(1), `cluster_inventory_profiles{namespace="b",state="WriteFailed"}`: always(1)}, minutes: 60, want: fires{"2 cannot be written. The condition ProfilesSynced of the clusters' addons says why."}},
		},
		"ClusterInventorySelectionUnknown": {
			"for some minutes": {series: map[string]values{profiles("SelectionUnknown"): from(40, 0, 5)}, minutes: 60},
			"for long":         {series: map[string]values{profiles("SelectionUnknown"): from(10, 0, 5)}, minutes: 60, want: fires{"5 pairs of namespace and cluster are undecided, and stay as they are. The condition ProfilesSynced of the clusters' addons, and events of the namespaces' bindings, say why."}},
		},
		"ClusterInventoryForeignProfile": {
			"none": {series: map[string]values{profiles("ForeignProfile"): always(0)}, minutes: 60},
			"some": {series: map[string]values{profiles("ForeignProfile"): always(2)}, minutes: 60, want: fires{"2 are left alone."}},
		},
		"ClusterInventoryUpstreamWriter": {
			"all off":                     {series: map[string]values{mode("registration", "Off"): always(1), mode("registration", "On"): always(0), mode("registration", "Unknown"): always(0)}, minutes: 60},
			"cluster-proxy writes itself": {series: map[string]values{mode("cluster-proxy", "On"): always(1)}, minutes: 60},
			"the gate is on":              {series: map[string]values{mode("registration", "On"): always(1), mode("registration", "Off"): always(0)}, minutes: 60, want: fires{"Its mode is On. As long as it is not Off, this addon writes no ClusterProfiles."}},
			"the syncer may be on":        {series: map[string]values{mode("managed-serviceaccount", "Unknown"): always(1)}, minutes: 60, want: fires{"Its mode is Unknown. As long as it is not Off, this addon writes no copies of tokens."}},
			"unknown after a start":       {series: map[string]values{mode("registration", "Unknown"): from(2, 1, 0), mode("registration", "Off"): from(2, 0, 1)}, minutes: 60},
		},
		"ClusterInventoryTokenNotRenewed": {
			"renewed in time":   {series: map[string]values{"cluster_inventory_credential_expiry_seconds": func(m int) (float64, bool) { return float64(3600 - 60*(m%45)), true }}, minutes: 170},
			"no token":          {series: map[string]values{build: always(1)}, minutes: 60},
			"not renewed":       {series: map[string]values{"cluster_inventory_credential_expiry_seconds": func(m int) (float64, bool) { return float64(3600 - 60*m), true }}, minutes: 57, want: fires{"It expires in 3m 0s. The agent of managed-serviceaccount on its cluster should have renewed it."}},
			"renewed at last":   {series: map[string]values{"cluster_inventory_credential_expiry_seconds": from(57, 300, 3600)}, minutes: 57},
			"one of two is old": {series: map[string]values{`cluster_inventory_credential_expiry_seconds{instance="a"}`: always(9000), `cluster_inventory_credential_expiry_seconds{instance="b"}`: always(120)}, minutes: 30, want: fires{"It expires in 2m 0s. The agent of managed-serviceaccount on its cluster should have renewed it."}},
		},
		"ClusterInventoryCredentialsNotCopied": {
			"copied, or taken back on purpose": {series: map[string]values{credentials("Copied"): always(9), credentials("Draining"): always(9), credentials("CopyFailed"): always(0)}, minutes: 60},
			"refused": {series: map[string]values{credentials("InvalidSource"): always(2), credentials("NoTarget"): always(1)}, minutes: 60, want: fires{
				"In the state InvalidSource: 2. The condition CredentialsSynced of their clusters' addons says why.",
				"In the state NoTarget: 1. The condition CredentialsSynced of their clusters' addons says why.",
			}},
		},
		"ClusterInventoryAgentsDegraded": {
			"all is well": {series: map[string]values{
				addons("PropertiesPublished", "True", "Published"): always(2000), agents("Completed"): always(2000),
			}, minutes: 60},
			"a few, as always": {series: map[string]values{
				addons("Available", "Unknown", "ManagedClusterAddOnLeaseUpdateStopped"): always(60), agents("Completed"): always(2000),
			}, minutes: 60},
			"many for a moment": {series: map[string]values{
				addons("Available", "False", "ProbeUnavailable"): steps(900, 0, 10), agents("Completed"): always(2000),
			}, minutes: 60},
			"2000 agents cannot use their kubeconfig": {series: map[string]values{
				addons("PropertiesPublished", "False", "HubKubeconfigInvalid"): from(10, 0, 2000), agents("Completed"): always(2000),
			}, minutes: 40, want: fires{"On 2k clusters the condition PropertiesPublished of the addon is not True, because of HubKubeconfigInvalid. kubectl inventory doctor names some of them."}},
			"the manager's own conditions have alerts of their own": {series: map[string]values{
				addons("ProfilesSynced", "False", "WriteFailed"): always(2000), agents("Completed"): always(2000),
			}, minutes: 60},
		},
		"ClusterInventoryRolloutStalled": {
			"none": {series: map[string]values{agents("Completed"): always(2000)}, minutes: 180},
			"it goes on": {series: map[string]values{
				agents("Completed"): rate(10), agents("Progressing"): always(10), agents("Waiting"): always(500),
			}, minutes: 180},
			"it has just begun": {series: map[string]values{
				agents("Completed"): always(2000), agents("Progressing"): from(100, 0, 10),
			}, minutes: 120},
			"nothing is completed any more": {series: map[string]values{
				agents("Completed"): from(20, 1990, 1995), agents("Progressing"): always(5), agents("Waiting"): always(100),
			}, minutes: 180, want: fires{"On 5 clusters the agent is being upgraded or was not, and no cluster was completed within an hour. kubectl inventory rollout names those on which it failed."}},
			"clusters wait only, for instance for minSuccessTime": {series: map[string]values{
				agents("Completed"): always(10), agents("Waiting"): always(100),
			}, minutes: 180},
		},
		"ClusterInventorySlow": {
			"fast":                {series: delays(1000, 1), minutes: 60},
			"nothing is measured": {series: delays(0, 0), minutes: 60},
			"slow":                {series: delays(100, 10), minutes: 60, want: fires{"One change in a hundred takes 56.7s or longer."}},
		},
		"ClusterInventoryWritesFail": {
			"conflicts and refusals": {series: map[string]values{writes("Success"): rate(10), writes("Conflict"): rate(10), writes("Refused"): rate(10)}, minutes: 60},
			"a few":                  {series: map[string]values{writes("Success"): rate(100), writes("Failed"): rate(5)}, minutes: 60},
			"a quarter":              {series: map[string]values{writes("Success"): rate(30), writes("Failed"): rate(10)}, minutes: 60, want: fires{"25% of the writes of clusterprofiles/status get no answer, or the answer that the server is busy or broken. Check its admission webhooks."}},
			"nothing is written":     {series: map[string]values{writes("Success"): always(7), writes("Failed"): always(7)}, minutes: 60},
		},
		"ClusterInventoryWritesDenied": {
			"others refuse":    {series: map[string]values{writes("Success"): rate(10), writes("Refused"): rate(10)}, minutes: 60},
			"long ago":         {series: map[string]values{writes("Denied"): from(5, 0, 3)}, minutes: 60},
			"at each attempt":  {series: map[string]values{writes("Success"): rate(100), writes("Denied"): rate(0.5)}, minutes: 60, want: fires{"The manager cannot write clusterprofiles/status. Its log names the policy."}},
			"for some minutes": {series: map[string]values{writes("Denied"): from(57, 0, 3)}, minutes: 60},
		},
		"ClusterInventoryPropertiesRejected": {
			"none": {series: map[string]values{`cluster_inventory_properties_rejected{reason="Limit"}`: always(0)}, minutes: 120},
			"some": {series: map[string]values{`cluster_inventory_properties_rejected{reason="Limit"}`: always(40)}, minutes: 120, want: fires{"40 claims are left out because of Limit. The condition ProfilesSynced of the clusters' addons names them."}},
		},
	}
	all := rules(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(tests))); diff != "" {
		t.Errorf("alerts (-in the chart +tested):\n%s", diff)
	}
	for name, situations := range tests {
		for situation, test := range situations {
			t.Run(name+"/"+situation, func(t *testing.T) {
				s := stored(t, test.series, test.minutes)
				start, end := time.Unix(0, 0), time.Unix(int64(60*test.minutes), 0)
				firing, err := s.Firing(t.Context(), all[name], start, end, time.Minute)
				if err != nil {
					t.Fatal(err)
				}
				var got fires
				for _, alert := range firing {
					got = append(got, alert.Text)
				}
				slices.Sort(got)
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("fires (-want +got):\n%s", diff)
				}
			})
		}
	}
}
