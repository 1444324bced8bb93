package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/objects"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/progress"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/ocm"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/programs"
)

// waitAccess returns when every managed cluster has answered a request from the hub.
func (f *Fleet) waitAccess(ctx context.Context, report *progress.Report) error {
	if !f.state.Access {
		return nil
	}
	err := each(f.Managed(), func(spoke string) error {
		if err := f.tryTunnel(ctx, spoke); err != nil {
			return err
		}
		report.Line("%s: answers through the tunnel", spoke)
		return nil
	})
	if err != nil {
		f.Diagnose(ctx, report.Out())
	}
	return err
}

// trialAccount is the account that the fleet tries a tunnel with, and deletes
// afterwards.
const trialAccount = "fleet-trial"

// tryTunnel does what a user of a cluster does: it lists the namespaces of the
// spoke through the user server, with the token of an account of the spoke.
func (f *Fleet) tryTunnel(ctx context.Context, spoke string) (err error) {
	hub, err := f.Client(HubName)
	if err != nil {
		return err
	}
	cluster, err := f.Client(spoke)
	if err != nil {
		return err
	}
	account, grants := trial(spoke)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = errors.Join(err, client.IgnoreNotFound(hub.Delete(ctx, account)))
		for _, grant := range grants {
			err = errors.Join(err, client.IgnoreNotFound(cluster.Delete(ctx, grant)))
		}
	}()
	if err := objects.Apply(ctx, cluster, grants...); err != nil {
		return err
	}
	if err := objects.Apply(ctx, hub, account); err != nil {
		return err
	}
	var token string
	err = await.Until(ctx, "a token of "+spoke, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		token, err = f.trialToken(ctx, hub, spoke)
		return err == nil, err
	})
	if err != nil {
		return err
	}
	return await.Until(ctx, "the tunnel to "+spoke, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		err := f.namespacesThroughTunnel(ctx, hub, spoke, token)
		return err == nil, err
	})
}

// trial is an account on the hub and the RBAC it needs on the spoke.
func trial(spoke string) (account *unstructured.Unstructured, grants []*unstructured.Unstructured) {
	return objects.New(`
apiVersion: authentication.open-cluster-management.io/v1beta1
kind: ManagedServiceAccount
metadata: {name: %s, namespace: %s}
spec: {rotation: {}}`, trialAccount, spoke), []*unstructured.Unstructured{
			objects.New(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %s}
rules: [{apiGroups: [""], resources: [namespaces], verbs: [list]}]`, trialAccount),
			objects.New(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}
subjects: [{kind: ServiceAccount, name: %s, namespace: %s}]`,
				trialAccount, trialAccount, trialAccount, ocm.AddonNamespace),
		}
}

func (f *Fleet) trialToken(ctx context.Context, hub client.Client, spoke string) (string, error) {
	account, _ := trial(spoke)
	if err := hub.Get(ctx, client.ObjectKeyFromObject(account), account); err != nil {
		return "", err
	}
	name, _, err := unstructured.NestedString(account.Object, "status", "tokenSecretRef", "name")
	if err != nil {
		return "", err
	}
	if name == "" {
		return "", errors.New(addonState(ctx, hub, spoke, programs.ManagedServiceAccount.Name))
	}
	secret := &corev1.Secret{}
	if err := hub.Get(ctx, client.ObjectKey{Namespace: spoke, Name: name}, secret); err != nil {
		return "", err
	}
	if len(secret.Data["token"]) == 0 {
		return "", fmt.Errorf("secret %s/%s has no token", spoke, name)
	}
	return string(secret.Data["token"]), nil
}

// addonState is one line on what the hub knows about an addon on a cluster.
func addonState(ctx context.Context, hub client.Client, spoke, name string) string {
	addon := &addonv1alpha1.ManagedClusterAddOn{}
	if err := hub.Get(ctx, client.ObjectKey{Namespace: spoke, Name: name}, addon); err != nil {
		return err.Error()
	}
	var states []string
	for _, condition := range addon.Status.Conditions {
		states = append(states, fmt.Sprintf("%s=%s (%s)", condition.Type, condition.Status, condition.Reason))
	}
	return fmt.Sprintf("addon %s on %s: %s", name, spoke, strings.Join(states, ", "))
}

// namespacesThroughTunnel fails unless the spoke itself answers.
func (f *Fleet) namespacesThroughTunnel(ctx context.Context, hub client.Client, spoke, token string) error {
	status, body, err := f.listNamespaces(ctx, hub, spoke, token)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf(
			"%d %s; %s", status, strings.TrimSpace(string(body)), addonState(ctx, hub, spoke, programs.ClusterProxy.Name),
		)
	}
	list := &corev1.NamespaceList{}
	if err := json.Unmarshal(body, list); err != nil {
		return err
	}
	system := &corev1.Namespace{}
	cluster, err := f.Client(spoke)
	if err != nil {
		return err
	}
	if err := cluster.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return err
	}
	if !slices.ContainsFunc(list.Items, func(n corev1.Namespace) bool { return n.UID == system.UID }) {
		return fmt.Errorf("another cluster answered for %s", spoke)
	}
	return nil
}

// listNamespaces lists the namespaces of a spoke through the user server.
func (f *Fleet) listNamespaces(
	ctx context.Context, hub client.Client, spoke, token string,
) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	certificate := &corev1.Secret{}
	if err := hub.Get(
		ctx, client.ObjectKey{Namespace: AccessNamespace, Name: "cluster-proxy-user-serving-cert"}, certificate,
	); err != nil {
		return 0, nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate.Data[corev1.TLSCertKey])
	transport := &http.Transport{
		DialContext: f.ServiceDialer(HubName), DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
	request, err := http.NewRequestWithContext(
		ctx, http.MethodGet, "https://"+UserServer+"/"+spoke+"/api/v1/namespaces", nil,
	)
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// accessStatus shows the addons of every managed cluster and whether it can be reached from
// the hub; it returns how many cannot.
func (f *Fleet) accessStatus(ctx context.Context, line func(format string, args ...any)) (unwell int) {
	if !f.state.Access {
		return 0
	}
	hub, err := f.Client(HubName)
	if err != nil {
		return len(f.Managed())
	}
	line("")
	line("ACCESS\tCLUSTER-PROXY\tMANAGED-SERVICEACCOUNT\tTUNNEL\tUSER SERVER")
	for _, spoke := range f.Managed() {
		tunnel := "up"
		if err := f.knock(ctx, hub, spoke); err != nil {
			tunnel = "down: " + err.Error()
			unwell++
		}
		line(
			"%s\t%s\t%s\t%s\thttps://%s/%s",
			spoke,
			available(ctx, hub, spoke, programs.ClusterProxy.Name),
			available(ctx, hub, spoke, programs.ManagedServiceAccount.Name),
			tunnel,
			UserServer,
			spoke,
		)
	}
	return unwell
}

// available reports whether the hub considers an addon available. That follows a lease and
// lags by up to half a minute.
func available(ctx context.Context, hub client.Client, spoke, name string) metav1.ConditionStatus {
	addon := &addonv1alpha1.ManagedClusterAddOn{}
	if err := hub.Get(ctx, client.ObjectKey{Namespace: spoke, Name: name}, addon); err != nil {
		return metav1.ConditionFalse
	}
	condition := meta.FindStatusCondition(addon.Status.Conditions, addonv1alpha1.ManagedClusterAddOnConditionAvailable)
	if condition == nil {
		return metav1.ConditionUnknown
	}
	return condition.Status
}

// knock sends an invalid token through the tunnel: a refusal comes from the spoke.
func (f *Fleet) knock(ctx context.Context, hub client.Client, spoke string) error {
	status, body, err := f.listNamespaces(ctx, hub, spoke, "none")
	if err == nil && status != http.StatusUnauthorized {
		err = fmt.Errorf("%d %s", status, strings.TrimSpace(string(body)))
	}
	return err
}
