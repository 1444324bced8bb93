package programs

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/files"
)

// Program is one binary, or the programs of one image.
type Program struct {
	Name string
	// Module is the module whose version the program has.
	Module string

	list string // the folder of its build list in ../tools, unless it shares the common one
	// modfile is its build list in that folder if it is not go.mod.
	modfile string
	pkg     string // what to build, unless it is an image
	// image maps the packages to build to the names of their programs. Path then
	// returns a directory with the image's root.
	image map[string]string
	// files maps folders of the module to where the image has them.
	files map[string]string
	// tags are build constraints, separated by commas.
	tags string
	// likeTests builds without -trimpath, so that packages compiled for tests are reused.
	likeTests bool
	env       string // names a variable that points at a ready build
	// stamp returns linker flags, for the program's own version and that of Kubernetes.
	stamp func(version, kubernetes string) []string
}

// The programs of every fleet.
var (
	// Kube is etcd, kube-apiserver, kube-controller-manager and kubectl.
	Kube = Program{
		Name: "kube", Module: "k8s.io/kubernetes", pkg: "./kube",
		env: "FLEET_KUBE_BINARY", stamp: stampKubernetes,
	}
	// OCM is all components of Open Cluster Management.
	OCM = Program{
		Name: "ocm", Module: "open-cluster-management.io/ocm", pkg: "./ocm",
		env: "FLEET_OCM_BINARY",
	}
	Helm = Program{
		Name: "helm", Module: "helm.sh/helm/v3", pkg: "helm.sh/helm/v3/cmd/helm",
		env: "FLEET_HELM_BINARY", stamp: stampHelm,
	}
)

// Helm4 can take the place of Helm, by the variable of that. It knows its version of Kubernetes
// from its own build list.
var Helm4 = Program{
	Name: "helm-4", Module: "helm.sh/helm/v4", list: "helm4", pkg: "helm.sh/helm/v4/cmd/helm",
}

// KubeAt is Kube at the newest known version of a minor version, such as 1.36, which has a build
// list of its own in the repository at root.
func KubeAt(root, minor string) (Program, error) {
	p := Kube
	p.Name, p.env, p.modfile = "kube-"+minor, "", filepath.Join(versionsDir, "kube-"+minor+".mod")
	if path := filepath.Join(p.dir(root), p.modfile); !files.Exists(path) {
		return Program{}, fmt.Errorf("no build list of Kubernetes %q: want a file %s", minor, path)
	}
	return p, nil
}

// versionsDir has the build lists of KubeAt.
const versionsDir = "versions"

const (
	clusterProxyModule    = "open-cluster-management.io/cluster-proxy"
	serviceAccountModule  = "open-cluster-management.io/managed-serviceaccount"
	kueueModule           = "sigs.k8s.io/kueue"
	knativeOperatorModule = "knative.dev/operator"
)

// The additional programs of a fleet with access to its spokes, with their paths in
// upstream's images.
var (
	ClusterProxy = Program{
		Name: "cluster-proxy", Module: clusterProxyModule,
		image: map[string]string{
			clusterProxyModule + "/cmd/addon-manager":        "manager",
			clusterProxyModule + "/cmd/addon-agent":          "agent",
			clusterProxyModule + "/cmd/cluster-proxy":        "cluster-proxy",
			"sigs.k8s.io/apiserver-network-proxy/cmd/server": "proxy-server",
			"sigs.k8s.io/apiserver-network-proxy/cmd/agent":  "proxy-agent",
		},
		env: "FLEET_CLUSTER_PROXY_IMAGE",
	}
	ManagedServiceAccount = Program{
		Name: "managed-serviceaccount", Module: serviceAccountModule, list: "managed-serviceaccount",
		image: map[string]string{
			serviceAccountModule + "/cmd":                                   "msa",
			serviceAccountModule + "/cmd/clusterprofile-credentials-plugin": "cp-creds",
		},
		env: "FLEET_MANAGED_SERVICEACCOUNT_IMAGE",
	}
)

// Other projects' consumers of the inventory, with the contents of their images. A fleet
// has them only on request.
var (
	Kueue = Program{
		Name: "kueue", Module: kueueModule, list: "kueue",
		image: map[string]string{kueueModule + "/cmd/kueue": "manager"},
		// Without the simulation of the scheduler, an alpha feature that is off. With it, all of
		// the Kubernetes scheduler would have to be compiled.
		tags:      "exclude_scheduler_library",
		likeTests: true,
		env:       "FLEET_KUEUE_IMAGE",
	}
	KnativeOperator = Program{
		Name: "knative-operator", Module: knativeOperatorModule, list: "knative-operator",
		image:     map[string]string{knativeOperatorModule + "/cmd/operator": "operator"},
		files:     map[string]string{"cmd/operator/kodata": "kodata"},
		likeTests: true,
		env:       "FLEET_KNATIVE_OPERATOR_IMAGE",
	}
)

// stampKubernetes sets the version that the API server reports. Without it that is
// v0.0.0, which charts refuse and profiles would show.
func stampKubernetes(version, _ string) []string {
	var flags []string
	numbers := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X="+pkg+".gitVersion="+version,
			"-X="+pkg+".gitMajor="+numbers[0],
			"-X="+pkg+".gitMinor="+numbers[1],
			"-X="+pkg+".gitCommit=",
			"-X="+pkg+".gitTreeState=clean")
	}
	return flags
}

// stampHelm also sets the version of Kubernetes for which Helm renders charts where it does
// not look at a hub. Without it that is v1.20.0, which the addon's chart refuses.
func stampHelm(version, kubernetes string) []string {
	flags := []string{"-X=helm.sh/helm/v3/internal/version.version=" + version}
	numbers := strings.SplitN(strings.TrimPrefix(kubernetes, "v"), ".", 3)
	for _, pkg := range []string{"pkg/chartutil", "pkg/lint/rules"} {
		flags = append(flags,
			"-X=helm.sh/helm/v3/"+pkg+".k8sVersionMajor="+numbers[0],
			"-X=helm.sh/helm/v3/"+pkg+".k8sVersionMinor="+numbers[1])
	}
	return flags
}

// duration describes how long a build takes on two cores. Packages shared by the programs
// of the common list are compiled once; after that a build is little more than a link.
func (p Program) duration() string {
	if p.modfile != "" {
		return "about 6 minutes the first time"
	}
	switch p.list {
	case "":
	case "managed-serviceaccount", "helm4":
		return "about 2 minutes the first time"
	default:
		return "about 15 minutes the first time"
	}
	return "the first builds of Kubernetes, OCM, cluster-proxy and Helm take about 25 minutes together, " +
		"each later one a few seconds to a minute"
}

// packages are the packages to build.
func (p Program) packages() []string {
	if p.image == nil {
		return []string{p.pkg}
	}
	return slices.Sorted(maps.Keys(p.image))
}

// sources are the folders of the tools module that determine the build.
func (p Program) sources() []string {
	folders := []string{"."}
	if p.modfile != "" {
		folders = []string{versionsDir}
	}
	if strings.HasPrefix(p.pkg, "./") {
		folders = append(folders, p.pkg)
	}
	return folders
}

// names are those that an image gives to its programs.
func (p Program) names() []string {
	var names []string
	for _, pkg := range p.packages() {
		if name := p.image[pkg]; name != "" {
			names = append(names, name)
		}
	}
	return append(names, slices.Sorted(maps.Values(p.files))...)
}

// dir is the module that pins the program, in the repository at root.
func (p Program) dir(root string) string {
	return filepath.Join(root, "test", "fleet", "tools", p.list)
}
