package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const openAPI = `{"definitions": {
	"io.k8s.api.apps.v1.Deployment": {
		"description": "d", "type": "object",
		"properties": {
			"spec": {"$ref": "#/definitions/Spec"},
			"metadata": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
		},
		"x-kubernetes-group-version-kind": [{"group": "apps", "kind": "Deployment", "version": "v1"}]
	},
	"Spec": {"type": "object", "properties": {
		"labels": {"type": "object", "additionalProperties": {"type": "string"}},
		"port": {"type": "string", "format": "int-or-string"},
		"memory": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity"},
		"again": {"$ref": "#/definitions/Spec"}
	}},
	"io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
	"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object", "properties": {"name": {"type": "string"}}},
	"Unused": {"type": "object", "properties": {}},
	"DeleteOptions": {"x-kubernetes-group-version-kind": [
		{"group": "", "kind": "DeleteOptions", "version": "v1"}, {"group": "apps", "kind": "DeleteOptions", "version": "v1"}
	]}
}}`

const crd = `
spec:
  group: example.open-cluster-management.io
  names: {kind: Thing}
  versions:
  - name: v1alpha1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec:
            type: object
            required: [size]
            properties:
              size: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}
              maybe: {type: string, nullable: true, format: date-time}
`

func TestSchemasRefuseWhatTheyDoNotList(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	out := filepath.Join(dir, "out")
	if err := run([]string{out, write("openapi.json", openAPI), write("crd.yaml", crd)}); err != nil {
		t.Fatal(err)
	}
	const meta = `"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {
		"type": "object", "additionalProperties": false, "properties": {"name": {"type": "string"}}}`
	want := map[string]string{
		"deployment-apps-v1.json": `{
			"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": false,
			"properties": {
				"spec": {"$ref": "#/definitions/Spec"},
				"metadata": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
			},
			"definitions": {
				"Spec": {"type": "object", "additionalProperties": false, "properties": {
					"labels": {"type": "object", "additionalProperties": {"type": "string"}},
					"port": {"type": ["string", "integer"]},
					"memory": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity"},
					"again": {"$ref": "#/definitions/Spec"}
				}},
				"io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": ["string", "number"]},
				` + meta + `
			}
		}`,
		"thing-example-v1alpha1.json": `{
			"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": false,
			"properties": {
				"apiVersion": {"type": "string"}, "kind": {"type": "string"},
				"metadata": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
				"spec": {"type": "object", "required": ["size"], "additionalProperties": false, "properties": {
					"size": {"type": ["string", "integer"]},
					"free": {"type": "object", "properties": {"a": {"type": "string"}}},
					"maybe": {"type": ["string", "null"]}
				}}
			},
			"definitions": {` + meta + `}
		}`,
	}
	files, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	got, expected := map[string]any{}, map[string]any{}
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(out, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[file.Name()] = decoded(t, string(data))
	}
	for name, text := range want {
		expected[name] = decoded(t, text)
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("schemas (-want +got):\n%s", diff)
	}
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}
