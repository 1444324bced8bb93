package access

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
)

type proxyFacts struct {
	// unknown says why the configurations are unknown; empty if they are known.
	unknown string

	// served is true if the hub serves ManagedProxyConfigurations.
	served         bool
	configurations []configuration

	service    found[corev1.Service]
	secret     found[corev1.Secret]
	remembered found[corev1.ConfigMap]

	// gateOn is true while cluster-proxy writes the entries itself. gate says that, or why it is
	// unknown; it is empty if the gate is off.
	gateOn bool
	gate   problem
}

// configuration is the part of a ManagedProxyConfiguration that is read.
type configuration struct {
	name       string
	namespace  string // of its proxy servers
	userServer bool
}

// endpoint is cluster-proxy's user server, which all clusters share.
type endpoint struct {
	// known is false if entries should stay as they are.
	known bool

	// server is the URL that a cluster's name completes; empty if there is no usable user
	// server.
	server string
	ca     []byte

	// yield is true while cluster-proxy writes the entries itself, or may. Then none of them is
	// changed, regardless of other facts.
	yield bool

	// problem says why there is no server or why nothing is known.
	problem problem
}

// rotation is what else follows from the user server's certificates.
type rotation struct {
	// remember is the published bundle if it must be stored; otherwise nil.
	remember []byte

	// until is when the first of the published certificates expires; zero for never.
	until time.Time
}

// desiredEndpoint decides whether and how clusters are reached through cluster-proxy. What
// is known to be missing takes precedence over what is unknown.
func desiredEndpoint(o ClusterProxyOptions, facts proxyFacts, now time.Time) (endpoint, rotation) {
	if e, done := checkConfiguration(o, facts); done {
		return e, rotation{}
	}
	result := endpoint{known: true, server: o.URL, ca: o.CABundle}
	if o.URL == "" {
		var missing string
		if result.server, missing = serviceURL(o.Namespace, facts.service); missing != "" {
			return noServer("%s", missing), rotation{}
		}
	}
	var plan rotation
	var unread problem
	if len(o.CABundle) == 0 {
		var unusable string
		if result.ca, plan, unusable = secretCA(o, facts, result.server, now); unusable != "" {
			return noServer("%s", unusable), rotation{}
		}
		unread = cmp.Or(
			unknown("Secret "+o.Namespace+"/"+userServerSecret, facts.secret.unknown),
			unknown("ConfigMap "+o.stateNamespace+"/"+contract.AccessStateName, facts.remembered.unknown))
	}
	if o.URL == "" {
		unread = cmp.Or(unknown("Service "+o.Namespace+"/"+userServerService, facts.service.unknown), unread)
	}
	if unread != (problem{}) {
		return endpoint{problem: unread}, rotation{}
	}
	return result, plan
}

// noServer is the endpoint if it is known that there is no usable user server.
func noServer(format string, args ...any) endpoint {
	return endpoint{known: true, problem: problem{text: fmt.Sprintf(format, args...)}}
}

// checkConfiguration decides whether cluster-proxy writes the entries itself, and whether
// the ManagedProxyConfigurations rule out a user server.
func checkConfiguration(o ClusterProxyOptions, facts proxyFacts) (endpoint, bool) {
	switch {
	case facts.gateOn:
		return endpoint{yield: true, problem: facts.gate}, true
	// Without a configuration cluster-proxy writes nothing, regardless of its gates.
	case facts.unknown == "" && !facts.served:
		return noServer("the hub serves no ManagedProxyConfiguration: cluster-proxy is not installed on it"), true
	case facts.unknown == "" && len(facts.configurations) == 0:
		return noServer("there is no ManagedProxyConfiguration %q", o.Configuration), true
	case facts.gate != (problem{}):
		return endpoint{yield: true, problem: facts.gate}, true
	case facts.unknown != "":
		return endpoint{problem: unknown("ManagedProxyConfiguration "+o.Configuration, facts.unknown)}, true
	}
	var others []string
	for _, c := range facts.configurations {
		switch {
		case c.name != o.Configuration:
			others = append(others, c.name)
		case !c.userServer:
			return noServer("ManagedProxyConfiguration %q has no spec.userServer (userServer.enabled of cluster-proxy's chart)",
				c.name), true
		case c.namespace != o.Namespace && (o.URL == "" || len(o.CABundle) == 0):
			return noServer("ManagedProxyConfiguration %q is for namespace %q, "+
				"and this addon is told to look in %q (access.clusterProxy.namespace)",
				c.name, c.namespace, o.Namespace), true
		default:
			return endpoint{}, false
		}
	}
	slices.Sort(others)
	return noServer("there is no ManagedProxyConfiguration %q, only others (%s), which are not looked at",
		o.Configuration, strings.Join(others, ", ")), true
}

// serviceURL returns the address at which a pod on the hub reaches the user server. Its
// certificate and every guide use this name.
func serviceURL(namespace string, service found[corev1.Service]) (server, problem string) {
	name := namespace + "/" + userServerService
	switch {
	case service.unknown != "":
		return "", ""
	case service.object == nil:
		return "", fmt.Sprintf("Service %s is missing (enableServiceProxy of cluster-proxy's chart)", name)
	}
	port := httpsPort(service.object.Spec.Ports)
	if port == 0 {
		return "", fmt.Sprintf("Service %s has no port named https", name)
	}
	return fmt.Sprintf("https://%s.%s:%d", userServerService, namespace, port), ""
}

// httpsPort returns the port named https, or the only one.
func httpsPort(ports []corev1.ServicePort) int32 {
	for _, port := range ports {
		if port.Name == "https" {
			return port.Port
		}
	}
	if len(ports) == 1 {
		return ports[0].Port
	}
	return 0
}

func (e endpoint) equal(other endpoint) bool {
	return e.known == other.known && e.yield == other.yield && e.server == other.server &&
		e.problem == other.problem && bytes.Equal(e.ca, other.ca)
}
