package fleet

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// manifests are OCM's own, as its operators would apply them.
type manifests struct{ dir string }

const (
	managementNamespace = "open-cluster-management"
	hubNamespace        = "open-cluster-management-hub"
	agentNamespace      = "open-cluster-management-agent"
	addonNamespace      = "open-cluster-management-agent-addon"
)

// hubValues renders the hub manifests as the operator would for a
// ClusterManager with every feature gate off.
func hubValues(ca []byte) map[string]any {
	bundle := base64.StdEncoding.EncodeToString(ca)
	return map[string]any{
		"ClusterManagerName":                "cluster-manager",
		"ClusterManagerNamespace":           hubNamespace,
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

// hubRBAC are the files the operator applies with every gate off; the work
// controller has none then, because it does not run.
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

// hubCRDs are those of a hub with every gate off: the operator brings the
// ClusterProfile CRD only with its gate.
func (m manifests) hubCRDs(ca []byte, webhooks string) ([]*unstructured.Unstructured, error) {
	objects, err := m.glob("cluster-manager/hub/crds/*.yaml", hubValues(ca))
	if err != nil {
		return nil, err
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetName() == "clusterprofiles.multicluster.x-k8s.io"
	})
	for _, o := range objects {
		if err := pointToURL(o, webhooks, "spec", "conversion", "webhook", "clientConfig"); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

func (m manifests) hubAccess(ca []byte) ([]*unstructured.Unstructured, error) {
	return m.files(hubRBAC, hubValues(ca))
}

func (m manifests) hubAdmission(ca []byte, webhooks string) ([]*unstructured.Unstructured, error) {
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
			if err := pointToURL(&unstructured.Unstructured{Object: hook.(map[string]any)}, webhooks, "clientConfig"); err != nil {
				return nil, err
			}
		}
		if err := unstructured.SetNestedSlice(o.Object, hooks, "webhooks"); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// spokeCRDs are those of a klusterlet with every gate off.
func (m manifests) spokeCRDs() ([]*unstructured.Unstructured, error) {
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

func (m manifests) glob(pattern string, values map[string]any) ([]*unstructured.Unstructured, error) {
	paths, err := filepath.Glob(filepath.Join(m.dir, pattern))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no manifests match %s in %s", pattern, m.dir)
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

func (m manifests) files(names []string, values map[string]any) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, name := range names {
		more, err := renderFile(filepath.Join(m.dir, "cluster-manager", "hub", name), values)
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

// render fills a manifest; a value that is not known is an error, so that a
// newer OCM cannot silently get an empty one.
func render(text string, values map[string]any) ([]*unstructured.Unstructured, error) {
	tmpl, err := template.New("manifest").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := tmpl.Execute(&out, values); err != nil {
		return nil, err
	}
	return decode(&out)
}

// decode reads objects from YAML documents.
func decode(text io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(text, 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			dropRemovals(o)
			objects = append(objects, o)
		}
	}
}

// dropRemovals takes out annotations whose key ends in "-": by them OCM's
// operator, which merges, means "remove this one".
func dropRemovals(o *unstructured.Unstructured) {
	annotations := o.GetAnnotations()
	if len(annotations) == 0 {
		return
	}
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasSuffix(key, "-") })
	o.SetAnnotations(annotations)
}

// apply brings the objects about and waits till new kinds are served.
func apply(ctx context.Context, c client.Client, objects ...*unstructured.Unstructured) error {
	for _, o := range objects {
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("fleet"), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		if err := waitEstablished(ctx, c, o.GetName()); err != nil {
			return err
		}
	}
	return nil
}

func waitEstablished(ctx context.Context, c client.Client, name string) error {
	return wait(ctx, "CRD "+name, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			return false, err
		}
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
}

// object builds a simple object from YAML that is part of this package.
func object(text string, args ...any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.TrimSpace(fmt.Sprintf(text, args...))), &o.Object); err != nil {
		panic(fmt.Sprintf("fleet: %v in:\n%s", err, text))
	}
	return o
}
