package inventoryctl

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/docs"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/gather"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// Exit codes of the process.
const (
	// ExitOK: all is well, or there is nothing to check.
	ExitOK = 0
	// ExitMissing: something is missing or would change; stdout says what.
	ExitMissing = 1
	// ExitFailed: the command failed; stderr says why.
	ExitFailed = 2
)

// docsOfRights says which rights each subcommand needs.
func docsOfRights() string { return docs.URL("docs/kubectl-inventory.md#what-each-subcommand-reads") }

// errMissing ends a subcommand that has reported what is missing.
var errMissing = errors.New("something is missing")

// maxErrorBytes bounds the one line of a failure.
const maxErrorBytes = 1024

// oneLine returns an error as one printable line.
func oneLine(err error) string {
	return kube.Shorten(strings.Join(strings.Fields(err.Error()), " "), maxErrorBytes)
}

// advise adds to an error what its reader can do.
func advise(err error, host string) error {
	unserved, isUnserved := errors.AsType[*gather.UnservedError](err)
	_, isURL := errors.AsType[*url.Error](err)
	_, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case isUnserved:
		return adviseUnserved(unserved, host)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf(
			"%s does not accept your credentials: log in again, or choose others with --context or --user", host)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("you may not do that: %w; ask the hub's administrator for the rights that "+
			"%s lists", err, docsOfRights())
	case clientcmd.IsEmptyConfig(err):
		return errors.New("no kubeconfig says where the hub is: set $KUBECONFIG, or give --kubeconfig")
	case clientcmd.IsConfigurationInvalid(err), clientcmd.IsContextNotFound(err):
		return fmt.Errorf("the kubeconfig cannot be used: %w", err)
	case errors.Is(err, context.DeadlineExceeded), isURL, isNet:
		return fmt.Errorf("%w: see whether %s is the hub and is up, or choose another with --context", err, host)
	case apierrors.ReasonForError(err) != metav1.StatusReasonUnknown:
		return fmt.Errorf("%w: %s could not respond; try again, and check its API server if that persists", err, host)
	case host != "": // what answered is no Kubernetes API server, or was cut off
		return fmt.Errorf("%w: see whether %s is the hub's API server, or choose another with --context", err, host)
	default:
		return err
	}
}

func adviseUnserved(err *gather.UnservedError, host string) error {
	switch err.Kind {
	case "ClusterProfiles":
		return fmt.Errorf("%s serves no ClusterProfiles: install the addon with its chart, which installs the API, "+
			"or choose another hub with --context", host)
	case "ManagedClusterAddOns", "ClusterManagementAddOns":
		return fmt.Errorf("%s serves no %s in version v1beta1: it is not a hub of Open Cluster Management 1.2.1 or later; "+
			"choose another with --context", host, err.Kind)
	default:
		return fmt.Errorf("%s serves no %s: it is not a hub of Open Cluster Management; choose another with --context",
			host, err.Kind)
	}
}
