package apitest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// CRDs is a source of custom resource definitions; it is read when a server
// starts.
type CRDs func() ([]*apiextensionsv1.CustomResourceDefinition, error)

const (
	ocmAPIModule    = "open-cluster-management.io/api"
	sigMultiCluster = "sigs.k8s.io/cluster-inventory-api"
	clusterProxy    = "open-cluster-management.io/cluster-proxy@v0.10.0"
	msaModule       = "open-cluster-management.io/managed-serviceaccount"
	thisModule      = "open-cluster-management.io/cluster-inventory-addon"
)

// Hub is what an Open Cluster Management hub serves before this addon is
// installed: clusters, sets, bindings, placements, decisions, addons and works.
// Resources with several versions serve and store only the newest, because there is
// no conversion webhook here.
func Hub() CRDs { return newestOnly(HubInAllVersions()) }

// HubInAllVersions is Hub for programs that read older versions, too. Without a conversion
// webhook, an object has the same fields in all versions that know them.
func HubInAllVersions() CRDs {
	return ModuleFiles(ocmAPIModule,
		"cluster/v1/0000_00_clusters.open-cluster-management.io_managedclusters.crd.yaml",
		"cluster/v1beta2/0000_00_clusters.open-cluster-management.io_managedclustersets.crd.yaml",
		"cluster/v1beta2/0000_01_clusters.open-cluster-management.io_managedclustersetbindings.crd.yaml",
		"cluster/v1beta1/0000_02_clusters.open-cluster-management.io_placements.crd.yaml",
		"cluster/v1beta1/0000_03_clusters.open-cluster-management.io_placementdecisions.crd.yaml",
		"addon/v1beta1/0000_00_addon.open-cluster-management.io_clustermanagementaddons.crd.yaml",
		"addon/v1beta1/0000_01_addon.open-cluster-management.io_managedclusteraddons.crd.yaml",
		"addon/v1beta1/0000_02_addon.open-cluster-management.io_addondeploymentconfigs.crd.yaml",
		"work/v1/0000_00_work.open-cluster-management.io_manifestworks.crd.yaml",
	)
}

// Spoke returns what a stock klusterlet installs on a spoke: ClusterClaims and
// AppliedManifestWorks, but no ClusterProperties.
func Spoke() CRDs {
	return ModuleFiles(ocmAPIModule,
		"cluster/v1alpha1/0000_02_clusters.open-cluster-management.io_clusterclaims.crd.yaml",
		"work/v1/0000_01_work.open-cluster-management.io_appliedmanifestworks.crd.yaml",
	)
}

// AddOnPlacementScore is what Open Cluster Management's placement controller reads in addition
// to Hub.
func AddOnPlacementScore() CRDs {
	return ModuleFiles(ocmAPIModule,
		"cluster/v1alpha1/0000_05_clusters.open-cluster-management.io_addonplacementscores.crd.yaml")
}

// AddOnTemplate is what Open Cluster Management's addon manager reads besides Hub.
func AddOnTemplate() CRDs {
	return ModuleFiles(ocmAPIModule,
		"addon/v1alpha1/0000_03_addon.open-cluster-management.io_addontemplates.crd.yaml")
}

// ClusterProfile is SIG-Multicluster's definition, whose lists are maps.
func ClusterProfile() CRDs {
	return ModuleFiles(sigMultiCluster, "config/crd/bases/multicluster.x-k8s.io_clusterprofiles.yaml")
}

// PlacementDecision is SIG-Multicluster's definition.
func PlacementDecision() CRDs {
	return ModuleFiles(sigMultiCluster, "config/crd/bases/multicluster.x-k8s.io_placementdecisions.yaml")
}

// ManagedServiceAccount returns what the addon of that name installs on the hub.
func ManagedServiceAccount() CRDs {
	return ModuleFiles(msaModule, "charts/managed-serviceaccount/crds/"+
		"authentication.open-cluster-management.io_managedserviceaccounts.yaml")
}

// AgentRevision returns what this addon's chart installs on the hub.
func AgentRevision() CRDs {
	return ModuleFiles(thisModule, "charts/cluster-inventory/crds/"+
		"inventory.open-cluster-management.io_agentrevisions.yaml")
}

// AtomicClusterProfile returns ClusterProfile as Open Cluster Management ships it: the same
// schema with every list atomic.
func AtomicClusterProfile() CRDs {
	return func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
		crds, err := ClusterProfile()()
		if err != nil {
			return nil, err
		}
		for _, crd := range crds {
			for i := range crd.Spec.Versions {
				makeListsAtomic(crd.Spec.Versions[i].Schema.OpenAPIV3Schema)
			}
		}
		return crds, nil
	}
}

// ClusterProfileInTwoVersions returns ClusterProfile as SIG-Multicluster serves it after
// v0.1.3, a version that is not available as a Go module: also in v1alpha2, which has the
// same content without the deprecated credentialProviders, and stricter rules. It stores
// v1alpha1, which is deprecated: each response has a warning.
func ClusterProfileInTwoVersions() CRDs {
	return func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
		crds, err := ClusterProfile()()
		if err != nil {
			return nil, err
		}
		for _, crd := range crds {
			strict := crd.Spec.Versions[0].DeepCopy()
			strict.Name, strict.Served, strict.Storage = "v1alpha2", true, false
			makeProfilesStrict(strict.Schema.OpenAPIV3Schema)
			crd.Spec.Versions[0].Deprecated = true
			crd.Spec.Versions = append(crd.Spec.Versions, *strict)
		}
		return crds, nil
	}
}

func makeProfilesStrict(profile *apiextensionsv1.JSONSchemaProps) {
	at := func(schema apiextensionsv1.JSONSchemaProps, path ...string) *apiextensionsv1.JSONSchemaProps {
		for _, name := range path {
			schema = schema.Properties[name]
		}
		return &schema
	}
	length := func(schema *apiextensionsv1.JSONSchemaProps, least, most int64) apiextensionsv1.JSONSchemaProps {
		schema.MinLength, schema.MaxLength = &least, &most
		return *schema
	}
	manager := at(*profile, "spec", "clusterManager")
	name := length(at(*manager, "name"), 1, 63)
	name.Pattern = "^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
	manager.Properties["name"] = name

	status := at(*profile, "status")
	delete(status.Properties, "credentialProviders")
	providers := at(*status, "accessProviders")
	most := int64(64)
	providers.MaxItems = &most
	status.Properties["accessProviders"] = *providers
	provider := providers.Items.Schema
	provider.Properties["name"] = length(at(*provider, "name"), 1, 253)
	cluster := at(*provider, "cluster")
	cluster.Required = []string{"server"}
	server := length(at(*cluster, "server"), 1, 2048)
	server.Pattern = "^https?://[^/]+"
	cluster.Properties["server"] = server
	cluster.Properties["tls-server-name"] = length(at(*cluster, "tls-server-name"), 0, 253)
	proxy := *at(*cluster, "proxy-url")
	proxy.Pattern = "^((https?|socks5)://.+)?$"
	cluster.Properties["proxy-url"] = proxy
	extensions := *at(*cluster, "extensions")
	asMap := "map"
	extensions.XListType, extensions.XListMapKeys = &asMap, []string{"name"}
	cluster.Properties["extensions"] = extensions
	provider.Properties["cluster"] = *cluster
}

// ManagedProxyConfiguration returns what cluster-proxy installs on the hub.
func ManagedProxyConfiguration() CRDs {
	return ModuleFiles(clusterProxy, "charts/cluster-proxy/crds/managedproxyconfigurations.yaml")
}

// ModuleFiles returns files, one CRD each, in the directory of a module: of the required
// version, or of the one given after an "@".
func ModuleFiles(module string, paths ...string) CRDs {
	return func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
		dir, err := moduleDir(module)
		if err != nil {
			return nil, err
		}
		full := make([]string, 0, len(paths))
		for _, path := range paths {
			full = append(full, filepath.Join(dir, filepath.FromSlash(path)))
		}
		return Files(full...)()
	}
}

// Files are files with one CRD each.
func Files(paths ...string) CRDs {
	return func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
		var crds []*apiextensionsv1.CustomResourceDefinition
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("read CRD: %w", err)
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict(data, crd); err != nil {
				return nil, fmt.Errorf("parse CRD %s: %w", path, err)
			}
			crds = append(crds, crd)
		}
		return crds, nil
	}
}

// YAML is one CRD given as text, for embedded or altered ones.
func YAML(text []byte) CRDs {
	return func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			return nil, fmt.Errorf("parse CRD: %w", err)
		}
		return []*apiextensionsv1.CustomResourceDefinition{crd}, nil
	}
}

func newestOnly(source CRDs) CRDs {
	return func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
		crds, err := source()
		for _, crd := range crds {
			newest := crd.Spec.Versions[len(crd.Spec.Versions)-1]
			newest.Served, newest.Storage = true, true
			crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{newest}
			crd.Spec.Conversion = nil
		}
		return crds, err
	}
}

func makeListsAtomic(schema *apiextensionsv1.JSONSchemaProps) {
	if schema == nil {
		return
	}
	schema.XListType, schema.XListMapKeys = nil, nil
	if schema.Items != nil {
		makeListsAtomic(schema.Items.Schema)
	}
	for name, property := range schema.Properties {
		makeListsAtomic(&property)
		schema.Properties[name] = property
	}
}

// moduleDirs caches the output of "go list", because each call costs a process.
var moduleDirs sync.Map

func moduleDir(module string) (string, error) {
	if dir, ok := moduleDirs.Load(module); ok {
		return dir.(string), nil
	}
	wanted := []string{module}
	if strings.Contains(module, "@") {
		// go.mod does not require it, so nothing else has downloaded it.
		if out, err := exec.Command("go", "mod", "download", module).CombinedOutput(); err != nil {
			return "", fmt.Errorf("download module %s: %w: %s", module, err, out)
		}
	} else {
		// The next questions are about these.
		wanted = append(wanted, ocmAPIModule, sigMultiCluster, msaModule, thisModule)
	}
	var stderr bytes.Buffer
	cmd := exec.Command("go", append([]string{"list", "-m", "-e", "-f", "{{.Path}} {{.Dir}}"}, wanted...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("find module %s: %w: %s", module, err, stderr.String())
	}
	name, _, _ := strings.Cut(module, "@")
	var found string
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case dir == "": // not a module that go.mod requires
		case path == name:
			found = dir
			moduleDirs.Store(module, dir)
		default:
			moduleDirs.Store(path, dir)
		}
	}
	if found == "" {
		return "", fmt.Errorf("module %s is not available: %s", module, stderr.String())
	}
	return found, nil
}
