// Command schemas writes JSON schemas in the form in which kubeconform reads them: of the
// kinds in the OpenAPI document of Kubernetes, and of those of CustomResourceDefinitions. No
// object may have a field that its schema does not list.
//
//	schemas OUT OPENAPI CRD...
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "schemas:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: schemas OUT OPENAPI CRD")
	}
	out, openAPI, crds := args[0], args[1], args[2:]
	if err := os.MkdirAll(out, 0o750); err != nil { //nolint:gosec // where the caller wants it
		return err
	}
	var document struct{ Definitions map[string]schema }
	if err := read(openAPI, &document); err != nil {
		return err
	}
	all := definitions(document.Definitions)
	found := all.kinds(document.Definitions)
	for _, path := range crds {
		var crd definition
		if err := read(path, &crd); err != nil {
			return err
		}
		maps.Copy(found, all.custom(crd))
	}
	for name, found := range found {
		data, err := json.Marshal(found)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, name), data, 0o600); err != nil { //nolint:gosec // likewise
			return err
		}
	}
	return nil
}

func read(path string, into any) error {
	data, err := os.ReadFile(path) //nolint:gosec // a file that the caller names
	if err != nil {
		return err
	}
	decode := func() error { return yaml.Unmarshal(data, into) }
	if filepath.Ext(path) == ".json" {
		decode = func() error { return json.Unmarshal(data, into) } // ten times as fast
	}
	if err := decode(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// schema is a JSON schema, or a part of one.
type schema = map[string]any

// definition is a CustomResourceDefinition.
type definition struct {
	Spec struct {
		Group    string
		Names    struct{ Kind string }
		Versions []struct {
			Name   string
			Schema struct{ OpenAPIV3Schema schema }
		}
	}
}

// closedSchemas are the schemas to which others refer, by name.
type closedSchemas map[string]schema

const (
	reference  = "#/definitions/"
	objectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
	quantity   = "io.k8s.apimachinery.pkg.api.resource.Quantity"
)

func definitions(given map[string]schema) closedSchemas {
	all := closedSchemas{}
	for name, s := range given {
		all[name] = closed(s)
	}
	all[quantity] = schema{"type": []any{"string", "number"}}
	return all
}

// kinds returns the schemas of Kubernetes' own kinds, by the names of their files.
func (c closedSchemas) kinds(given map[string]schema) map[string]schema {
	found := map[string]schema{}
	for name, s := range given {
		kinds, _ := s["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 {
			continue // no kind, or what is sent for all of them
		}
		kind, _ := kinds[0].(schema)
		text := func(field string) string {
			value, _ := kind[field].(string)
			return value
		}
		found[fileName(text("kind"), text("group"), text("version"))] = c.complete(c[name])
	}
	return found
}

// custom returns the schemas of a CustomResourceDefinition, by the names of their files.
func (c closedSchemas) custom(crd definition) map[string]schema {
	found := map[string]schema{}
	for _, version := range crd.Spec.Versions {
		s := closed(version.Schema.OpenAPIV3Schema)
		properties, _ := s["properties"].(schema)
		properties = maps.Clone(properties)
		properties["apiVersion"], properties["kind"] = schema{"type": "string"}, schema{"type": "string"}
		properties["metadata"] = schema{"$ref": reference + objectMeta}
		s["properties"] = properties
		found[fileName(crd.Spec.Names.Kind, crd.Spec.Group, version.Name)] = c.complete(s)
	}
	return found
}

// fileName is the one that kubeconform makes of the template
// {{.ResourceKind}}{{.KindSuffix}}.json.
func fileName(kind, group, version string) string {
	parts := []string{kind}
	if group, _, _ = strings.Cut(group, "."); group != "" {
		parts = append(parts, group)
	}
	return strings.ToLower(strings.Join(append(parts, version), "-")) + ".json"
}

// complete adds all schemas to which a schema refers, directly or not.
func (c closedSchemas) complete(s schema) schema {
	needed := schema{}
	for missing := referencesIn(s); len(missing) > 0; {
		name := missing[0]
		missing = missing[1:]
		if _, there := needed[name]; !there {
			needed[name] = c[name]
			missing = append(missing, referencesIn(c[name])...)
		}
	}
	result := maps.Clone(s)
	result["$schema"] = "http://json-schema.org/draft-07/schema#"
	result["definitions"] = needed
	return result
}

func referencesIn(value any) []string {
	var names []string
	switch value := value.(type) {
	case schema:
		// A property may be called so, too, and is a schema then.
		if ref, ok := value["$ref"].(string); ok {
			names = append(names, strings.TrimPrefix(ref, reference))
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			names = append(names, referencesIn(value[key])...)
		}
	case []any:
		for _, element := range value {
			names = append(names, referencesIn(element)...)
		}
	}
	return names
}

// closed returns a schema without what kubeconform does not need, which refuses fields that
// it does not list.
func closed(s schema) schema {
	if s["format"] == "int-or-string" || s["x-kubernetes-int-or-string"] == true {
		return schema{"type": []any{"string", "integer"}}
	}
	result := schema{}
	for key, value := range s {
		nested, isSchema := value.(schema)
		switch {
		case key == "properties" && isSchema:
			properties := schema{}
			for name, property := range nested {
				if property, ok := property.(schema); ok {
					properties[name] = closed(property)
				}
			}
			result[key] = properties
		case (key == "items" || key == "additionalProperties") && isSchema:
			result[key] = closed(nested)
		case slices.Contains([]string{"description", "default", "format", "nullable", "example"}, key),
			strings.HasPrefix(key, "x-kubernetes-"):
		default:
			result[key] = value
		}
	}
	_, lists := result["properties"]
	_, says := result["additionalProperties"]
	if lists && !says && s["x-kubernetes-preserve-unknown-fields"] != true {
		result["additionalProperties"] = false
	}
	if only, ok := s["type"].(string); ok && s["nullable"] == true {
		result["type"] = []any{only, "null"}
	}
	return result
}
