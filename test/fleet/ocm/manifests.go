package ocm

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/objects"
)

// Namespaces of a stock installation.
const (
	// ManagementNamespace is where the operator and hub administrators work.
	ManagementNamespace = "open-cluster-management"
	// HubNamespace is where the controllers of the hub run.
	HubNamespace = "open-cluster-management-hub"
	// AgentNamespace is where the agents of a spoke run.
	AgentNamespace = "open-cluster-management-agent"
	// AddonNamespace is where addon agents of a spoke run.
	AddonNamespace = "open-cluster-management-agent-addon"
)

// Manifests are OCM's own, rendered as its operators would apply them.
type Manifests struct {
	// Dir is the folder manifests of OCM's sources.
	Dir string
}

// hubValues renders the hub manifests as the operator would for a
// ClusterManager with every feature gate off.
func hubValues(ca []byte) map[string]any {
	bundle := base64.StdEncoding.EncodeToString(ca)
	return map[string]any{
		"ClusterManagerName":                "cluster-manager",
		"ClusterManagerNamespace":           HubNamespace,
		"Labels":                            map[string]string{},
		"AddonAPIServiceCABundle":           bundle,
		"RegistrationAPIServiceCABundle":    bundle,
		"RegistrationWebhook":               map[string]any{"Port": 9443},
		"ClusterProfileEnabled":             false,
		"ClusterImporterEnabled":            false,
		"GRPCAuthEnabled":                   false,
		"CloudEventsDriverEnabled":          false,
		"ManagedClusterIdentityCreatorRole": "",
	}
}

// hubRBAC are the files that the operator applies with every gate off. The work
// controller does not run then and has none.
var hubRBAC = []string{
	"registration/clusterrole.yaml",
	"registration/clusterrolebinding.yaml",
	"registration/serviceaccount.yaml",
	"registration/webhook-clusterrole.yaml",
	"registration/webhook-clusterrolebinding.yaml",
	"registration/webhook-serviceaccount.yaml",
	"work/webhook-clusterrole.yaml",
	"work/webhook-clusterrolebinding.yaml",
	"work/webhook-serviceaccount.yaml",
	"work/executor-admin-clusterrole.yaml",
	"placement/clusterrole.yaml",
	"placement/clusterrolebinding.yaml",
	"placement/serviceaccount.yaml",
	"addon-manager/clusterrole.yaml",
	"addon-manager/clusterrolebinding.yaml",
	"addon-manager/work-executor-admin-clusterrolebinding.yaml",
	"addon-manager/serviceaccount.yaml",
	"addon-manager/webhook-serviceaccount.yaml",
}

var hubWebhooks = []string{
	"registration/webhook-mutatingconfiguration.yaml",
	"registration/webhook-validatingconfiguration.yaml",
	"registration/webhook-clustersetbinding-validatingconfiguration.yaml",
}

// HubCRDs are those of a hub with every gate off: the operator brings the
// ClusterProfile CRD only with its gate.
func (m Manifests) HubCRDs(ca []byte, webhooks string) ([]*unstructured.Unstructured, error) {
	objects, err := m.glob("cluster-manager/hub/crds/*.yaml", hubValues(ca))
	if err != nil {
		return nil, err
	}
	objects = slices.DeleteFunc(objects, isProfileCRD)
	for _, o := range objects {
		if err := pointToURL(o, webhooks, "spec", "conversion", "webhook", "clientConfig"); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

func isProfileCRD(o *unstructured.Unstructured) bool {
	return o.GetName() == "clusterprofiles.multicluster.x-k8s.io"
}

// ProfileCRD is OCM's own ClusterProfile CRD, which comes with the gate.
func (m Manifests) ProfileCRD() ([]*unstructured.Unstructured, error) {
	return m.glob("cluster-manager/hub/crds/*multicluster.x-k8s.io_clusterprofiles.crd.yaml", hubValues(nil))
}

// RegistrationRole is the ClusterRole of the registration controller, with or without the
// gate by which it writes ClusterProfiles.
func (m Manifests) RegistrationRole(ca []byte, profiles bool) ([]*unstructured.Unstructured, error) {
	values := hubValues(ca)
	values["ClusterProfileEnabled"] = profiles
	return m.files([]string{"registration/clusterrole.yaml"}, values)
}

// RegistrationAccess is that role with the gate, and its binding to the controller's account.
func (m Manifests) RegistrationAccess() ([]*unstructured.Unstructured, error) {
	values := hubValues(nil)
	values["ClusterProfileEnabled"] = true
	return m.files([]string{"registration/clusterrole.yaml", "registration/clusterrolebinding.yaml"}, values)
}

// ControllerAccess is the ClusterRole of a controller with every gate off, and its binding to the
// controller's account. The controller is named by its folder: addon-manager, placement or
// registration.
func (m Manifests) ControllerAccess(controller string) ([]*unstructured.Unstructured, error) {
	return m.files([]string{controller + "/clusterrole.yaml", controller + "/clusterrolebinding.yaml"}, hubValues(nil))
}

// HubAccess are the service accounts of the hub with their roles.
func (m Manifests) HubAccess(ca []byte) ([]*unstructured.Unstructured, error) {
	return m.files(hubRBAC, hubValues(ca))
}

// HubAdmission are the webhook configurations of the hub.
func (m Manifests) HubAdmission(ca []byte, webhooks string) ([]*unstructured.Unstructured, error) {
	objects, err := m.files(hubWebhooks, hubValues(ca))
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		hooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		if err != nil {
			return nil, err
		}
		for _, hook := range hooks {
			if err := pointToURL(
				&unstructured.Unstructured{Object: hook.(map[string]any)}, webhooks, "clientConfig",
			); err != nil {
				return nil, err
			}
		}
		if err := unstructured.SetNestedSlice(o.Object, hooks, "webhooks"); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// SpokeCRDs are those of a klusterlet with every gate off.
func (m Manifests) SpokeCRDs() ([]*unstructured.Unstructured, error) {
	return m.glob("klusterlet/managed/0*.yaml", nil)
}

// pointToURL replaces the Service of a webhook's client configuration, because
// no Service has an address in a fleet.
func pointToURL(o *unstructured.Unstructured, server string, fields ...string) error {
	config, found, err := unstructured.NestedMap(o.Object, fields...)
	if err != nil || !found {
		return err
	}
	path, _, err := unstructured.NestedString(config, "service", "path")
	if err != nil {
		return err
	}
	delete(config, "service")
	config["url"] = server + path
	return unstructured.SetNestedMap(o.Object, config, fields...)
}

func (m Manifests) glob(pattern string, values map[string]any) ([]*unstructured.Unstructured, error) {
	paths, err := filepath.Glob(filepath.Join(m.Dir, pattern))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no manifests match %s in %s", pattern, m.Dir)
	}
	var objects []*unstructured.Unstructured
	for _, path := range paths {
		more, err := renderFile(path, values)
		if err != nil {
			return nil, err
		}
		objects = append(objects, more...)
	}
	return objects, nil
}

func (m Manifests) files(names []string, values map[string]any) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, name := range names {
		more, err := renderFile(filepath.Join(m.Dir, "cluster-manager", "hub", name), values)
		if err != nil {
			return nil, err
		}
		objects = append(objects, more...)
	}
	return objects, nil
}

func renderFile(path string, values map[string]any) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	objects, err := render(string(content), values)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return objects, nil
}

// render fills in a manifest. An unknown value is an error, so that a newer OCM
// does not silently get an empty one.
func render(text string, values map[string]any) ([]*unstructured.Unstructured, error) {
	tmpl, err := template.New("manifest").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := tmpl.Execute(&out, values); err != nil {
		return nil, err
	}
	return objects.Decode(&out)
}
