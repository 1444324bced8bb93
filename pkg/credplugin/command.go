package credplugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"open-cluster-management.io/cluster-inventory-addon/pkg/version"
)

// Main runs the command line and returns the exit code. A failure is one line on stderr.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	// Log lines of libraries would add to the one line on stderr.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	cmd := newCommand() //nolint:contextcheck // ExecuteContext hands it to the commands
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	_, _ = fmt.Fprintf(stderr, "cp-creds: %v\n", err) // a failure to write has nowhere to be reported
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure.Code
	}
	return ExitUsage // cobra's own errors all concern the command line
}

func newCommand() *cobra.Command {
	opts := NewOptions()
	cmd := &cobra.Command{
		Use:               "cp-creds",
		Short:             "Gives a client the token for the cluster of a ClusterProfile",
		Args:              cobra.NoArgs,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.Validate(); err != nil {
				return err
			}
			find := func() (*hub, error) { return findHub(opts.Namespace) }
			return printFrom(cmd.Context(), opts, find, time.Now, cmd.OutOrStdout())
		},
	}
	opts.AddFlags(cmd.Flags())
	version.AddFlag(cmd)
	cmd.AddCommand(newInstallCommand())
	return cmd
}

func newInstallCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "install DIRECTORY",
		Short: "Copies this program into a directory, for an init container",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := install(args[0])
			if err != nil {
				return failf(ExitFailed, "install: %v", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "installed %s\n", path)
			return nil
		},
	}
}

// PrintFrom writes the credential the client asks for to out, as cp-creds does. It reads the token
// in opts.Namespace of the given hub, wherever the program runs.
func PrintFrom(ctx context.Context, opts *Options, config *rest.Config, now func() time.Time, out io.Writer) error {
	return printFrom(ctx, opts, func() (*hub, error) {
		return &hub{config: config, namespace: opts.Namespace, source: "from --namespace"}, nil
	}, now, out)
}

// printFrom writes the credential the client asks for to out. It looks for the hub only if the client's
// request is valid.
func printFrom(
	ctx context.Context, opts *Options, find func() (*hub, error), now func() time.Time, out io.Writer,
) error {
	ctx, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	wanted, err := wantedAccount(opts.ExecInfo, opts.ManagedServiceAccount)
	if err != nil {
		return err
	}
	hub, err := find()
	if err != nil {
		return err
	}
	secret, err := hub.secretWithin(ctx, wanted)
	if err != nil {
		return err
	}
	found, err := credentialFrom(secret, wanted, now(), opts.MaxCache)
	if err != nil {
		return err
	}
	expires := metav1.NewTime(found.expires.UTC())
	err = json.NewEncoder(out).Encode(&clientauthenticationv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: execVersion, Kind: execKind},
		Status:   &clientauthenticationv1.ExecCredentialStatus{Token: found.token, ExpirationTimestamp: &expires},
	})
	if err != nil {
		return failf(ExitFailed, "cannot write the credential: %v", err)
	}
	return nil
}
