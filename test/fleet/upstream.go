package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/files"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/progress"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/ocm"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/programs"
)

// UpstreamWriters fills a directory with what writes ClusterProfiles and copies of tokens
// without this addon, for tests that run it on an API server of their own: OCM's components as
// ocm, managed-serviceaccount's as msa, kube-controller-manager, on whose garbage collector both
// rely, and rights.yaml with the ClusterRoles and bindings that OCM's operator and
// managed-serviceaccount's chart apply with their gates on. Each of OCM's controllers has a file
// with its own rights with every gate off, such as placement-rights.yaml.
func UpstreamWriters(ctx context.Context, dir string, out io.Writer) error {
	root, err := repositoryRoot()
	if err != nil {
		return err
	}
	report := progress.New(out)
	kube, kubeErr := programs.Kube.Path(ctx, root, report)
	components, ocmErr := programs.OCM.Path(ctx, root, report)
	accounts, accountsErr := programs.ManagedServiceAccount.Path(ctx, root, report)
	helm, helmErr := programs.Helm.Path(ctx, root, report)
	if err := errors.Join(kubeErr, ocmErr, accountsErr, helmErr); err != nil {
		return err
	}
	f := &Fleet{Root: root, Dir: dir, access: access{helm: helm}}
	writers, err := f.writersRights(ctx)
	if err != nil {
		return err
	}
	all := map[string][]*unstructured.Unstructured{"rights.yaml": writers}
	for _, controller := range []string{"addon-manager", "placement", "registration"} {
		if all[controller+"-rights.yaml"], err = f.controllerRights(ctx, controller); err != nil {
			return err
		}
	}
	for name, rights := range all {
		text, err := rightsIn(rights)
		if err != nil {
			return err
		}
		if err := files.Write(f.path(name), text, files.Private); err != nil {
			return err
		}
	}
	for name, program := range map[string]string{
		"kube-controller-manager": kube, "ocm": components, "msa": filepath.Join(accounts, "msa"),
	} {
		if err := os.Remove(f.path(name)); err != nil && !os.IsNotExist(err) {
			return err
		}
		if err := os.Symlink(program, f.path(name)); err != nil {
			return err
		}
	}
	return nil
}

// writersRights are those of what writes ClusterProfiles and copies of tokens, among other objects.
func (f *Fleet) writersRights(ctx context.Context) ([]*unstructured.Unstructured, error) {
	manifests, err := f.ocmManifests(ctx)
	if err != nil {
		return nil, err
	}
	all, err := manifests.RegistrationAccess()
	if err != nil {
		return nil, err
	}
	name := programs.ManagedServiceAccount.Name
	sources, err := programs.ManagedServiceAccount.ModuleDir(ctx, f.Root)
	if err != nil {
		return nil, err
	}
	chart, err := f.renderChart(ctx, chart{name: name, dir: filepath.Join(sources, "charts", name)}, Gates{Tokens: true})
	return slices.Concat(all, chart), err
}

// controllerRights are those of one of OCM's controllers.
func (f *Fleet) controllerRights(ctx context.Context, controller string) ([]*unstructured.Unstructured, error) {
	manifests, err := f.ocmManifests(ctx)
	if err != nil {
		return nil, err
	}
	return manifests.ControllerAccess(controller)
}

func (f *Fleet) ocmManifests(ctx context.Context) (ocm.Manifests, error) {
	sources, err := programs.OCM.ModuleDir(ctx, f.Root)
	return ocm.Manifests{Dir: filepath.Join(sources, "manifests")}, err
}

// rightsIn returns the rights among objects, as YAML documents.
func rightsIn(objects []*unstructured.Unstructured) ([]byte, error) {
	var text bytes.Buffer
	for _, o := range objects {
		if err := writeRight(&text, o); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

// writeRight writes an object as a YAML document, unless it is something else than a right.
func writeRight(to io.Writer, o *unstructured.Unstructured) error {
	if !slices.Contains([]string{"ClusterRole", "ClusterRoleBinding"}, o.GetKind()) {
		return nil
	}
	content, err := json.MarshalIndent(o.Object, "", "  ")
	if err != nil {
		return err
	}
	_, err = to.Write(append(append([]byte("---\n"), content...), '\n'))
	return err
}
