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
// the first slow one, or the last one if the story has waited: for some of its writes, before it caused others.
func checkSlow(slow string, writes []proxy.Write, hasWaited bool) string {
	var firstSlow, lastSlow, lastOther proxy.Write
	for _, write := range writes {
		namespace := namespaceOf(write.Key.Object)
		switch {
		case write.Code < 200 || write.Code >= 300 || !slices.Contains(consumers, namespace):
		case namespace == slow:
			if firstSlow.Done.IsZero() || write.Done.Before(firstSlow.Done) {
				firstSlow = write
			}
			if write.Done.After(lastSlow.Done) {
				lastSlow = write
			}
		case namespace != slow && write.Done.After(lastOther.Done):
			lastOther = write
		}
	}
	awaited := firstSlow
	if hasWaited {
		awaited = lastSlow
	}
	late := lastOther.Done.Sub(awaited.Done)
	if awaited.Done.IsZero() || lastOther.Done.IsZero() || late <= 0 {
		return ""
	}
	return fmt.Sprintf("%s was complete only %s after the slow write into %s, %s",
		lastOther.Key, late.Round(time.Millisecond), slow, awaited.Key)
}
