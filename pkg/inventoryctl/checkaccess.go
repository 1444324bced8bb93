package inventoryctl

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/kubeconfig"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/reach"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

type checkAccessOptions struct {
	*options
	account  string
	provider string
	can      []string
	timeout  time.Duration
}

func newCheckAccessCommand(o *options) *cobra.Command {
	c := &checkAccessOptions{options: o, provider: contract.AccessProviderName, timeout: 10 * time.Second}
	cmd := &cobra.Command{
		Use:   "check-access CLUSTER --account ACCOUNT",
		Short: "Connects to a cluster as its ClusterProfile says, and names the hop that fails",
		Long: "Connects to a cluster as its ClusterProfile says, and names the hop that fails: the server's name, the\n" +
			"connection, TLS with the published CA, the tunnel, the account's token, the cluster's authentication, and the\n" +
			"account's rights there. It gets the token from the exec plugin of \"kubeconfig\", and shows it to no one else.",
		Example: "  kubectl inventory check-access cluster1 -n team-a --account reader\n" +
			"  kubectl inventory check-access cluster1 -n team-a --account reader --can 'list deployments.apps in default'",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.completeCluster,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
	}
	o.addOutput(cmd)
	flags := cmd.Flags()
	flags.StringVar(&c.account, "account", "", "name of the ManagedServiceAccount whose token to use (required)")
	flags.StringVar(&c.provider, "access-provider", c.provider, "name of the profile's access provider to use")
	flags.StringArrayVar(&c.can, "can", nil,
		"ask whether the account may do this: 'VERB RESOURCE[.GROUP] [in NAMESPACE]'; may be repeated")
	flags.DurationVar(&c.timeout, "timeout", c.timeout, "how long each request may take")
	return cmd
}

func (c *checkAccessOptions) run(cmd *cobra.Command, cluster string) error {
	way := reach.Way{Cluster: cluster, Account: c.account, Timeout: c.timeout, Stdin: c.In}
	if err := c.validate(&way); err != nil {
		return err
	}
	arguments, env, err := hubReference(c.config.ToRawKubeConfigLoader(), cmd.Root().PersistentFlags())
	if err != nil {
		return err
	}
	hub, err := c.hub()
	if err != nil {
		return err
	}
	profile, hidden, err := hub.Profile(cmd.Context(), way.Namespace, cluster)
	explain := "kubectl inventory explain " + cluster + " -n " + way.Namespace
	switch {
	case err != nil:
		return advise(err, hub.Host)
	case hidden:
		return mayNotRead(way.Namespace)
	case profile == nil:
		err = errors.New("there is no ClusterProfile")
	default:
		way.Address, err = kubeconfig.ClusterOf(profile, c.provider)
	}
	if err != nil {
		return c.printChecks("hops", []decide.Finding{decide.Problem.FixedBy(hopProfile, err.Error(), explain)})
	}
	way.Exec = execOf(way.Namespace, arguments, env)(c.account)
	hops, err := reach.Check(cmd.Context(), way)
	if err != nil {
		return err
	}
	published := decide.OK.Finding(hopProfile, "the ClusterProfile publishes "+way.Address.Server)
	return c.printChecks("hops", append([]decide.Finding{published}, hops...))
}

// hopProfile is where the way begins.
const hopProfile = "profile"

// checkAccount returns why a text cannot be the name of an account.
func checkAccount(name string) error {
	switch {
	case name == "":
		return errors.New(
			"--account: is required: the name of a ManagedServiceAccount whose token is copied to the namespace")
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return fmt.Errorf("--account: %s is not the name of an account", kube.Quote(name))
	default:
		return nil
	}
}

func (c *checkAccessOptions) validate(way *reach.Way) error {
	if err := checkCluster(way.Cluster); err != nil {
		return err
	}
	if err := checkAccount(c.account); err != nil {
		return err
	}
	if c.timeout <= 0 {
		return fmt.Errorf("--timeout: %s is not positive", c.timeout)
	}
	for _, text := range c.can {
		question, err := reach.ParseQuestion(text)
		if err != nil {
			return fmt.Errorf("--can: %w", err)
		}
		way.Questions = append(way.Questions, question)
	}
	var err error
	way.Namespace, _, err = c.namespace()
	return err
}

// mayNotRead is the error for profiles that the reader may not get.
func mayNotRead(namespace string) error {
	return fmt.Errorf("you may not read the ClusterProfiles of namespace %s: ask for the right to get "+
		"clusterprofiles.multicluster.x-k8s.io there, or give another namespace with -n", namespace)
}
