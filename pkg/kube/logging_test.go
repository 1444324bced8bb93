package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// Each line of a JSON log is one object, and -v decides which lines there are.
func TestJSONLog(t *testing.T) {
	for verbosity, want := range map[string][]string{
		"0": {"started", "failed"},
		"2": {"started", "detail", "failed"},
	} {
		t.Run("-v="+verbosity, func(t *testing.T) {
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			log := AddLogFlags(flags)
			t.Cleanup(func() { _ = flags.Set("v", "0") }) // klog's own is global
			if err := flags.Parse([]string{"--log-format=json", "-v=" + verbosity}); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			logger := log.json(&out).WithName("hub.inventory").WithValues("cluster", "c1")
			logger.Info("started")
			logger.V(2).Info("detail")
			logger.Error(errors.New("of the cause"), "failed")
			var got []string
			for line := range strings.Lines(out.String()) {
				var entry map[string]any
				if err := json.Unmarshal([]byte(line), &entry); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				if entry["logger"] != "hub.inventory" || entry["cluster"] != "c1" || entry["time"] == nil {
					t.Errorf("the line lacks something: %s", line)
				}
				if failed := entry["msg"] == "failed"; failed != (entry["err"] == "of the cause") {
					t.Errorf("the error of %s", line)
				}
				got = append(got, entry["msg"].(string))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnknownLogFormatIsRefused(t *testing.T) {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddLogFlags(flags)
	err := flags.Parse([]string{"--log-format=xml"})
	if err == nil || !strings.Contains(err.Error(), `it must be "text" or "json"`) {
		t.Errorf("got %v", err)
	}
}
