package approval

import (
	"context"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

const (
	// indexRequestByCluster finds the pending requests labelled with a cluster's name.
	indexRequestByCluster = "cluster"

	// ControllerName is the name of the controller that approves the agents'
	// certificate requests.
	ControllerName = "hub.csr-approval"

	// A failed approval is retried after firstApprovalRetry, and later at growing intervals
	// of at most lastApprovalRetry: an agent without a certificate cannot report.
	firstApprovalRetry = 50 * time.Millisecond
	lastApprovalRetry  = time.Minute
)

// CacheOptions returns which certificate requests the manager's cache must hold: this addon's
// for the one signer whose requests are approved.
func CacheOptions() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&certificatesv1.CertificateSigningRequest{}: {
			Label: labels.SelectorFromSet(labels.Set{addonv1beta1.AddonLabelKey: contract.AddonName}),
			Field: fields.OneTermEqualSelector("spec.signerName",
				certificatesv1.KubeAPIServerClientSignerName),
			Transform: kube.Trimmed(trimRequest),
		},
	}
}

// trimRequest keeps the fields that validation reads, and of decided requests only the
// decision. The metadata of a request that may be approved stays, because the approval writes
// it back. Any user who may create requests may label them as this addon's and make them
// large, so only what a refusal shows is kept of an oversized one.
func trimRequest(request *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	request.ManagedFields = nil
	request.Spec.UID, request.Spec.Groups, request.Spec.Extra = "", nil, nil
	request.Status.Certificate = nil
	if isDecided(request) || request.Size() > maxRequestBytes {
		return outlineOf(request)
	}
	return request
}

// outlineOf returns a request without its content: whose it is and what was decided.
func outlineOf(request *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	outline := &certificatesv1.CertificateSigningRequest{
		TypeMeta:   request.TypeMeta,
		ObjectMeta: kube.TrimMeta(request.ObjectMeta),
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: kube.Shorten(request.Spec.SignerName, maxShownBytes),
			Username:   kube.Shorten(request.Spec.Username, maxShownBytes),
		},
	}
	outline.Labels = kube.OnlyLabels(request.Labels, clusterv1.ClusterNameLabelKey)
	if at := slices.IndexFunc(request.Status.Conditions, isDecision); at >= 0 {
		decision := request.Status.Conditions[at]
		outline.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
			{Type: decision.Type, Status: decision.Status},
		}
	}
	return outline
}

// Add adds the controller hub.csr-approval. The manager's cache must be
// configured by CacheOptions and hold the deletion times of ManagedClusters and
// ManagedClusterAddOns, and spec.hubAcceptsClient.
func Add(ctx context.Context, mgr manager.Manager) error {
	kind := &certificatesv1.CertificateSigningRequest{}
	if err := mgr.GetCache().IndexField(ctx, kind, indexRequestByCluster, clusterOfRequest); err != nil {
		return err
	}
	a := &Approver{Client: mgr.GetClient()}
	return builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		Watches(kind, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.NewPredicateFuncs(isPending))).
		// A request may be seen before its cluster and addon are, or before the hub
		// accepts the cluster.
		Watches(&clusterv1.ManagedCluster{}, a.requests(client.Object.GetName),
			builder.WithPredicates(kube.OnChange(func(before, after *clusterv1.ManagedCluster) bool {
				return before.Spec.HubAcceptsClient != after.Spec.HubAcceptsClient
			}))).
		Watches(&addonv1beta1.ManagedClusterAddOn{}, a.requests(client.Object.GetNamespace),
			builder.WithPredicates(kube.Named(contract.AddonName), kube.OnChange(kube.Never))).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				firstApprovalRetry, lastApprovalRetry),
		}).
		Complete(a)
}

// Approver approves the agents' certificate requests. Its requests are the names of
// CertificateSigningRequests.
//
// addon-framework has an approver, too, which is not used: it marks the request in its
// cache as approved before it writes the approval, and never retries a failed write.
type Approver struct {
	Client client.Client
}

// Reconcile approves one request if it is pending and there is no objection.
func (a *Approver) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	request, err := kube.Get(ctx, a.Client, req.NamespacedName, &certificatesv1.CertificateSigningRequest{})
	if err != nil || request == nil || isDecided(request) {
		return reconcile.Result{}, err
	}
	name := request.Labels[clusterv1.ClusterNameLabelKey]
	if name == "" {
		return reconcile.Result{}, nil
	}
	cluster, err := kube.Get(ctx, a.Client, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{})
	if err != nil || cluster == nil {
		return reconcile.Result{}, err
	}
	key := client.ObjectKey{Namespace: name, Name: contract.AddonName}
	addon, err := kube.Get(ctx, a.Client, key, &addonv1beta1.ManagedClusterAddOn{})
	if err != nil || addon == nil {
		return reconcile.Result{}, err
	}
	if refusal := objection(cluster, addon, request); refusal != nil {
		log.FromContext(ctx).Info("Certificate request not approved",
			"cluster", name, "requester", request.Spec.Username, "reason", refusal.Error())
		return reconcile.Result{}, nil
	}
	if err := a.Client.SubResource("approval").Update(ctx, approved(request)); err != nil {
		return reconcile.Result{}, fmt.Errorf("approving the certificate request of cluster %s: %w", name, err)
	}
	return reconcile.Result{}, nil
}

func isPending(object client.Object) bool {
	request, ok := object.(*certificatesv1.CertificateSigningRequest)
	return ok && !isDecided(request)
}

// requests enqueues the pending requests that are labelled with the name of an object's cluster.
func (a *Approver) requests(clusterOf func(client.Object) string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		list, cluster := &certificatesv1.CertificateSigningRequestList{}, clusterOf(object)
		of := client.MatchingFields{indexRequestByCluster: cluster}
		if err := a.Client.List(ctx, list, of, kube.Uncopied); err != nil {
			log.FromContext(ctx).Error(err, "Cannot list the certificate requests of a cluster", "cluster", cluster)
			return nil
		}
		requests := make([]reconcile.Request, 0, len(list.Items))
		for i := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return requests
	})
}

func clusterOfRequest(object client.Object) []string {
	if cluster := object.GetLabels()[clusterv1.ClusterNameLabelKey]; cluster != "" && isPending(object) {
		return []string{cluster}
	}
	return nil
}
