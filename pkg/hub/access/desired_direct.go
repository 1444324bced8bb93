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

// maxErrorBytes bounds how much of a parser's error is repeated.
const maxErrorBytes = 200

// directConfig is the value of one key, the cluster's name, in a ConfigMap labelled
// contract.LabelDirectAccess.
type directConfig struct {
	// Server is the URL of the cluster's API server.
	Server string `json:"server,omitempty"`

	// CertificateAuthority verifies its certificate, in PEM.
	CertificateAuthority string `json:"certificateAuthority,omitempty"`

	// FromManagedCluster takes both from the ManagedCluster, which a klusterlet may write.
	FromManagedCluster bool `json:"fromManagedCluster,omitempty"`
}

// directEntry is the administrator's entry for one cluster.
type directEntry struct {
	source string // namespace/name of the ConfigMap

	server string
	ca     string

	fromManagedCluster bool

	// problem says, as part of a sentence, why the entry cannot be used.
	problem string
}

type directFacts struct {
	// unknown says why the administrator's entries are unknown; empty if they are known.
	unknown string

	entry *directEntry // nil if there is none for this cluster

	// cluster is the content of the ManagedCluster, if the entry refers to it.
	cluster found[[]clusterv1.ClientConfig]
}

// desiredDirect decides whether and how a cluster is reached without a proxy.
func desiredDirect(c clusterFacts) (ProviderState, problem) {
	entry := c.direct.entry
	switch {
	case c.direct.unknown != "":
		return ProviderState{}, unknown("ConfigMaps labeled "+contract.LabelDirectAccess, c.direct.unknown)
	case entry == nil:
		return ProviderState{Known: true}, problem{}
	case entry.problem != "":
		return ProviderState{Known: true}, problem{text: entry.problem}
	}
	server, ca := entry.server, entry.ca
	if entry.fromManagedCluster {
		var wrong string
		if c.direct.cluster.unknown != "" {
			return ProviderState{}, unknown("the ManagedCluster", c.direct.cluster.unknown)
		}
		if server, ca, wrong = fromManagedCluster(c.direct.cluster.object); wrong != "" {
			return ProviderState{Known: true}, problem{text: fmt.Sprintf("%s, as ConfigMap %s wants it", wrong, entry.source)}
		}
	}
	published := provider(contract.DirectAccessProviderName, server, []byte(ca), c.name)
	return ProviderState{Known: true, Provider: &published}, problem{}
}

// fromManagedCluster returns the first usable entry.
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
	return "", "", "no entry of the ManagedCluster's spec.managedClusterClientConfigs has both an https URL " +
		"and a usable caBundle"
}

// directEntries reads all ConfigMaps, by cluster. An error affects only its cluster. A
// cluster in two ConfigMaps has no usable entry, because it is unclear which one is meant.
func directEntries(configMaps []*corev1.ConfigMap) map[string]directEntry {
	sources := map[string][]string{}
	entries := map[string]directEntry{}
	for _, configMap := range configMaps {
		if configMap.DeletionTimestamp != nil {
			continue
		}
		source := configMap.Namespace + "/" + configMap.Name
		for cluster, text := range configMap.Data {
			entry, err := parseDirect(text)
			if err != nil {
				entry.problem = fmt.Sprintf("what ConfigMap %s has under %q %v", source, cluster, err)
			}
			entry.source = source
			entries[cluster] = entry
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

// parseDirect reads one entry. The error completes "the text ".
func parseDirect(text string) (directEntry, error) {
	var config directConfig
	if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
		message := strings.Join(strings.Fields(err.Error()), " ")
		return directEntry{}, fmt.Errorf("cannot be read: %s", kube.Shorten(message, maxErrorBytes))
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
