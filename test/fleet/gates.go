package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"open-cluster-management.io/cluster-inventory-addon/test/fleet/await"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/files"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/objects"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/internal/progress"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/ocm"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/programs"
	"open-cluster-management.io/cluster-inventory-addon/test/fleet/supervisor"
)

// Gates are the feature gates by which upstream's own components write the same objects as
// the addon. The zero value is the initial state of a fleet.
type Gates struct {
	// Profiles makes OCM's registration controller write ClusterProfiles.
	Profiles bool

	// AccessProviders makes cluster-proxy write their access providers.
	AccessProviders bool

	// Tokens makes managed-serviceaccount copy tokens to them.
	Tokens bool

	// NoServiceProxy leaves out enableServiceProxy of cluster-proxy's chart, without which there
	// is no user server, as the published guide on kind does. It is no gate, but set like one.
	NoServiceProxy bool
}

// rolloutTimeout is how long a component, or the addon, may take to start, on a busy machine
// too.
const rolloutTimeout = 5 * time.Minute

// errNoAccess says that a fleet was not started with access to its spokes in this process.
var errNoAccess = errors.New("the fleet was not started with access")

// SetGates makes upstream's components run with exactly these gates, as the administrator
// of a hub does: with OCM's operator for the first, which also installs the ClusterProfile
// CRD, and with the charts' values for the others. It returns when they run. What a gate
// that is off has left on the hub stays there. The fleet must have been started with
// access, by this process.
func (f *Fleet) SetGates(ctx context.Context, gates Gates, out io.Writer) error {
	if len(f.access.charts) == 0 {
		return errNoAccess
	}
	report := progress.New(out)
	ctx, cancel := context.WithTimeout(ctx, rolloutTimeout)
	defer cancel()
	unlock, err := files.Lock(ctx, f.path("lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.setProfilesGate(ctx, gates.Profiles, report); err != nil {
		return fmt.Errorf("gate of OCM's ClusterProfiles: %w", err)
	}
	for _, chart := range f.access.charts {
		if err := f.setChartGates(ctx, chart, gates); err != nil {
			return fmt.Errorf("gates of %s: %w", chart.name, err)
		}
	}
	report.Line("hub: gates are %+v", gates)
	return nil
}

// setProfilesGate does what OCM's operator does. A controller whose gate is turned off
// loses its rights and is replaced; here, where it has an administrator's rights, it ends
// first.
func (f *Fleet) setProfilesGate(ctx context.Context, on bool, report *progress.Report) error {
	binary, err := programs.OCM.Path(ctx, f.Root, report)
	if err != nil {
		return err
	}
	sources, err := programs.OCM.ModuleDir(ctx, f.Root)
	if err != nil {
		return err
	}
	m := ocm.Manifests{Dir: filepath.Join(sources, "manifests")}
	ca, err := os.ReadFile(f.hubCertFile("ca.crt"))
	if err != nil {
		return err
	}
	role, err := m.RegistrationRole(ca, on)
	if err != nil {
		return err
	}
	c, err := f.Client(HubName)
	if err != nil {
		return err
	}
	process := f.hubOCM(binary).Registration(on)
	if !on {
		return errors.Join(f.ensureReady(ctx, process), objects.Apply(ctx, c, role...))
	}
	crds, err := m.ProfileCRD()
	if err != nil {
		return err
	}
	for _, crd := range crds {
		if err := objects.Replace(ctx, c, crd); err != nil {
			return err
		}
	}
	return errors.Join(objects.Apply(ctx, c, role...), f.ensureReady(ctx, process))
}

func (f *Fleet) ensureReady(ctx context.Context, process supervisor.Process) error {
	if err := f.Ensure(ctx, process); err != nil {
		return err
	}
	return f.WaitReady(ctx, process.Name)
}

// setChartGates upgrades a chart, and deletes what it no longer contains.
func (f *Fleet) setChartGates(ctx context.Context, chart chart, gates Gates) error {
	c, err := f.Client(HubName)
	if err != nil {
		return err
	}
	present, err := f.renderChart(ctx, chart, gates)
	if err != nil {
		return err
	}
	all, err := f.renderChart(ctx, chart, Gates{Profiles: true, AccessProviders: true, Tokens: true})
	if err != nil {
		return err
	}
	if err := objects.Apply(ctx, c, present...); err != nil {
		return err
	}
	for _, o := range all {
		isPresent := slices.ContainsFunc(present, func(p *unstructured.Unstructured) bool {
			return p.GroupVersionKind() == o.GroupVersionKind() && client.ObjectKeyFromObject(p) == client.ObjectKeyFromObject(o)
		})
		if isPresent {
			continue
		}
		if err := client.IgnoreNotFound(c.Delete(ctx, o)); err != nil {
			return err
		}
	}
	for _, o := range present {
		if o.GetKind() == "Deployment" {
			if err := waitRollout(ctx, c, client.ObjectKeyFromObject(o)); err != nil {
				return err
			}
		}
	}
	return nil
}

// waitRollout waits until a Deployment runs its present template, and nothing else.
func waitRollout(ctx context.Context, c client.Client, key client.ObjectKey) error {
	const every = 100 * time.Millisecond
	return await.Until(ctx, "Deployment "+key.String(), every, func(ctx context.Context) (bool, error) {
		d := &appsv1.Deployment{}
		if err := c.Get(ctx, key, d); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		want := ptr.Deref(d.Spec.Replicas, 1)
		s := d.Status
		return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == want &&
			s.ReadyReplicas == want && s.Replicas == want, nil
	})
}
