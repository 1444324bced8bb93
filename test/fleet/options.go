package fleet

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// NoSpokes as the number of spokes makes a fleet of a hub alone.
const NoSpokes = -1

// Options of a fleet.
type Options struct {
	// Name of the fleet; "default" when empty.
	Name string
	// Spokes is the number of spokes: 2 if 0, none if NoSpokes. A running fleet may grow,
	// but does not shrink.
	Spokes int
	// Access also runs cluster-proxy and managed-serviceaccount, with a tunnel
	// from the hub to every spoke. A fleet that has them keeps them.
	Access bool
	// Consumers also gives the nodes the images of other projects' consumers: KueueImage
	// and KnativeOperatorImage. It implies Access. A fleet that has them keeps them.
	Consumers bool
	// Token makes the klusterlet of TokenSpoke register addons by token instead of
	// certificate. A fleet that has it keeps it.
	Token bool
	// Hosted makes HostingSpoke host the klusterlet of HostedSpoke, with everything that
	// addons need on a hosting cluster. A fleet that has it keeps it.
	Hosted bool
	// LocalCluster also joins the hub itself, as the managed cluster LocalCluster in the set
	// "default". A fleet that has it keeps it.
	LocalCluster bool
	// CredentialLifetime is the validity of the certificates that the hub signs from now
	// on, and of the tokens of addons; 0 means their default.
	CredentialLifetime time.Duration
	// Audit is a directory in which the API servers log the requests of service accounts and
	// of the addon's agents from now on, as <fleet>/<cluster>.log; it stays when the fleet is
	// removed. Empty means $FLEET_AUDIT, and without that there are no such logs.
	Audit string
}

// LocalCluster is the name of the hub as a managed cluster, if it is one.
const LocalCluster = "local-cluster"

// The spokes that Options.Token and Options.Hosted are about.
const (
	TokenSpoke   = "cluster2"
	HostedSpoke  = "cluster2"
	HostingSpoke = "cluster1"
)

func (o *Options) complete() error {
	if o.Name == "" {
		o.Name = "default"
	}
	o.Audit = cmp.Or(o.Audit, os.Getenv("FLEET_AUDIT"))
	if o.Audit != "" && !filepath.IsAbs(o.Audit) {
		return fmt.Errorf("FLEET_AUDIT=%s: want an absolute path", o.Audit)
	}
	switch {
	case o.Spokes == 0:
		o.Spokes = 2
	case o.Spokes == NoSpokes:
		o.Spokes = 0
	case o.Spokes < 1 || o.Spokes > 50:
		return fmt.Errorf("%d spokes: want 1 to 50", o.Spokes)
	}
	return nil
}
