package hub

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unsafe"
)

func TestInternerReturnsOneCopy(t *testing.T) {
	i := &interner{}
	same := func(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }
	copied := strings.Clone
	first := i.String(copied("a property's value"))
	if second := i.String(copied("a property's value")); second != first || !same(first, second) {
		t.Error("two copies of a string")
	}
	long := strings.Repeat("x", maxInterned+1)
	if got := i.String(long); got != long || !same(got, long) {
		t.Error("a long string is another")
	}
	ca := bytes.Repeat([]byte("ca"), 1000)
	blob := i.Bytes(bytes.Clone(ca))
	if again := i.Bytes(bytes.Clone(ca)); !bytes.Equal(again, ca) || &again[0] != &blob[0] {
		t.Error("two copies of a blob")
	}
	key := copied("key")
	labels := i.Map(map[string]string{key: copied("a property's value")})
	if len(labels) != 1 || !same(labels["key"], first) {
		t.Errorf("labels %v", labels)
	}
	if got := i.Map(nil); got != nil {
		t.Errorf("no labels are %v", got)
	}
}

// TestInternerForgets: it is bounded, and keeps what is asked for again and again.
func TestInternerForgets(t *testing.T) {
	i := &interner{}
	kept := i.String(strings.Clone("kept"))
	blob := i.Bytes(bytes.Repeat([]byte("ca"), 1000))
	for n := range 5 * internLimit {
		i.String(fmt.Sprintf("passing %d", n))
		if n%1000 == 0 && unsafe.StringData(i.String(strings.Clone("kept"))) != unsafe.StringData(kept) {
			t.Fatal("what is in use was forgotten")
		}
		if n%1000 == 0 {
			i.Bytes(fmt.Appendf(nil, "%0*d", 2*minBlob, n))
			if &i.Bytes(bytes.Clone(blob))[0] != &blob[0] {
				t.Fatal("a blob in use was forgotten")
			}
		}
	}
	if got := len(i.strings.recent) + len(i.strings.older); got > 2*internLimit {
		t.Errorf("it remembers %d strings", got)
	}
	if got := len(i.blobs.recent) + len(i.blobs.older); got > 2*blobLimit {
		t.Errorf("it remembers %d blobs", got)
	}
}

// TestInternerIsBoundedInBytes: a spoke may send a thousand long values again and again.
func TestInternerIsBoundedInBytes(t *testing.T) {
	i := &interner{}
	for n := range 3 * internBytes / maxInterned {
		i.String(fmt.Sprintf("%0*d", maxInterned, n))
	}
	for n := range 3 * blobBytes / maxBlob {
		i.Bytes(fmt.Appendf(nil, "%0*d", maxBlob, n))
	}
	total := 0
	for _, generation := range []map[string]string{i.strings.recent, i.strings.older} {
		for value := range generation {
			total += len(value)
		}
	}
	if total > 2*internBytes || total < internBytes {
		t.Errorf("it remembers %d bytes of strings", total)
	}
	total = 0
	for _, generation := range []map[string][]byte{i.blobs.recent, i.blobs.older} {
		for _, value := range generation {
			total += len(value)
		}
	}
	if total > 2*blobBytes || total < blobBytes {
		t.Errorf("it remembers %d bytes of blobs", total)
	}
}
