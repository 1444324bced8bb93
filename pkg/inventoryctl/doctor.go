package inventoryctl

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/decide/doctor"
	"open-cluster-management.io/cluster-inventory-addon/pkg/inventoryctl/show"
)

type doctorOptions struct {
	*options
	output string
}

func newDoctorCommand(o *options) *cobra.Command {
	d := &doctorOptions{options: o}
	cmd := &cobra.Command{
		Use:     "doctor",
		Aliases: []string{"check"},
		Short:   "Checks the hub: the manager, versions, APIs, rights, agents, tokens and certificates",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context()) },
	}
	addOutput(cmd, &d.output)
	return cmd
}

func (d *doctorOptions) run(ctx context.Context) error {
	if err := checkOutput(d.output); err != nil {
		return err
	}
	hub, err := d.hub()
	if err != nil {
		return err
	}
	now := d.now()
	facts, err := hub.Examine(ctx, now)
	if err != nil {
		return advise(err, hub.Host)
	}
	checks := doctor.CheckHub(facts, now)
	isHidden := func(check decide.Finding) bool { return check.State == decide.NotVisible }
	if !slices.ContainsFunc(checks, func(check decide.Finding) bool { return !isHidden(check) }) {
		return errors.New("nothing of this hub as a whole is visible to you: ask its administrator for the rights that " +
			docsOfRights() + " lists; kubectl inventory explain needs less")
	}
	if d.output != "" {
		if err := show.Structured(d.Out, d.output, map[string]any{"checks": checks}); err != nil {
			return err
		}
	} else {
		show.Checks(d.Out, checks, d.colors())
	}
	if decide.FirstWrong(checks) != nil {
		return errMissing
	}
	return nil
}
