package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/files"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/supervisor"
)

// HubName is the cluster name of the hub in file and process names.
const HubName = "hub"

// ErrNoFleet says that there is no fleet of that name in this repository.
var ErrNoFleet = errors.New("no such fleet")

// Fleet is a hub with its spokes, running or not.
type Fleet struct {
	// Control starts and stops single processes.
	supervisor.Control
	// Name distinguishes the fleets of one repository.
	Name string
	// Root is the repository's directory.
	Root string
	// Dir holds everything that the fleet writes: <Root>/.fleet/<Name>.
	Dir string

	state state
	// access is set by Up if the fleet has it.
	access access
	// consumers is set by Up if the fleet has them: the directory for each image.
	consumers map[string]string
	// credentialLifetime is set by Up.
	credentialLifetime time.Duration
	// audit is the directory for audit logs, set by Up.
	audit string
	// imageTag is set by the first Deploy: one process deploys one tree.
	imageTag string
}

// state is chosen once and kept, so that kubeconfigs and data stay valid when Up
// runs again.
type state struct {
	Spokes int `json:"spokes"`
	// Access is true when cluster-proxy and managed-serviceaccount run.
	Access bool `json:"access,omitempty"`
	// Consumers is true if the nodes have the images of other projects' consumers.
	Consumers bool `json:"consumers,omitempty"`
	// Token is true when addons of TokenSpoke register by token.
	Token bool `json:"token,omitempty"`
	// Hosted is true when HostingSpoke hosts the klusterlet of HostedSpoke.
	Hosted bool `json:"hosted,omitempty"`
	// LocalCluster is true when the hub is a managed cluster of its own.
	LocalCluster bool `json:"localCluster,omitempty"`
	// Network is the second octet of the loopback addresses of the pods.
	Network int `json:"network"`
	// Ports by what listens there, such as "cluster1/apiserver".
	Ports map[string]int `json:"ports"`
}

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// Open returns the fleet of that name, or ErrNoFleet.
func Open(name string) (*Fleet, error) {
	f, err := locate(name)
	if err != nil {
		return nil, err
	}
	if err := f.load(); err != nil {
		return nil, err
	}
	return f, nil
}

// Names lists the fleets of this repository.
func Names() ([]string, error) {
	root, err := repositoryRoot()
	if err != nil {
		return nil, err
	}
	states, err := filepath.Glob(filepath.Join(root, ".fleet", "*", stateFile))
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(states))
	for _, s := range states {
		names = append(names, filepath.Base(filepath.Dir(s)))
	}
	return names, nil
}

func locate(name string) (*Fleet, error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("fleet name %q: want at most 32 of a-z, 0-9 and -", name)
	}
	root, err := repositoryRoot()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(root, ".fleet", name)
	return &Fleet{Control: supervisor.At(dir), Name: name, Root: root, Dir: dir}, nil
}

// repositoryRoot walks up from the working directory to the addon's own module.
func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	module := []byte("module open-cluster-management.io/cluster-inventory-addon\n")
	for at := dir; ; at = filepath.Dir(at) {
		if content, err := os.ReadFile(filepath.Join(at, "go.mod")); err == nil && bytes.HasPrefix(content, module) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not inside the cluster-inventory-addon repository", dir)
		}
	}
}

const stateFile = "fleet.json"

func (f *Fleet) load() error {
	content, err := os.ReadFile(f.path(stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s (start it with: make fleet-up FLEET=%s)", ErrNoFleet, f.Name, f.Name)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, &f.state); err != nil {
		return fmt.Errorf("%s: %w", f.path(stateFile), err)
	}
	return nil
}

func (f *Fleet) save() error {
	content, err := json.MarshalIndent(f.state, "", "  ")
	if err != nil {
		return err
	}
	return files.Write(f.path(stateFile), append(content, '\n'), files.Private)
}

// path of a file of the fleet.
func (f *Fleet) path(elements ...string) string {
	return filepath.Join(append([]string{f.Dir}, elements...)...)
}

// Spokes are the names of the spoke clusters: cluster1, cluster2 and so on.
func (f *Fleet) Spokes() []string {
	names := make([]string, f.state.Spokes)
	for i := range names {
		names[i] = fmt.Sprintf("cluster%d", i+1)
	}
	return names
}

// Clusters are the hub and the spokes.
func (f *Fleet) Clusters() []string {
	return append([]string{HubName}, f.Spokes()...)
}

// Managed are the managed clusters of the hub: the spokes, and the hub itself as LocalCluster if
// the fleet has that.
func (f *Fleet) Managed() []string {
	if f.state.LocalCluster {
		return append(f.Spokes(), LocalCluster)
	}
	return f.Spokes()
}

// controlPlaneOf is the cluster of this fleet that is behind the name of a managed cluster.
func controlPlaneOf(cluster string) string {
	if cluster == LocalCluster {
		return HubName
	}
	return cluster
}

// Kubeconfig is the path of the administrator's kubeconfig of a cluster.
func (f *Fleet) Kubeconfig(cluster string) string {
	return f.path(controlPlaneOf(cluster) + ".kubeconfig")
}

// LogDir is where every process of the fleet logs: <cluster>/<process>.log,
// and the containers in <cluster>/pods.
func (f *Fleet) LogDir() string {
	return f.path("logs")
}

// Hub returns the administrator's access to the hub.
func (f *Fleet) Hub() (*rest.Config, error) {
	return f.Cluster(HubName)
}

// Spoke returns the administrator's access to a spoke.
func (f *Fleet) Spoke(name string) (*rest.Config, error) {
	return f.Cluster(name)
}

// Cluster returns the administrator's access to the hub or a spoke. The client does not
// limit the rate of requests: measurements are of the cluster.
func (f *Fleet) Cluster(name string) (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", f.Kubeconfig(name))
	if err != nil {
		return nil, fmt.Errorf("fleet %s, cluster %s: %w", f.Name, name, err)
	}
	cfg.QPS = -1
	cfg.UserAgent = "fleet"
	return cfg, nil
}
