package configuration

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/addon/manifests"
)

const (
	// maxProxyBytes bounds the URLs of proxies and the list of hosts without one.
	maxProxyBytes = 4096

	// maxCABytes bounds a proxy's CA certificates. They are in an environment variable of
	// every agent, and so in the manager's memory once for each cluster.
	maxCABytes = 16 << 10

	// maxRegistries bounds the entries of registries, and maxRepositoryBytes the names in
	// each.
	maxRegistries      = 50
	maxRepositoryBytes = 255
)

// validateProxy checks a proxy's configuration. Its errors do not repeat URLs, because they
// may contain a password.
func validateProxy(given addonv1beta1.ProxyConfig, wrong *fieldErrors) manifests.Proxy {
	const field = "spec.proxyConfig"
	validateProxyURL(field+".httpProxy", given.HTTPProxy, wrong)
	validateProxyURL(field+".httpsProxy", given.HTTPSProxy, wrong)
	return manifests.Proxy{
		HTTP:     given.HTTPProxy,
		HTTPS:    given.HTTPSProxy,
		No:       validateNoProxy(field+".noProxy", given.NoProxy, wrong),
		CABundle: validateCA(field+".caBundle", given.CABundle, wrong),
	}
}

func validateProxyURL(field, given string, wrong *fieldErrors) {
	if given == "" {
		return
	}
	if len(given) > maxProxyBytes {
		wrong.add(field, "has %d bytes, more than %d", len(given), maxProxyBytes)
		return
	}
	parsed, err := url.Parse(given)
	switch {
	case err != nil:
		wrong.add(field, "is not a URL")
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		wrong.add(field, "does not begin with http:// or https://")
	case parsed.Hostname() == "":
		wrong.add(field, "has no host")
	case strings.Trim(parsed.Path, "/") != "" || parsed.RawQuery != "" || parsed.Fragment != "":
		wrong.add(field, "has more than a scheme, a host and a port")
	}
}

// noProxyEntry is a host, a domain, an address or a network, with or without a port.
var noProxyEntry = regexp.MustCompile(`^[A-Za-z0-9*._\[\]:/-]+$`)

// validateNoProxy returns the entries without the spaces and line breaks between them, which a
// multi-line value in YAML has.
func validateNoProxy(field, given string, wrong *fieldErrors) string {
	if given == "" {
		return ""
	}
	if len(given) > maxProxyBytes {
		wrong.add(field, "has %d bytes, more than %d", len(given), maxProxyBytes)
		return ""
	}
	entries := strings.Split(given, ",")
	for n, entry := range entries {
		entries[n] = strings.TrimSpace(entry)
		if !noProxyEntry.MatchString(entries[n]) {
			wrong.add(field, "%q is not a host, a domain, an address or a network", entry)
		}
	}
	return strings.Join(entries, ",")
}

// validateCA returns the certificates without the text around them.
func validateCA(field string, given []byte, wrong *fieldErrors) string {
	if len(given) > maxCABytes {
		wrong.add(field, "has %d bytes, more than %d", len(given), maxCABytes)
		return ""
	}
	var certificates bytes.Buffer
	rest := bytes.TrimSpace(given)
	for n := 1; len(rest) > 0; n++ {
		unread := rest
		var block *pem.Block
		block, rest = pem.Decode(unread)
		// Decode skips an unreadable block if another one follows.
		if block == nil || bytes.Count(unread[:len(unread)-len(rest)], []byte("-----BEGIN ")) > 1 {
			wrong.add(field, "is not PEM, from block %d on", n)
			return ""
		}
		if block.Type != "CERTIFICATE" {
			wrong.add(field, "block %d is a %s, not a certificate", n, block.Type)
			return ""
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			wrong.add(field, "certificate %d cannot be parsed: %v", n, err)
			return ""
		}
		certificates.Write(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))
		rest = bytes.TrimSpace(rest)
	}
	return certificates.String()
}

func validateNetworkPolicy(given *manifests.NetworkPolicy, wrong *fieldErrors) {
	const field = "spec.networkPolicy"
	if given == nil {
		return
	}
	for _, cidr := range given.APIServerCIDRs {
		if network, err := netip.ParsePrefix(cidr); err != nil || network != network.Masked() {
			wrong.add(field+".apiServerCIDRs", "%q is not a network, such as 192.0.2.0/24", cidr)
		}
	}
	validatePorts(field+".apiServerPorts", given.APIServerPorts, wrong)
	validatePorts(field+".dnsPorts", given.DNSPorts, wrong)
}

func validatePorts(field string, given []int32, wrong *fieldErrors) {
	if len(given) == 0 {
		wrong.add(field, "is empty")
	}
	for _, port := range given {
		if problems := validation.IsValidPortNum(int(port)); len(problems) > 0 {
			wrong.add(field, "%d is not a port: %s", port, problems[0])
		}
	}
}

// repository is the name of a registry, or of a repository or a part of one, without a
// tag or a digest.
var (
	host       = `[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?`
	component  = `[a-z0-9]+([._-]+[a-z0-9]+)*`
	repository = regexp.MustCompile(`^` + host + `(/` + component + `)*$`)
)

// validateRegistries returns the entries that name a mirror; others are ignored, according to
// the API.
func validateRegistries(field string, given []addonv1beta1.ImageMirror, wrong *fieldErrors) []addonv1beta1.ImageMirror {
	if len(given) > maxRegistries {
		wrong.add(field, "has %d entries, more than %d", len(given), maxRegistries)
		return nil
	}
	var registries []addonv1beta1.ImageMirror
	for i, entry := range given {
		entry.Source, entry.Mirror = strings.TrimSuffix(entry.Source, "/"), strings.TrimSuffix(entry.Mirror, "/")
		if entry.Mirror == "" {
			continue
		}
		validateRepository(fmt.Sprintf("%s[%d].mirror", field, i), entry.Mirror, wrong)
		if entry.Source != "" {
			validateRepository(fmt.Sprintf("%s[%d].source", field, i), entry.Source, wrong)
		}
		registries = append(registries, entry)
	}
	return registries
}

// validateRepository does not repeat a wrong name: people who write a URL instead may have put
// a password into it.
func validateRepository(field, given string, wrong *fieldErrors) {
	switch {
	case len(given) > maxRepositoryBytes:
		wrong.add(field, "has %d bytes, more than %d", len(given), maxRepositoryBytes)
	case !repository.MatchString(given):
		wrong.add(field, "is not the name of a registry or repository without scheme, tag and digest")
	}
}

func validateAnnotation(annotation string) ([]addonv1beta1.ImageMirror, fieldErrors) {
	if annotation == "" {
		return nil, nil
	}
	var (
		decoded struct {
			Registries []addonv1beta1.ImageMirror `json:"registries"`
		}
		wrong fieldErrors
	)
	const field = "annotation " + clusterv1.ClusterImageRegistriesAnnotationKey
	if annotation == contract.RegistriesTooLong {
		wrong.add(field, "has more than %d bytes", contract.MaxRegistriesBytes)
		return nil, wrong
	}
	decoder := json.NewDecoder(strings.NewReader(annotation))
	if err := decoder.Decode(&decoded); err != nil || decoder.More() {
		wrong.add(field, "is not a JSON object with the list registries")
		return nil, wrong
	}
	registries := validateRegistries(field+": registries", decoded.Registries, &wrong)
	if len(wrong) > 0 {
		return nil, wrong
	}
	return registries, nil
}

// mirrored returns the name of an image after applying the registries, with its own tag and
// digest. Of the entries that match, the last one wins. A source matches whole name
// components only: quay.io/ocm does not match quay.io/ocm-tools/agent, nor does quay.io
// match quay.io:5000/agent. An empty source matches every image and keeps only the last
// component of its name.
func mirrored(image string, registries []addonv1beta1.ImageMirror) string {
	name, version := splitImage(image)
	result := name
	for _, entry := range registries {
		if entry.Source == "" {
			result = entry.Mirror + "/" + name[strings.LastIndex(name, "/")+1:]
			continue
		}
		if rest, ok := strings.CutPrefix(name, entry.Source); ok && (rest == "" || rest[0] == '/') {
			result = entry.Mirror + rest
		}
	}
	return result + version
}

// isFrom reports whether an image is from one of the registries. Like a source, each
// matches whole name components: a registry, a part of one, or a repository.
func isFrom(image string, registries []string) bool {
	name, _ := splitImage(image)
	return slices.ContainsFunc(registries, func(registry string) bool {
		rest, ok := strings.CutPrefix(name, registry)
		return ok && (rest == "" || rest[0] == '/')
	})
}

// splitImage separates the name of an image from its tag and digest. A colon before a slash
// starts a port, which belongs to the name.
func splitImage(image string) (name, version string) {
	last := strings.LastIndex(image, "/") + 1
	if at := strings.IndexAny(image[last:], ":@"); at >= 0 {
		return image[:last+at], image[last+at:]
	}
	return image, ""
}
