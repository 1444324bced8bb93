package charts

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
)

// testConfigurationOfAgents gives all clusters a configuration, one of them another one, and
// that one an error. The test plays OCM's addon manager, which chooses each cluster's
// configuration.
func testConfigurationOfAgents(t *testing.T) {
	s := newShell(t)
	s.condition(s.join(metav1.ConditionTrue), "ProfilesSynced", metav1.ConditionTrue)
	s.wire.Settle(t, patience, settled)
	without := s.join(metav1.ConditionTrue)
	s.condition(without, "ProfilesSynced", metav1.ConditionTrue)
	s.wire.Settle(t, patience, settled)

	all := s.configuration("all", "a")
	definition := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "cluster-inventory"}}
	s.MustGet(definition)
	before := definition.DeepCopy()
	t.Cleanup(func() {
		apitest.Edit(s, definition, func(d *addonv1beta1.ClusterManagementAddOn) { d.Spec = before.Spec })
		apitest.EditStatus(s, definition, func(d *addonv1beta1.ClusterManagementAddOn) { d.Status = before.Status })
	})
	apitest.Edit(s, definition, func(d *addonv1beta1.ClusterManagementAddOn) {
		d.Spec.DefaultConfigs = append(d.Spec.DefaultConfigs,
			addonv1beta1.AddOnConfig{ConfigGroupResource: deploymentConfigs, ConfigReferent: all})
	})
	apitest.EditStatus(s, definition, func(d *addonv1beta1.ClusterManagementAddOn) {
		d.Status.DefaultConfigReferences = []addonv1beta1.DefaultConfigReference{{
			ConfigGroupResource: deploymentConfigs, DesiredConfig: &addonv1beta1.ConfigSpecHash{ConfigReferent: all},
		}}
	})
	var hash string
	s.Eventually("the manager writes the hash of the configuration", func() string {
		s.MustGet(definition)
		if hash = definition.Status.DefaultConfigReferences[0].DesiredConfig.SpecHash; hash == "" {
			return "there is none"
		}
		return ""
	})

	with := s.join(metav1.ConditionTrue)
	s.refer(with, s.revision, desired(all, hash))
	s.condition(with, "ConfigurationApplied", metav1.ConditionTrue)
	s.runsIn(with, "a")
	s.wire.Settle(t, patience, settled)
	if diff := cmp.Diff(s.addonWrites(without), s.addonWrites(with)); diff != "" {
		t.Errorf("writes of an addon that has a configuration (-without +with):\n%s", diff)
	}

	own := s.configuration("own", "b")
	apitest.Edit(s, with, func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Spec.Configs = []addonv1beta1.AddOnConfig{{ConfigGroupResource: deploymentConfigs, ConfigReferent: own}}
	})
	s.refer(with, s.revision, desired(own, ""))
	s.runsIn(with, "b")
	s.runsIn(without, "")

	config := &addonv1beta1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: own.Namespace, Name: own.Name}}
	setVariable := func(name, value string) {
		apitest.Edit(s, config, func(c *addonv1beta1.AddOnDeploymentConfig) {
			c.Spec.NodePlacement.NodeSelector = map[string]string{"zone": "c"}
			c.Spec.CustomizedVariables = []addonv1beta1.CustomizedVariable{{Name: name, Value: value}}
		})
	}
	setVariable("loglevel", "2")
	s.condition(with, "ConfigurationApplied", metav1.ConditionFalse)
	condition := apimeta.FindStatusCondition(with.Status.Conditions, "ConfigurationApplied")
	want := fmt.Sprintf("AddOnDeploymentConfig %s/%s: spec.customizedVariables[loglevel]: is unknown; "+
		"use claimLimit or logLevel", own.Namespace, own.Name)
	if condition.Reason != "InvalidConfiguration" || condition.Message != want {
		t.Errorf("the condition says %s: %s", condition.Reason, condition.Message)
	}
	s.runsIn(with, "b")
	setVariable("logLevel", "2")
	s.condition(with, "ConfigurationApplied", metav1.ConditionTrue)
	s.runsIn(with, "c")

	// Without a configuration, and without a problem, there is no condition.
	s.condition(without, "ProfilesSynced", metav1.ConditionTrue)
	if condition := apimeta.FindStatusCondition(without.Status.Conditions, "ConfigurationApplied"); condition != nil {
		t.Errorf("without a configuration: %+v", condition)
	}
}

var deploymentConfigs = addonv1beta1.ConfigGroupResource{
	Group: "addon.open-cluster-management.io", Resource: "addondeploymentconfigs",
}

// configuration creates a configuration with which agents run in a zone.
func (s *shell) configuration(name, zone string) addonv1beta1.ConfigReferent {
	s.T.Helper()
	config := &addonv1beta1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace("configs", nil),
		Name: name}}
	config.Spec.NodePlacement = &addonv1beta1.NodePlacement{NodeSelector: map[string]string{"zone": zone}}
	s.MustCreate(config)
	s.CleanUp(config)
	return addonv1beta1.ConfigReferent{Namespace: config.Namespace, Name: name}
}

var agentRevisions = addonv1beta1.ConfigGroupResource{
	Group: "inventory.open-cluster-management.io", Resource: "agentrevisions",
}

// desired returns the reference of a cluster that should have a configuration.
func desired(config addonv1beta1.ConfigReferent, hash string) addonv1beta1.ConfigReference {
	return addonv1beta1.ConfigReference{
		ConfigGroupResource: deploymentConfigs,
		DesiredConfig:       &addonv1beta1.ConfigSpecHash{ConfigReferent: config, SpecHash: hash},
	}
}

// refer plays OCM: the addon should have these configurations. It does so once the manager
// has done its first write, so that neither meets a conflict.
func (s *shell) refer(a *addonv1beta1.ManagedClusterAddOn, configs ...addonv1beta1.ConfigReference) {
	s.T.Helper()
	s.Eventually("the addon says which configurations it supports", func() string {
		s.MustGet(a)
		return cmp.Diff([]addonv1beta1.ConfigGroupResource{deploymentConfigs, agentRevisions}, a.Status.SupportedConfigs)
	})
	apitest.EditStatus(s, a, func(a *addonv1beta1.ManagedClusterAddOn) { a.Status.ConfigReferences = configs })
}

// runsIn waits until the agent is configured to run in a zone, or anywhere.
func (s *shell) runsIn(a *addonv1beta1.ManagedClusterAddOn, zone string) {
	s.T.Helper()
	s.Eventually("the agent runs in zone "+zone, func() string {
		work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
			Namespace: a.Namespace, Name: "addon-cluster-inventory-deploy-0",
		}}
		if !s.Find(work) {
			return "there is no agent"
		}
		selector := []byte(`"nodeSelector"`)
		if zone != "" {
			selector = []byte(`"nodeSelector":{"zone":"` + zone + `"}`)
		}
		for _, manifest := range work.Spec.Workload.Manifests {
			if bytes.Contains(manifest.Raw, selector) {
				if zone == "" {
					return string(manifest.Raw)
				}
				return ""
			}
		}
		if zone == "" {
			return ""
		}
		return "it does not"
	})
}

// changing lists the fields that differ between repeated writes.
var changing = regexp.MustCompile(`"resourceVersion":"[0-9]+"|"[0-9-]+T[0-9:]+Z"`)

// addonWrites lists the manager's writes to an addon. A write that was repeated after a
// conflict counts once.
func (s *shell) addonWrites(a *addonv1beta1.ManagedClusterAddOn) []string {
	s.T.Helper()
	var writes []string
	seen := map[string]bool{}
	for _, call := range s.wire.Writes("managedclusteraddons", "managedclusteraddons/status") {
		what := call.Method // the finalizers, with all of the addon
		if what != http.MethodPut {
			what += " " + changing.ReplaceAllString(call.Body, "")
		}
		if call.Mentions("/namespaces/"+a.Namespace+"/") && !seen[what] {
			seen[what] = true
			writes = append(writes, call.Method+" "+call.Resource)
		}
	}
	return writes
}
