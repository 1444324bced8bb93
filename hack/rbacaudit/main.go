// Command rbacaudit compares the rights that chart and manifests grant with those that
// manager, uninstall hook, agent, clean-up Job and cp-creds use, as the audit logs of API
// servers show them. It fails if a right is unused, is a wildcard, or was used without being
// granted so. What audit logs cannot show, and what the journeys do not provoke, is in known.go, with a
// reason; a reason that is not needed any more is a failure, too.
//
//	helm template ... | rbacaudit [-docs FILE] [-logs DIRECTORY]
//
// It reads the rendered chart, and the logs of fleets with FLEET_AUDIT; without logs it only
// checks what is granted. It writes the table of rights into the file of -docs. The table
// contains no numbers, so it changes only when rights or reasons do.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"open-cluster-management.io/cluster-inventory-addon/internal/manifesttest"
	"open-cluster-management.io/cluster-inventory-addon/manifests"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rbacaudit:", err)
		os.Exit(1)
	}
}

func run(args []string, chart io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("rbacaudit", flag.ContinueOnError)
	docs := flags.String("docs", "", "the page with the table, which is written")
	logs := flags.String("logs", "", "the directory with the audit logs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	objects, err := manifesttest.Decode(chart)
	if err != nil {
		return fmt.Errorf("the chart: %w", err)
	}
	grants, err := allGrants(objects)
	if err != nil {
		return err
	}
	findings := validateGrants(grants, known)
	if *logs != "" {
		used, err := readLogs(*logs, releaseNamespace(objects))
		if err != nil {
			return err
		}
		rows, more := compareUse(grants, used, known)
		findings = append(findings, more...)
		if err := report(out, rows, used, known); err != nil {
			return err
		}
	}
	if *docs != "" {
		if err := writeTable(*docs, tableOf(grants, known)); err != nil {
			return err
		}
	}
	for _, finding := range findings {
		fmt.Fprintln(out, finding)
	}
	if len(findings) > 0 {
		return fmt.Errorf("%d rights differ from what is used", len(findings))
	}
	return nil
}

// allGrants are those of the chart, of the present manifests of a spoke, and of consumers
// to cp-creds.
func allGrants(chart []*unstructured.Unstructured) ([]grant, error) {
	all, err := grantsOf(chart)
	if err != nil {
		return nil, err
	}
	files, err := manifests.Of(manifests.Revision)
	if err != nil {
		return nil, err
	}
	var spoke []*unstructured.Unstructured
	for _, file := range files {
		objects, err := manifesttest.Decode(bytes.NewReader(file.Content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name, err)
		}
		spoke = append(spoke, objects...)
	}
	more, err := grantsOf(spoke)
	if err != nil {
		return nil, err
	}
	return append(append(all, more...), pluginGrant), nil
}

func writeTable(path, table string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed, err := withTable(string(page), table)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if changed == string(page) {
		return nil
	}
	return os.WriteFile(path, []byte(changed), 0o600) //nolint:gosec // where the caller wants it
}
