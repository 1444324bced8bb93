package inventoryctl

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide/doctor"
)

func newDoctorCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "doctor",
		Aliases: []string{"check"},
		Short:   "Checks the hub: the manager, versions, APIs, rights, agents, tokens and certificates",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.doctor(cmd.Context()) },
	}
	o.addOutput(cmd)
	return cmd
}

func (o *options) doctor(ctx context.Context) error {
	hub, err := o.hub()
	if err != nil {
		return err
	}
	now := o.now()
	facts, err := hub.Examine(ctx, now)
	if err != nil {
		return advise(err, hub.Host)
	}
	checks := doctor.CheckHub(facts, now)
	isVisible := func(check decide.Finding) bool { return check.State != decide.NotVisible }
	if !slices.ContainsFunc(checks, isVisible) {
		return errors.New("nothing of this hub as a whole is visible to you: ask its administrator for the rights that " +
			docsOfRights() + " lists; kubectl inventory explain needs less")
	}
	return o.printChecks("checks", checks)
}
