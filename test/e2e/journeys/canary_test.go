package journeys

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// canaries are what would be seen of the tokens that stories dealt with, if it
// were anywhere it should not be.
var canaries = map[string][]byte{}

// searched is how much of each log was looked through already.
var searched = map[string]int64{}

// watchFor remembers a token. Its signature is enough: it is in no other text.
func watchFor(token string) {
	signature := token[strings.LastIndex(token, ".")+1:]
	canaries[signature] = []byte(signature)
	// As it is in a Secret's JSON. The first characters of all tokens are alike.
	encoded := base64.StdEncoding.EncodeToString([]byte(token))
	tail := encoded[len(encoded)-128 : len(encoded)-4]
	canaries[tail] = []byte(tail)
	// As it is in the right-hand column of a hexadecimal dump: sixteen bytes a line,
	// beginning anywhere.
	const column = 16
	for at := range column {
		part := signature[column+at : 2*column+at]
		canaries["dump of "+part] = []byte("|" + part + "|")
	}
}

// noTokenAnywhere looks for every token of every story so far in all that people
// and other programs read.
func noTokenAnywhere(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), eventually)
	defer cancel()
	if err := errors.Join(searchLogs(t), searchObjects(ctx, t), searchMetrics(ctx, t)); err != nil {
		t.Error(err)
	}
}

func search(where string, text []byte) error {
	for name, canary := range canaries {
		if bytes.Contains(text, canary) {
			return fmt.Errorf("a token is in %s (looked for %.12s...)", where, name)
		}
	}
	return nil
}

// searchLogs looks through what every process and every container wrote since the last
// time.
func searchLogs(t *testing.T) error {
	t.Helper()
	var found []error
	err := filepath.WalkDir(world.LogDir(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		if _, err := file.Seek(searched[path], io.SeekStart); err != nil {
			return err
		}
		text, err := io.ReadAll(file)
		// A line may have been cut in two.
		searched[path] += int64(bytes.LastIndexByte(text, '\n') + 1)
		found = append(found, search(path, text))
		return err
	})
	return errors.Join(append(found, err)...)
}

// searchObjects looks through events, and everything but the data of Secrets, on the
// hub.
func searchObjects(ctx context.Context, t *testing.T) error {
	t.Helper()
	accounts := &unstructured.UnstructuredList{}
	accounts.SetAPIVersion("authentication.open-cluster-management.io/v1beta1")
	accounts.SetKind("ManagedServiceAccountList")
	var found []error
	for _, list := range []client.ObjectList{
		&eventsv1.EventList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.PodList{}, &rbacv1.RoleBindingList{}, accounts,
		&addonv1beta1.ManagedClusterAddOnList{}, &inventoryv1alpha1.ClusterProfileList{}, &workv1.ManifestWorkList{},
	} {
		if err := hub(t).List(ctx, list); err != nil {
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
			return search(fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object.(client.Object))), text)
		}))
	}
	return errors.Join(found...)
}

// searchMetrics looks through what the manager tells of itself.
func searchMetrics(ctx context.Context, t *testing.T) error {
	t.Helper()
	if installedWith == nil {
		return nil
	}
	pod := managerPod(ctx, t)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+pod.Status.PodIP+":8080/metrics", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the manager's metrics: %s", response.Status)
	}
	return errors.Join(err, search("the manager's metrics", text))
}
