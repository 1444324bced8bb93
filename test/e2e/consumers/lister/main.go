// Command lister lists the namespaces of every cluster that has a ClusterProfile
// in its namespace, a line of JSON for each, and fails if one cannot be listed.
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

// line is the output for one cluster.
type line struct {
	Profile    string   `json:"profile"`
	Namespaces []string `json:"namespaces,omitempty"`
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
	for i := range profiles.Items {
		told := line{Profile: profiles.Items[i].Namespace + "/" + profiles.Items[i].Name}
		if told.Namespaces, err = list(ctx, providers, &profiles.Items[i]); err != nil {
			told.Error = err.Error()
			problems = errors.Join(problems, fmt.Errorf("%s: %w", told.Profile, err))
		}
		if err := json.NewEncoder(out).Encode(told); err != nil {
			return err
		}
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
