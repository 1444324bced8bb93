package access

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/yaml"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// maxMistakeBytes bounds what is repeated of a parser's complaint.
const maxMistakeBytes = 200

// directConfig is what a key of a ConfigMap labelled contract.LabelDirectAccess
// says of the cluster it is named after.
type directConfig struct {
	// Server is the URL of the cluster's API server.
	Server string `json:"server,omitempty"`

	// CertificateAuthority is, in PEM, what its certificate is verified by.
	CertificateAuthority string `json:"certificateAuthority,omitempty"`

	// FromManagedCluster takes both from the ManagedCluster, where a klusterlet may
	// write them.
	FromManagedCluster bool `json:"fromManagedCluster,omitempty"`
}

// directEntry is what the administrator says of one cluster.
type directEntry struct {
	source string // namespace/name of the ConfigMap

	server string
	ca     string

	fromManagedCluster bool

	// problem is a fragment that says why the entry cannot be used.
	problem string
}

// directFacts are what there is of one cluster's direct access.
type directFacts struct {
	// unknown is why it cannot be told what the administrator says; empty when it
	// can.
	unknown string

	entry *directEntry // nil when he says nothing of this cluster

	// cluster is what the ManagedCluster says, if the entry wants that.
	cluster found[[]clusterv1.ClientConfig]
}

// desiredDirect decides whether and how a cluster is reached without a proxy.
func desiredDirect(c clusterFacts) (Answer, string) {
	entry := c.direct.entry
	switch {
	case c.direct.unknown != "":
		return Answer{}, "ConfigMaps labelled " + contract.LabelDirectAccess + " " + c.direct.unknown
	case entry == nil:
		return Answer{Known: true}, ""
	case entry.problem != "":
		return Answer{Known: true}, entry.problem
	}
	server, ca := entry.server, entry.ca
	if entry.fromManagedCluster {
		var problem string
		if c.direct.cluster.unknown != "" {
			return Answer{}, "the ManagedCluster " + c.direct.cluster.unknown
		}
		if server, ca, problem = fromManagedCluster(c.direct.cluster.object); problem != "" {
			return Answer{Known: true}, fmt.Sprintf("%s, as ConfigMap %s wants it", problem, entry.source)
		}
	}
	published := provider(contract.DirectAccessProviderName, server, []byte(ca), c.name)
	return Answer{Known: true, Provider: &published}, ""
}

// fromManagedCluster takes the first usable entry.
func fromManagedCluster(configs *[]clusterv1.ClientConfig) (server, ca, problem string) {
	if configs == nil || len(*configs) == 0 {
		return "", "", "the ManagedCluster has no spec.managedClusterClientConfigs"
	}
	for _, config := range *configs {
		bundle, err := ParseCA(config.CABundle)
		if err == nil && CheckURL(config.URL) == nil {
			return config.URL, string(bundle), ""
		}
	}
	return "", "", "no entry of the ManagedCluster's spec.managedClusterClientConfigs has both an https URL and a usable caBundle"
}

// directEntries reads what all ConfigMaps say, by cluster. A mistake is the
// cluster's alone; of a cluster that two of them name nothing is known to be
// meant.
func directEntries(configMaps []*corev1.ConfigMap) map[string]directEntry {
	sources := map[string][]string{}
	entries := map[string]directEntry{}
	for _, configMap := range configMaps {
		if configMap.DeletionTimestamp != nil {
			continue
		}
		source := configMap.Namespace + "/" + configMap.Name
		for cluster, text := range configMap.Data {
			entries[cluster] = directEntryOf(source, cluster, text)
			sources[cluster] = append(sources[cluster], source)
		}
	}
	for _, cluster := range slices.Sorted(maps.Keys(sources)) {
		if names := sources[cluster]; len(names) > 1 {
			slices.Sort(names)
			entries[cluster] = directEntry{problem: "more than one ConfigMap has it: " + strings.Join(names, ", ")}
		}
	}
	return entries
}

func directEntryOf(source, cluster, text string) directEntry {
	entry, err := parseDirect(text)
	if err != nil {
		return directEntry{source: source, problem: fmt.Sprintf("what ConfigMap %s has under %q %v", source, cluster, err)}
	}
	entry.source = source
	return entry
}

// parseDirect reads one entry; the error completes "the text ".
func parseDirect(text string) (directEntry, error) {
	var config directConfig
	if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
		return directEntry{}, fmt.Errorf("cannot be read: %s", kube.Shorten(strings.Join(strings.Fields(err.Error()), " "), maxMistakeBytes))
	}
	if config.FromManagedCluster {
		if config.Server != "" || config.CertificateAuthority != "" {
			return directEntry{}, errors.New("has fromManagedCluster beside server or certificateAuthority")
		}
		return directEntry{fromManagedCluster: true}, nil
	}
	if config.Server == "" || config.CertificateAuthority == "" {
		return directEntry{}, errors.New("needs server and certificateAuthority, or fromManagedCluster: true")
	}
	if err := CheckURL(config.Server); err != nil {
		return directEntry{}, fmt.Errorf("has a server that %w", err)
	}
	ca, err := ParseCA([]byte(config.CertificateAuthority))
	if err != nil {
		return directEntry{}, fmt.Errorf("has a certificateAuthority that %w", err)
	}
	return directEntry{server: config.Server, ca: string(ca)}, nil
}
