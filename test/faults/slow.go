package faults

import (
	"fmt"
	"slices"
	"time"

	"open-cluster-management.io/cluster-inventory-addon/test/faults/proxy"
)

// checkSlow returns what is wrong with the order of writes while those into one consumer namespace
// were slow, or "". If there were writes into others, too, those must be complete before the slow
// ones are: however busy the machine is, a slow write takes SlowFor, of package proxy, longer than theirs. That is
// the first slow one, or the last one if the story is patient: it waits for some before it causes others.
func checkSlow(slow string, writes []proxy.Write, isPatient bool) string {
	var slowest, lastOther proxy.Write
	for _, write := range writes {
		namespace := namespaceOf(write.Key.Object)
		switch {
		case write.Code < 200 || write.Code >= 300 || !slices.Contains(consumers, namespace):
		case namespace == slow:
			if slowest.Done.IsZero() || isPatient == write.Done.After(slowest.Done) {
				slowest = write
			}
		case namespace != slow && write.Done.After(lastOther.Done):
			lastOther = write
		}
	}
	late := lastOther.Done.Sub(slowest.Done)
	if slowest.Done.IsZero() || lastOther.Done.IsZero() || late <= 0 {
		return ""
	}
	return fmt.Sprintf("%s was complete only %s after the slow write into %s, %s",
		lastOther.Key, late.Round(time.Millisecond), slow, slowest.Key)
}
