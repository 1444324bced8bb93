package profiles

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/hub/selection"
)

const (
	// FieldOwner is the field manager of the profiles.
	FieldOwner = "hub.inventory"

	// MixedFieldOwner is the field manager of a status with properties of other clients.
	// Without these, it is FieldOwner: an atomic list that it was the last to write is
	// this addon's as a whole.
	MixedFieldOwner = FieldOwner + "-status"

	// upstreamFieldOwner is the field manager of OCM's registration controller, whose
	// properties are taken over with the profile (OCM, manifests/cluster-manager/management/
	// registration/deployment.yaml: client-go derives it from the program's name).
	upstreamFieldOwner = "registration"

	// maxRecordBytes bounds AnnotationProperties. An object has at most 256 KiB of
	// annotations, which other clients use, too. The default limits of a profile fit.
	maxRecordBytes = 128 << 10
)

// authorship says who wrote the properties of a profile.
type authorship struct {
	// others are the names of those that another client wrote, sorted.
	others []string

	// keyed is true if the managed fields record the author of each property. The API server
	// does that for the entries of a list map, but not for those of an atomic list.
	keyed bool

	// unrecorded is true if only the annotation says so: the managed fields alone name
	// other authors.
	unrecorded bool
}

// authorshipOf returns who wrote the properties of a profile, which may be trimmed: the
// annotation says so or, where there is none, the managed fields. What neither says that this
// addon wrote is another client's.
//
// Not even with list maps do the managed fields overrule the annotation: when a CRD with list
// maps replaces one with atomic lists, the API server records the client that wrote the list
// last as the author of all its entries.
func authorshipOf(profile *inventoryv1alpha1.ClusterProfile) authorship {
	for _, entry := range profile.ManagedFields {
		if entry.Subresource == digestSubresource {
			return decodeDigest(entry)
		}
	}
	managed := managedProperties(profile.ManagedFields)
	listed, isListed := recordedProperties(profile.Annotations)
	a := authorship{keyed: managed.keyed}
	for _, property := range profile.Status.Properties {
		isManaged := managed.all || managed.names[property.Name]
		isOurs := isManaged
		if isListed && !managed.all {
			_, isOurs = slices.BinarySearch(listed, property.Name)
		}
		if isOurs != isManaged {
			a.unrecorded = true
		}
		if !isOurs {
			a.others = append(a.others, property.Name)
		}
	}
	slices.Sort(a.others)
	return a
}

// isOurs reports whether this addon wrote the property of a name.
func (a authorship) isOurs(name string) bool {
	_, found := slices.BinarySearch(a.others, name)
	return !found
}

// managed is what the managed fields say about the properties of a profile.
type managed struct {
	// names are those whose value this addon, or OCM before it, was the last to write.
	names map[string]bool

	// all is true if this addon was the last to write the list, and wrote only its own.
	all bool

	// keyed is true if some client wrote an entry of a list map.
	keyed bool
}

func managedProperties(record []metav1.ManagedFieldsEntry) managed {
	m := managed{names: map[string]bool{}}
	authors := 0
	for _, entry := range record {
		fields, found := propertyFields(entry)
		if !found {
			continue
		}
		authors++
		if len(fields) == 0 && entry.Manager == FieldOwner {
			m.all = true
		}
		isOurs := slices.Contains([]string{FieldOwner, MixedFieldOwner, upstreamFieldOwner}, entry.Manager)
		for field, content := range fields {
			var key struct {
				Name string `json:"name"`
			}
			var changed struct {
				Value *struct{} `json:"f:value"`
			}
			text, isEntry := strings.CutPrefix(field, "k:")
			if !isEntry || json.Unmarshal([]byte(text), &key) != nil || json.Unmarshal(content, &changed) != nil {
				continue
			}
			m.keyed = true
			if changed.Value != nil && isOurs {
				m.names[key.Name] = true
			}
		}
	}
	// An empty list map looks like an atomic list, and others may have added to it.
	m.all = m.all && authors == 1
	return m
}

// propertyFields returns the part of an entry of the managed fields that is about
// status.properties, without fields for an atomic list.
func propertyFields(entry metav1.ManagedFieldsEntry) (fields map[string]json.RawMessage, found bool) {
	if entry.Subresource != "status" || entry.FieldsV1 == nil {
		return nil, false
	}
	var record struct {
		Status struct {
			Properties *map[string]json.RawMessage `json:"f:properties"`
		} `json:"f:status"`
	}
	if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &record) != nil || record.Status.Properties == nil {
		return nil, false
	}
	return *record.Status.Properties, true
}

// recordedProperties returns the names that AnnotationProperties lists, sorted, and whether
// there is such a list.
func recordedProperties(annotations map[string]string) (names []string, found bool) {
	text, found := annotations[contract.AnnotationProperties]
	if !found || json.Unmarshal([]byte(text), &names) != nil {
		return nil, false
	}
	slices.Sort(names)
	return names, true
}

// desiredRecord returns AnnotationProperties, or "" if it is not needed because the managed
// fields tell who wrote what. It lists properties before they are written, and until they
// are removed. With a profile that is adopted, what claims say already becomes ours, too;
// later, what another client wrote stays theirs while a claim says the same.
func desiredRecord(
	claims []clusterv1.ManagedClusterClaim, current []inventoryv1alpha1.Property, a authorship, adopting bool,
) string {
	names := make([]string, 0, len(claims))
	for _, claim := range claims {
		names = append(names, claim.Name)
	}
	needed := a.unrecorded
	for _, property := range current {
		value, claimed := findClaim(claims, property.Name)
		switch isOurs := a.isOurs(property.Name); {
		case claimed && !isOurs && value == property.Value && (adopting || !a.keyed):
			needed = true // it is not written, so the managed fields do not change
		case !claimed && isOurs:
			names = append(names, property.Name)
		}
	}
	if !needed && (a.keyed || len(a.others) == 0 || len(names) == 0) {
		return ""
	}
	slices.Sort(names)
	return encodeNames(slices.Compact(names), maxRecordBytes)
}

// recordable returns the first claims by name that AnnotationProperties can list together with
// the properties that this addon has in the profile, and how many there are beyond. A property
// that could not be listed would be another client's forever.
func recordable(
	claims []clusterv1.ManagedClusterClaim, current []inventoryv1alpha1.Property, a authorship,
) (fit []clusterv1.ManagedClusterClaim, beyond int) {
	most := len("[]") // JSON takes at most two bytes for each of a name that prints
	for _, claim := range claims {
		most += 2*len(claim.Name) + len(`"",`)
	}
	for _, property := range current {
		most += 2*len(property.Name) + len(`"",`)
	}
	if most <= maxRecordBytes {
		return claims, 0
	}
	size := len("[]")
	present := map[string]bool{}
	for _, property := range current {
		if a.isOurs(property.Name) {
			present[property.Name] = true
			size += len(encodeName(property.Name)) + len(",")
		}
	}
	for _, claim := range claims {
		more := len(encodeName(claim.Name)) + len(",")
		switch {
		case present[claim.Name]:
		case size+more > maxRecordBytes:
			beyond++
			continue
		default:
			size += more
		}
		fit = append(fit, claim)
	}
	return fit, beyond
}

// findClaim looks for a name in claims that are sorted by it.
func findClaim(claims []clusterv1.ManagedClusterClaim, name string) (value string, found bool) {
	at, found := slices.BinarySearchFunc(claims, name, func(claim clusterv1.ManagedClusterClaim, name string) int {
		return strings.Compare(claim.Name, name)
	})
	if !found {
		return "", false
	}
	return claims[at].Value, true
}

// encodeNames returns a JSON list of the first names that fit.
func encodeNames(names []string, limit int) string {
	var text strings.Builder
	text.WriteByte('[')
	for i, name := range names {
		quoted := encodeName(name)
		if text.Len()+len(quoted)+len(",]") > limit {
			break
		}
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(quoted)
	}
	text.WriteByte(']')
	return text.String()
}

// encodeName returns a name as JSON, without the escapes that HTML needs.
func encodeName(name string) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(name) // a buffer and a string cause no error
	return strings.TrimSuffix(text.String(), "\n")
}

// Overruled returns the names of the properties of a profile of ours that another client
// has written with another value than the cluster's claims have.
func Overruled(o Observed) []string {
	if o.Profile == nil || IsAdoption(o) {
		return nil
	}
	var names []string
	a := authorshipOf(o.Profile)
	for _, property := range o.Profile.Status.Properties {
		if value, claimed := findClaim(o.Cluster.Status.ClusterClaims, property.Name); claimed &&
			!a.isOurs(property.Name) && property.Value != value {
			names = append(names, property.Name)
		}
	}
	return names
}

// OthersProperties returns the names of the properties of a profile that stay although
// there is no claim of their name.
func OthersProperties(o Observed) []string {
	if o.Profile == nil {
		return nil
	}
	return slices.DeleteFunc(authorshipOf(o.Profile).others, func(name string) bool {
		_, claimed := findClaim(o.Cluster.Status.ClusterClaims, name)
		return claimed
	})
}

// IsAdoption reports whether a profile is about to become ours.
func IsAdoption(o Observed) bool { return o.Profile != nil && !selection.IsMarked(o.Profile) }

// digestSubresource marks the entry of a cached profile's managed fields that stands for
// those about status.properties, which may have a hundred bytes for each. No object of the
// API has such an entry.
const digestSubresource = "authorship"

// digestFlag is the manager of a digest that is keyed, and the version of one that is unrecorded.
const digestFlag = "yes"

// digest returns the entry of a cached profile's managed fields that stands for those about
// its properties.
func (a authorship) digest() metav1.ManagedFieldsEntry {
	entry := metav1.ManagedFieldsEntry{Subresource: digestSubresource}
	if a.keyed {
		entry.Manager = digestFlag
	}
	if a.unrecorded {
		entry.APIVersion = digestFlag
	}
	if len(a.others) > 0 {
		entry.FieldsV1 = metav1.NewFieldsV1(encodeNames(a.others, 1<<30))
	}
	return entry
}

func decodeDigest(entry metav1.ManagedFieldsEntry) authorship {
	a := authorship{keyed: entry.Manager != "", unrecorded: entry.APIVersion != ""}
	if entry.FieldsV1 != nil && json.Unmarshal(entry.FieldsV1.GetRawBytes(), &a.others) != nil {
		a.others = nil
	}
	return a
}
