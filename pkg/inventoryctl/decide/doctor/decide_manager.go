package doctor

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"open-cluster-management.io/cluster-inventory-addon/pkg/contract"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/settings"
	"open-cluster-management.io/cluster-inventory-addon/pkg/kube"
)

// ManagerFacts is what a reader may know about the manager.
type ManagerFacts struct {
	Namespace  string
	Deployment decide.Object[appsv1.Deployment]
	Lease      decide.Object[coordinationv1.Lease] // of the leader election

	// Settings are those of the Deployment, or the defaults, and what the ClusterManagementAddOn says.
	Settings settings.Settings
}

// annotationOfReleases is where Helm records the namespace of a release.
const annotationOfReleases = "meta.helm.sh/release-namespace"

// ManagerNamespace returns the namespace of the manager according to the ClusterManagementAddOn,
// which is nil if it is absent or hidden.
func ManagerNamespace(definition *addonv1beta1.ClusterManagementAddOn) string {
	if definition != nil {
		for _, annotation := range []string{contract.AnnotationManagerNamespace, annotationOfReleases} {
			namespace := definition.Annotations[annotation]
			if len(validation.IsDNS1123Label(namespace)) == 0 {
				return namespace
			}
		}
	}
	return decide.UsualNamespace
}

// maxLeaseAge is how long ago a leader may have renewed its Lease. It does so every second, but
// the reader's clock may differ from the leader's.
const maxLeaseAge = time.Minute

func (m ManagerFacts) deployment() string { return m.Namespace + "/" + contract.ManagerDeployment }

func (f HubFacts) checkManager() decide.Finding {
	const name = "manager"
	m := f.Manager
	where := "Deployment " + m.deployment()
	switch {
	case m.Deployment.Hidden:
		return notVisible(name, where)
	case m.Deployment.Object == nil && f.Installation.Object == nil && !f.Installation.Hidden:
		return notConfigured(name, "the addon is not installed")
	case m.Deployment.Object == nil:
		return problem(name, "there is no "+where, "install the addon's chart: "+decide.InstallChart())
	}
	deployment, status := m.Deployment.Object, m.Deployment.Object.Status
	replicas := int32(1)
	if deployment.Spec.Replicas != nil {
		replicas = *deployment.Spec.Replicas
	}
	version := "version " + versionOfManager(deployment)
	look := fmt.Sprintf("kubectl describe pods -n %s -l app.kubernetes.io/component=manager", m.Namespace)
	switch {
	case replicas == 0:
		return problem(name, where+" has 0 replicas, so no manager runs",
			fmt.Sprintf("kubectl scale deployment %s -n %s --replicas=1", contract.ManagerDeployment, m.Namespace))
	case status.ReadyReplicas < replicas:
		return problem(name, fmt.Sprintf("%s: %d of %d replicas are ready", version, status.ReadyReplicas, replicas), look)
	case status.ObservedGeneration < deployment.Generation || status.UpdatedReplicas < replicas:
		return problem(name, version+" is still being rolled out",
			fmt.Sprintf("kubectl rollout status deployment/%s -n %s", contract.ManagerDeployment, m.Namespace))
	}
	return ok(name, fmt.Sprintf("%s in namespace %s, %d of %d replicas are ready",
		version, m.Namespace, status.ReadyReplicas, replicas))
}

// versionOfManager returns the version in the image's tag, else that of the chart.
func versionOfManager(deployment *appsv1.Deployment) string {
	if found := versionOf(deployment); found != nil {
		return found.String()
	}
	if version := deployment.Labels["app.kubernetes.io/version"]; version != "" {
		return kube.Shorten(version, decide.MaxMessageBytes)
	}
	return "unknown"
}

func (f HubFacts) checkLeader(now time.Time) decide.Finding {
	const name = "leader"
	m := f.Manager
	where := "Lease " + m.Namespace + "/" + contract.LeaseName
	logs := fmt.Sprintf("kubectl logs -n %s deployment/%s", m.Namespace, contract.ManagerDeployment)
	switch {
	case m.Lease.Hidden:
		return notVisible(name, where)
	case m.Lease.Object == nil && f.Installation.Object == nil && !f.Installation.Hidden:
		return notConfigured(name, "the addon is not installed")
	case m.Lease.Object == nil:
		return problem(name, "no manager leads: there is no "+where, logs)
	}
	spec := m.Lease.Object.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil {
		return problem(name, "no manager leads, so nothing is written: no one holds "+where, logs)
	}
	holder := kube.Shorten(*spec.HolderIdentity, decide.MaxMessageBytes)
	if age := now.Sub(spec.RenewTime.Time); age > maxLeaseAge {
		return problem(name, fmt.Sprintf("no manager leads, so nothing is written: %s renewed %s last %s ago by this "+
			"machine's clock", holder, where, duration.HumanDuration(age)), logs)
	}
	return ok(name, holder+" leads")
}

func (f HubFacts) checkSettings() decide.Finding {
	const name = "settings"
	s := f.Manager.Settings
	switch {
	case f.Manager.Deployment.Hidden:
		return notVisible(name, "the manager's flags, so these checks assume its defaults")
	case f.Manager.Deployment.Object == nil:
		return notConfigured(name, "these checks assume the manager's defaults")
	case s.Problem != "":
		return problem(name, "the manager cannot start with its flags: "+kube.Shorten(s.Problem, decide.MaxMessageBytes),
			fmt.Sprintf("kubectl describe deployment %s -n %s", contract.ManagerDeployment, f.Manager.Namespace))
	case len(s.Changed) == 0:
		return ok(name, "the manager runs with the defaults")
	default:
		return ok(name, "the manager runs with "+kube.Shorten(strings.Join(s.Changed, " "), decide.MaxMessageBytes))
	}
}
