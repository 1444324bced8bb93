package cleanup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestMarker(t *testing.T) {
	type verdict struct {
		Addressed, Acknowledged bool
		Requested, Stopped      map[string]string
	}
	for name, tc := range map[string]struct {
		data map[string]string
		want verdict
	}{
		"an empty marker addresses no agent": {
			want: verdict{Requested: map[string]string{"addonUID": "u1"}},
		},
		"our UID: stop": {
			data: map[string]string{"addonUID": "u1"},
			want: verdict{
				Addressed: true,
				Stopped:   map[string]string{"addonUID": "u1", "stopped": "u1"},
			},
		},
		"our UID, acknowledged: nothing more to write": {
			data: map[string]string{"addonUID": "u1", "stopped": "u1"},
			want: verdict{
				Addressed: true, Acknowledged: true,
			},
		},
		"another UID is ignored by the agent, overwritten by the hook": {
			data: map[string]string{"addonUID": "u0", "stopped": "u0"},
			want: verdict{Requested: map[string]string{"addonUID": "u1"}},
		},
		"an acknowledgement of another UID does not count": {
			data: map[string]string{"addonUID": "u1", "stopped": "u0"},
			want: verdict{
				Addressed: true,
				Stopped:   map[string]string{"addonUID": "u1", "stopped": "u1"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			marker := &corev1.ConfigMap{Data: tc.data}
			got := verdict{
				Addressed:    addressed(marker, "u1"),
				Acknowledged: acknowledged(marker, "u1"),
			}
			if !got.Addressed {
				got.Requested = withRequest(marker, "u1").Data
			} else if !got.Acknowledged {
				got.Stopped = withAcknowledgement(marker, "u1").Data
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}
