package upstream

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube/watch"
)

// ProxyDeployment is the name of cluster-proxy's own manager on the hub (cluster-proxy v0.10.0,
// charts/cluster-proxy). Its command line shows whether cluster-proxy writes access providers.
const ProxyDeployment = "cluster-proxy-addon-manager"

// ProxyGate finds out whether cluster-proxy writes access providers itself.
type ProxyGate struct{ followed }

// AddProxyGate makes the manager follow the Deployment of cluster-proxy's manager
// in cluster-proxy's namespace.
func AddProxyGate(
	mgr manager.Manager, namespace string, clock clock.Clock, report func(on, unknown bool),
) (*ProxyGate, error) {
	g := &ProxyGate{followed{indicator: indicator{clock: clock, report: report}}}
	return g, g.add(mgr, namespace, ProxyDeployment, watch.Follow{
		Object: &appsv1.Deployment{}, List: &appsv1.DeploymentList{}, Trim: kube.Trimmed(trimDeployment),
	})
}

// Verdict reports whether the gate is on. problem completes a sentence about an access
// provider: why it is left alone, because the gate is on or its state is unknown. It is
// empty when the gate is off. transient is true if its state will be known within moments.
func (g *ProxyGate) Verdict() (on bool, problem string, transient bool) {
	var args []string
	unknown := g.follower.Unknown()
	if unknown == "" {
		deployment, known := g.object()
		if !known {
			unknown = watch.NotFoundYet
		}
		args = commandLine(deployment)
	}
	on, problem = decideProxy(g.key, args, unknown)
	g.report(on, unknown != "")
	return on, problem, watch.IsTransient(unknown)
}

// Stable reports whether the verdict is known, or remains unknown until a user acts.
func (g *ProxyGate) Stable() bool { return g.follower.Stable() }

// ProxyWrites reports whether the Deployment of cluster-proxy's manager, nil if there is
// none, has the gate for access providers on.
func ProxyWrites(deployment *appsv1.Deployment) bool {
	return deployment != nil && proxyGateOn(commandLine(deployment))
}

func commandLine(obj client.Object) []string {
	var args []string
	if deployment, ok := obj.(*appsv1.Deployment); ok {
		for _, container := range deployment.Spec.Template.Spec.Containers {
			args = slices.Concat(args, container.Command, container.Args)
		}
	}
	return args
}

// trimDeployment keeps only the command lines.
func trimDeployment(full *appsv1.Deployment) *appsv1.Deployment {
	small := &appsv1.Deployment{ObjectMeta: kube.TrimMeta(full.ObjectMeta)}
	for _, container := range full.Spec.Template.Spec.Containers {
		kept := corev1.Container{Command: container.Command, Args: container.Args}
		small.Spec.Template.Spec.Containers = append(small.Spec.Template.Spec.Containers, kept)
	}
	return small
}
