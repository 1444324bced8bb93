package main

import "testing"

// A package that does not end by the failure of a test is told from one that does.
func TestEarlyEnds(t *testing.T) {
	const run, pass, fail = `{"Action":"run","Package":"p","Test":"TestX"}`, `{"Action":"pass","Package":"p","Test":"TestX"}`,
		`{"Action":"fail","Package":"p","Test":"TestX"}`
	const passed, failed = `{"Action":"pass","Package":"p"}`, `{"Action":"fail","Package":"p"}`
	for name, test := range map[string]struct {
		events []string
		early  bool
	}{
		"all pass":                {[]string{run, pass, passed}, false},
		"a test fails":            {[]string{run, fail, failed}, false},
		"nothing ran":             {[]string{failed}, true},
		"outside the tests":       {[]string{run, pass, failed}, true},
		"a process that died":     {[]string{run, failed}, true},
		"after a test had failed": {[]string{run, fail, run, failed}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := ends{}
			for _, line := range test.events {
				e, _ := decode([]byte(line))
				got.add(e)
			}
			if err := got.early(); (err != nil) != test.early {
				t.Errorf("got %v", err)
			}
		})
	}
}
