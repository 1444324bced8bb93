package objects

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A chart may begin with an empty document, and "helm template" writes some between others.
func TestDecodeSkipsDocumentsWithoutAnObject(t *testing.T) {
	objects, err := Decode(
		strings.NewReader(
			"---\n# Source: empty.yaml\n---\nkind: Secret\nmetadata: {name: a}\n---\n\n---\nkind: Service\nmetadata: {name: b}\n",
		),
	)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objects {
		got = append(got, o.GetKind()+" "+o.GetName())
	}
	if diff := cmp.Diff([]string{"Secret a", "Service b"}, got); diff != "" {
		t.Error(diff)
	}
}
