package supervisor

import (
	"errors"
	"os"
	"os/exec"
	"testing"
)

func TestStartTime(t *testing.T) {
	const tail = " S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 10 18446744073709551615"
	for name, test := range map[string]struct {
		stat string
		want uint64
		bad  bool
	}{
		"plain name":                    {stat: "42 (etcd)" + tail, want: 987654},
		"spaces and brackets in a name": {stat: "42 (a) S (b c)" + tail, want: 987654},
		"cut off":                       {stat: "42 (etcd) S 1", bad: true},
		"no name":                       {stat: "42", bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := startTime(test.stat)
			if (err != nil) != test.bad || got != test.want {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
}

func TestIdentityOfAnotherProcessWithTheSameNumberIsNotSignalled(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id, err := Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}

	for name, other := range map[string]Identity{
		"earlier holder of the number": {PID: id.PID, Start: id.Start - 1, Boot: id.Boot},
		"before a reboot":              {PID: id.PID, Start: id.Start, Boot: "another"},
		"none":                         {},
	} {
		if other.Alive() {
			t.Errorf("%s: said to be alive", name)
		}
		if err := other.Kill(); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !id.Alive() {
		t.Fatal("the process was ended by a signal to another")
	}

	if err := id.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the process ended by itself")
	}
	if id.Alive() {
		t.Error("said to be alive after its end")
	}
}
