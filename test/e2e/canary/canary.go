// Package canary searches for tokens where people and other programs read: logs, events,
// metrics, and every part of objects except the data of Secrets.
package canary

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Search searches for the tokens it was given. It is not safe for concurrent use.
type Search struct {
	// traces are the visible forms of the tokens.
	traces map[string][]byte

	// read is how much of each log has been searched already.
	read map[string]int64
}

// New returns a search without tokens.
func New() *Search {
	return &Search{traces: map[string][]byte{}, read: map[string]int64{}}
}

// Made returns a unique token that opens nothing: to see whether it is found.
func Made() string {
	signature := make([]byte, 256)
	_, _ = rand.Read(signature) // it never fails
	return "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0." + base64.RawURLEncoding.EncodeToString(signature)
}

// For adds a token. Its signature suffices: no other text contains it. Logs are not
// searched again from before the last search.
func (s *Search) For(token string) {
	signature := token[strings.LastIndex(token, ".")+1:]
	s.traces[signature] = []byte(signature)
	// As it is in a Secret's JSON. The first characters of all tokens are alike.
	encoded := base64.StdEncoding.EncodeToString([]byte(token))
	tail := encoded[len(encoded)-128 : len(encoded)-4]
	s.traces[tail] = []byte(tail)
	// As it is in the right-hand column of a hexadecimal dump: sixteen bytes a line,
	// starting anywhere.
	const column = 16
	for at := range column {
		part := signature[column+at : 2*column+at]
		s.traces["dump of "+part] = []byte("|" + part + "|")
	}
}

func (s *Search) in(where string, text []byte) error {
	for name, trace := range s.traces {
		if bytes.Contains(text, trace) {
			return fmt.Errorf("a token is in %s (looked for %.12s...)", where, name)
		}
	}
	return nil
}

// Logs searches all files of a directory, each from where the last call ended, and names
// those that contain a token.
func (s *Search) Logs(dir string) error {
	var found []error
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := s.rest(path)
		found = append(found, s.in(path, text))
		return err
	})
	return errors.Join(append(found, err)...)
}

// rest returns the part of a file that has not been searched.
func (s *Search) rest(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(s.read[path], io.SeekStart); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(file)
	// A line may have been cut in two.
	s.read[path] += int64(bytes.LastIndexByte(text, '\n') + 1)
	return text, err
}

// Objects searches what a cluster serves of events and of all kinds that the addon, or the
// components it works with, write.
func (s *Search) Objects(ctx context.Context, cluster client.Client) error {
	var found []error
	for _, list := range []client.ObjectList{
		&eventsv1.EventList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.PodList{}, &rbacv1.RoleBindingList{},
		accounts(),
		&addonv1beta1.ManagedClusterAddOnList{}, &inventoryv1alpha1.ClusterProfileList{}, &workv1.ManifestWorkList{},
		&workv1.AppliedManifestWorkList{},
		&clusterv1.ManagedClusterList{}, &clusterv1alpha1.ClusterClaimList{},
	} {
		if err := cluster.List(ctx, list); err != nil {
			if !meta.IsNoMatchError(err) {
				found = append(found, err)
			}
			continue
		}
		found = append(found, meta.EachListItem(list, func(object runtime.Object) error {
			if secret, ok := object.(*corev1.Secret); ok {
				secret.Data = nil
			}
			text, err := json.Marshal(object)
			if err != nil {
				return err
			}
			return s.in(fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object.(client.Object))), text)
		}))
	}
	return errors.Join(found...)
}

func accounts() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("authentication.open-cluster-management.io/v1beta1")
	list.SetKind("ManagedServiceAccountList")
	return list
}

// Text searches a text that people or programs read, such as metrics.
func (s *Search) Text(where, text string) error { return s.in(where, []byte(text)) }
