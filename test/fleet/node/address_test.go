package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddresses(t *testing.T) {
	for name, tc := range map[string]struct {
		taken []string // "" takes the next, "-x" releases x, anything else is a wish
		want  []string
	}{
		"in order, from the second of the range": {
			taken: []string{"", ""},
			want:  []string{"127.20.1.1", "127.20.1.2"},
		},
		"a wish is met": {
			taken: []string{"127.20.1.2", "", ""},
			want:  []string{"127.20.1.2", "127.20.1.1", "127.20.1.3"},
		},
		"a wish that is taken gives the next": {
			taken: []string{"", "127.20.1.1"},
			want:  []string{"127.20.1.1", "127.20.1.2"},
		},
		"a wish outside the range gives the next": {taken: []string{"127.20.2.1"}, want: []string{"127.20.1.1"}},
		"a wish for the first or last of the range, neither": {
			taken: []string{"127.20.1.0", "127.20.1.7"},
			want:  []string{"127.20.1.1", "127.20.1.2"},
		},
		"a freed address comes last": {
			taken: []string{"", "-127.20.1.1", "", "", "", "", "", ""},
			want:  []string{"127.20.1.1", "127.20.1.2", "127.20.1.3", "127.20.1.4", "127.20.1.5", "127.20.1.6", "127.20.1.1"},
		},
		"none is left, an error": {
			taken: []string{"", "", "", "", "", "", ""},
			want: []string{
				"127.20.1.1", "127.20.1.2", "127.20.1.3", "127.20.1.4", "127.20.1.5", "127.20.1.6",
				"no address of 127.20.1.0/29 is free",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pool, err := newAddresses("127.20.1.0/29")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, wish := range tc.taken {
				if len(wish) > 0 && wish[0] == '-' {
					pool.release(wish[1:])
					continue
				}
				address, err := pool.take(wish)
				if err != nil {
					address = err.Error()
				}
				got = append(got, address)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAddressRangeIsChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		cidr string
		ok   bool
	}{
		"a loopback range":             {cidr: "127.20.1.0/24", ok: true},
		"not a range":                  {cidr: "127.20.1.1"},
		"addresses the host lacks":     {cidr: "10.0.0.0/24"},
		"IPv6":                         {cidr: "::1/128"},
		"too small to hold an address": {cidr: "127.20.1.0/31"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := newAddresses(tc.cidr); (err == nil) != tc.ok {
				t.Errorf("got error %v, want ok %v", err, tc.ok)
			}
		})
	}
}
