package fleet

import (
	"strings"
	"syscall"
	"testing"
)

func TestCheckWatches(t *testing.T) {
	for name, test := range map[string]struct {
		limit int
		want  string
	}{
		"as many as needed": {limit: 38},
		"one too few":       {limit: 37, want: "2 spokes need 38 inotify instances and this user may have only 37 more"},
	} {
		t.Run(name, func(t *testing.T) {
			opened := 0
			err := checkWatches(2, func(int) (int, error) {
				if opened == test.limit {
					return 0, syscall.EMFILE
				}
				opened++
				return -1, nil
			})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want)) {
				t.Errorf("got %v", err)
			}
		})
	}
}
