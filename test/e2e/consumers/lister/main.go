// Command lister lists the namespaces of every cluster that has a ClusterProfile
// in its namespace, a line of JSON for each. It skips clusters on which it has no account, and
// says so; it fails if another cannot be listed, or if it has no account at all.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	inventoryclient "sigs.k8s.io/cluster-inventory-api/client/clientset/versioned"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"open-cluster-management.io/cluster-inventory-addon/test/e2e/consumers/connect"
)

func main() {
	file := access.SetupProviderFileFlag()
	namespace := flag.String("namespace", "", "namespace of the ClusterProfiles (default: the pod's)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *file, *namespace, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lister:", err)
		os.Exit(1)
	}
}

// noAccount is how client-go reports that cp-creds found no Secret with a token. It has no
// type for that.
const noAccount = "cp-creds failed with exit code 5"

// line is the output for one cluster.
type line struct {
	Profile    string   `json:"profile"`
	Namespaces []string `json:"namespaces,omitempty"`
	Skipped    string   `json:"skipped,omitempty"`
	Error      string   `json:"error,omitempty"`
}

func run(ctx context.Context, file, namespace string, out io.Writer) error {
	providers, err := connect.Load(file)
	if err != nil {
		return err
	}
	if namespace, err = connect.Namespace(namespace); err != nil {
		return err
	}
	hub, err := config.GetConfig()
	if err != nil {
		return err
	}
	inventory, err := inventoryclient.NewForConfig(hub)
	if err != nil {
		return err
	}
	profiles, err := inventory.ApisV1alpha1().ClusterProfiles(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var problems error
	listed := 0
	for i := range profiles.Items {
		told := line{Profile: profiles.Items[i].Namespace + "/" + profiles.Items[i].Name}
		told.Namespaces, err = list(ctx, providers, &profiles.Items[i])
		switch {
		case err == nil:
			listed++
		case strings.Contains(err.Error(), noAccount):
			told.Skipped = "this program has no account on the cluster: " + err.Error()
		default:
			told.Error = err.Error()
			problems = errors.Join(problems, fmt.Errorf("%s: %w", told.Profile, err))
		}
		if err := json.NewEncoder(out).Encode(told); err != nil {
			return err
		}
	}
	if problems == nil && listed == 0 && len(profiles.Items) > 0 {
		return fmt.Errorf("this program has an account on none of the %d clusters in namespace %s",
			len(profiles.Items), namespace)
	}
	return problems
}

func list(
	ctx context.Context, providers connect.Providers, profile *inventoryv1alpha1.ClusterProfile,
) ([]string, error) {
	cluster, err := providers.Config(profile)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return nil, err
	}
	found, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(found.Items))
	for _, namespace := range found.Items {
		names = append(names, namespace.Name)
	}
	return names, nil
}
