package consumers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/internal/apitest"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/guide"
	"open-cluster-management.io/cluster-inventory-addon/test/e2e/journeys"
)

// reader follows a section of a page under docs. A block whose first line names a file is
// saved under that name; one that starts with "# on" is for a spoke; all others are for the
// hub, as are the commands.
type reader struct {
	dir string
	// files says what to do with a saved file.
	files map[string]func(t *testing.T, path string)
}

func (r *reader) follow(t *testing.T, page, section string) {
	t.Helper()
	r.dir = t.TempDir()
	steps, err := guide.Read(journeys.Fleet, page, section)
	apitest.Must(t, err)
	seen := map[string]bool{}
	for _, step := range steps {
		first, _, _ := strings.Cut(step.YAML, "\n")
		name := strings.TrimPrefix(first, "# ")
		switch cluster, onSpoke := strings.CutPrefix(first, "# on "); {
		case step.Command != "":
			r.command(t, step.Command)
		case onSpoke:
			objects := decode(t, step.YAML)
			t.Logf("on %s: apply %d objects", cluster, len(objects))
			apitest.Must(t, journeys.Fleet.Apply(t.Context(), cluster, objects...))
		case first != name && strings.HasSuffix(name, ".yaml"):
			seen[name] = true
			path := filepath.Join(r.dir, name)
			apitest.Must(t, os.WriteFile(path, []byte(step.YAML), 0o600))
			if do := r.files[name]; do != nil {
				t.Logf("use %s", name)
				do(t, path)
			}
		default:
			t.Log("$ kubectl apply -f -")
			_, err := guide.Type(t.Context(), journeys.Fleet, "kubectl apply -f -", step.YAML)
			apitest.Must(t, err)
		}
	}
	for name := range r.files {
		if !seen[name] {
			t.Errorf("the guide has no file %s", name)
		}
	}
}

// command types a command where the files of the guide are.
func (r *reader) command(t *testing.T, line string) {
	t.Helper()
	t.Logf("$ %s", line)
	_, err := guide.Type(t.Context(), journeys.Fleet, "cd '"+r.dir+"'\n"+line, "")
	apitest.Must(t, err)
}

// without leaves out objects of these kinds.
func without(all []*unstructured.Unstructured, kinds ...string) []*unstructured.Unstructured {
	return slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool { return slices.Contains(kinds, o.GetKind()) })
}

// rolledOut waits until a Deployment runs as its template says.
func rolledOut(t *testing.T, cluster, namespace, name string) {
	t.Helper()
	apitest.Within(t, journeys.Eventually, name+" on "+cluster+" is rolled out", func(ctx context.Context) error {
		deployment := &appsv1.Deployment{}
		key := types.NamespacedName{Namespace: namespace, Name: name}
		if err := journeys.ClientOf(t, cluster).Get(ctx, key, deployment); err != nil {
			return err
		}
		status := deployment.Status
		if status.ObservedGeneration != deployment.Generation || status.UpdatedReplicas != 1 ||
			status.AvailableReplicas != 1 || status.Replicas != 1 {
			return errors.New(statusOf(deployment))
		}
		return nil
	})
}

func statusOf(deployment *appsv1.Deployment) string {
	var words []string
	for _, condition := range deployment.Status.Conditions {
		words = append(words, string(condition.Type)+"="+string(condition.Status)+" "+condition.Message)
	}
	return strings.Join(words, "; ")
}

// copied waits until the namespace has the account's token as it is now, and returns it.
func copied(t *testing.T, namespace, cluster, account string) string {
	t.Helper()
	var token string
	what := "the token of " + cluster + "/" + account + " in " + namespace
	apitest.Within(t, journeys.Eventually, what, func(ctx context.Context) error {
		source, err := secret(ctx, t, cluster, account)
		if err != nil {
			return err
		}
		found, err := secret(ctx, t, namespace, cluster+"-"+account)
		if err != nil {
			return err
		}
		token = string(source.Data["token"])
		journeys.Tokens.For(token)
		if string(found.Data["token"]) != token {
			return errors.New("the copy holds another token")
		}
		return nil
	})
	return token
}

// rotated makes the account's agent issue a new token, as it does when the Secret of the
// old one is gone, and waits until that is copied.
func rotated(t *testing.T, namespace, cluster, account string) {
	t.Helper()
	before := copied(t, namespace, cluster, account)
	old := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: account}}
	apitest.Must(t, journeys.Hub(t).Delete(t.Context(), old))
	apitest.Within(t, journeys.Eventually, "another token of "+cluster+"/"+account, func(context.Context) error {
		if copied(t, namespace, cluster, account) == before {
			return errors.New("it is the old one")
		}
		return nil
	})
}

func secret(ctx context.Context, t *testing.T, namespace, name string) (*corev1.Secret, error) {
	t.Helper()
	found := &corev1.Secret{}
	return found, journeys.Hub(t).Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, found)
}

// condition reads a condition of an object of any kind.
func condition(
	ctx context.Context, c client.Client, object *unstructured.Unstructured, kind string,
) (map[string]any, error) {
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return nil, err
	}
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return nil, err
	}
	for _, condition := range conditions {
		if found, ok := condition.(map[string]any); ok && found["type"] == kind {
			return found, nil
		}
	}
	return nil, errors.New("it has no condition " + kind)
}
