// Package describe shows all that one ClusterProfile says, and what the reader may know of it
// beside: tokens, never their values, decisions and events.
package describe

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/show"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// maxBytes is how much of a text from the hub is shown; -o json has all of it.
const maxBytes = 1024

// Description is what is known of a cluster in a namespace.
type Description struct {
	Cluster     string      `json:"cluster"`
	Namespace   string      `json:"namespace"`
	Manager     string      `json:"manager"`
	Version     string      `json:"version,omitempty"`
	Created     metav1.Time `json:"created"`
	Labels      []string    `json:"labels,omitempty"`
	Conditions  []condition `json:"conditions"`
	Properties  []property  `json:"properties"`
	Providers   []provider  `json:"accessProviders"`
	Token       token       `json:"token"`
	Placements  []string    `json:"placements"` // whose decisions name the cluster
	HiddenKinds []string    `json:"notVisible,omitempty"`

	Events []decide.Event `json:"events"`
}

type condition struct {
	Type    string      `json:"type"`
	Status  string      `json:"status"`
	Since   metav1.Time `json:"since"`
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
}

type property struct {
	Name  string      `json:"name"`
	Value string      `json:"value"`
	Since metav1.Time `json:"since"` // when the value was first seen
}

type provider struct {
	Name   string `json:"name"`
	Server string `json:"server"`
	CA     string `json:"ca"`
}

// token says whether tokens of the cluster's accounts are copied to the namespace.
type token struct {
	State decide.State `json:"state"`
	Text  string       `json:"text"`
}

// Of describes a pair that has a profile. placements are those whose decisions name the cluster.
func Of(facts decide.PairFacts, placements []string, hiddenDecisions bool, now time.Time) Description {
	profile := facts.Facts.Profile
	d := Description{
		Cluster: facts.Cluster, Namespace: facts.Namespace, Manager: profile.Spec.ClusterManager.Name,
		Version: profile.Status.Version.Kubernetes, Created: profile.CreationTimestamp,
		Conditions: []condition{}, Properties: []property{}, Providers: []provider{}, Events: []decide.Event{},
		Placements: append([]string{}, placements...),
	}
	for key, value := range profile.Labels {
		d.Labels = append(d.Labels, key+"="+value)
	}
	slices.Sort(d.Labels)
	for _, c := range profile.Status.Conditions {
		d.Conditions = append(d.Conditions, condition{c.Type, string(c.Status), c.LastTransitionTime, c.Reason, c.Message})
	}
	for _, p := range profile.Status.Properties {
		d.Properties = append(d.Properties, property{p.Name, p.Value, p.LastObservedTime})
	}
	for _, p := range profile.Status.AccessProviders {
		ca := "none"
		if size := len(p.Cluster.CertificateAuthorityData); size > 0 {
			ca = fmt.Sprintf("%d bytes", size)
		}
		d.Providers = append(d.Providers, provider{p.Name, p.Cluster.Server, ca})
	}
	explanation := decide.ExplainPair(facts, now)
	for _, step := range explanation.Steps {
		if step.Name == "token" {
			d.Token = token{step.State, step.Text}
		}
	}
	d.Events = append(d.Events, explanation.Events...)
	if hiddenDecisions {
		d.HiddenKinds = append(d.HiddenKinds, "PlacementDecisions")
	}
	if facts.HiddenEvents {
		d.HiddenKinds = append(d.HiddenKinds, "Events")
	}
	return d
}

// Print prints a description as kubectl describe does.
func Print(out io.Writer, d Description, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	line := func(cells ...string) {
		for i := range cells {
			cells[i] = kube.Shorten(cells[i], maxBytes)
		}
		fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	since := func(at metav1.Time) string { return cmp.Or(show.Age(at.Time, now), "<unknown>") }
	line("Cluster:", d.Cluster)
	line("Namespace:", d.Namespace)
	line("Manager:", cmp.Or(d.Manager, "<none>"))
	line("Version:", cmp.Or(d.Version, "<none>"))
	line("Age:", since(d.Created))
	for i, label := range d.Labels {
		line([]string{"Labels:", ""}[min(i, 1)], label)
	}
	line("Placements:", cmp.Or(strings.Join(d.Placements, ", "), "<none>"))
	line("Token:", string(d.Token.State)+": "+d.Token.Text)
	if len(d.HiddenKinds) > 0 {
		line("Not visible to you:", strings.Join(d.HiddenKinds, ", "))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	section := func(title string, rows int, header ...string) {
		if _ = w.Flush(); rows == 0 {
			fmt.Fprintf(out, "%s:  <none>\n", title)
			return
		}
		fmt.Fprintf(out, "%s:\n", title)
		line(append([]string{"  " + header[0]}, header[1:]...)...)
	}
	section("Conditions", len(d.Conditions), "TYPE", "STATUS", "SINCE", "REASON", "MESSAGE")
	for _, c := range d.Conditions {
		line("  "+c.Type, c.Status, since(c.Since), c.Reason, c.Message)
	}
	section("Properties", len(d.Properties), "NAME", "SINCE", "VALUE")
	for _, p := range d.Properties {
		line("  "+p.Name, since(p.Since), p.Value)
	}
	section("Access providers", len(d.Providers), "NAME", "CA", "SERVER")
	for _, p := range d.Providers {
		line("  "+p.Name, p.CA, p.Server)
	}
	section("Events", len(d.Events), "AGE", "TYPE", "REASON", "ABOUT", "MESSAGE")
	for _, e := range d.Events {
		line("  "+e.Age, e.Type, e.Reason, e.Object, e.Text)
	}
	return w.Flush()
}
