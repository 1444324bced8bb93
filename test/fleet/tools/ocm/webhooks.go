package main

import (
	"crypto/tls"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	addonv1alpha1 "open-cluster-management.io/ocm/pkg/addon/webhook/v1alpha1"
	addonv1beta1 "open-cluster-management.io/ocm/pkg/addon/webhook/v1beta1"
	"open-cluster-management.io/ocm/pkg/common/options"
	registrationv1 "open-cluster-management.io/ocm/pkg/registration/webhook/v1"
	registrationv1beta2 "open-cluster-management.io/ocm/pkg/registration/webhook/v1beta2"
)

// newWebhooks serves the addon conversion and the registration admission
// webhooks of OCM in one process. OCM's own webhook commands always bind
// :8000 and :8080 on every interface, so two fleets could not run side by
// side and the machine's network could reach them; here every address is a
// flag.
func newWebhooks() *cobra.Command {
	var host, certDir, probes string
	var port int
	cmd := &cobra.Command{
		Use:          "server",
		Short:        "Serve the addon conversion and the registration admission webhooks",
		SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			ctrl.SetLogger(klog.Background())
			cfg, err := ctrl.GetConfig()
			if err != nil {
				return err
			}
			// Given to the server as it is: the server would watch the files
			// for changes, and how many a user may watch is limited.
			cert, err := tls.LoadX509KeyPair(filepath.Join(certDir, "tls.crt"), filepath.Join(certDir, "tls.key"))
			if err != nil {
				return err
			}
			scheme := runtime.NewScheme()
			for _, install := range []func(*runtime.Scheme) error{
				clientgoscheme.AddToScheme, clusterv1.Install, registrationv1beta2.Install,
				addonv1alpha1.Install, addonv1beta1.Install,
			} {
				if err := install(scheme); err != nil {
					return err
				}
			}
			mgr, err := ctrl.NewManager(cfg, ctrl.Options{
				Scheme:                 scheme,
				HealthProbeBindAddress: probes,
				Metrics:                metricsserver.Options{BindAddress: "0"},
				WebhookServer: webhook.NewServer(
					webhook.Options{Host: host, Port: port, TLSOpts: []func(*tls.Config){serve(cert)}},
				),
			})
			if err != nil {
				return err
			}
			if err := mgr.AddReadyzCheck("webhooks", mgr.GetWebhookServer().StartedChecker()); err != nil {
				return err
			}
			if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
				return err
			}
			for _, hook := range []options.WebhookInitializer{
				&addonv1alpha1.ManagedClusterAddOnWebhook{}, &addonv1beta1.ManagedClusterAddOnWebhook{},
				&addonv1alpha1.ClusterManagementAddOnWebhook{}, &addonv1beta1.ClusterManagementAddOnWebhook{},
				&registrationv1.ManagedClusterWebhook{}, &registrationv1beta2.ManagedClusterSetBindingWebhook{},
			} {
				if err := hook.Init(mgr); err != nil {
					return err
				}
			}
			return mgr.Start(ctrl.SetupSignalHandler())
		},
	}
	cmd.Flags().StringVar(&host, "host", "127.0.0.1", "Address to serve at.")
	cmd.Flags().IntVar(&port, "port", 9443, "Port to serve at.")
	cmd.Flags().StringVar(&certDir, "certdir", "", "Directory that holds tls.crt and tls.key.")
	cmd.Flags().StringVar(&probes, "health-probe-bind-address", "127.0.0.1:8000", "Address of /healthz and /readyz.")
	return cmd
}

func serve(cert tls.Certificate) func(*tls.Config) {
	return func(cfg *tls.Config) {
		cfg.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }
	}
}
