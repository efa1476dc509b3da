package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v2" // writes as kubectl does
)

// refuseMisplaced refuses what published manifests have in a wrong place, with the text as it must be, and reports whether it found
// some: roles beside the field of the roles, and fields of a container beside it.
func refuseMisplaced(c *conversion, field string, roles []roleKind) bool {
	spec, is := c.from.Object["spec"].(map[string]any)
	if !is {
		return false
	}
	found := false
	for _, key := range slices.Sorted(maps.Keys(spec)) {
		if _, isRole := findRole(roles, key); !isRole {
			continue
		}
		found = true
		role := spec[key]
		if template, at := templateOf(role); template != nil {
			corrected, _ := correctPod(template)
			role = replaced(role, at, corrected)
		}
		c.refuse(join("spec", key), fmt.Sprintf("%s is a role, and stands beside %s; move it into that, so that it reads\n%s", key, field,
			yamlOf(map[string]any{"spec": map[string]any{field: map[string]any{key: role}}})))
	}
	inside, _ := spec[field].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(inside)) {
		if template, _ := templateOf(inside[key]); template != nil {
			found = refuseMisplacedInPod(c, fmt.Sprintf("spec.%s.%s.template", field, key), template) || found
		}
	}
	return found
}

// templateOf returns the pod template of a role, and under which key it is.
func templateOf(role any) (template map[string]any, key string) {
	fields, _ := role.(map[string]any)
	template, _ = fields["template"].(map[string]any)
	return template, "template"
}

// replaced is an object with another value under a key.
func replaced(object any, key string, value any) map[string]any {
	fields, _ := object.(map[string]any)
	other := maps.Clone(fields)
	other[key] = value
	return other
}

// refuseMisplacedInPod refuses fields of a container that stand beside it, with the text as it must be.
func refuseMisplacedInPod(c *conversion, at string, template map[string]any) bool {
	corrected, wrong := correctPod(template)
	for i, path := range wrong {
		text := "it belongs into the container too; move it as well"
		if i == 0 {
			text = "it belongs into the container, and stands beside it; move it, so that it reads\n" + yamlOf(map[string]any{"template": corrected})
		}
		c.refuse(at+path, text)
	}
	return len(wrong) > 0
}

// containerFields are fields that a container has and a pod has not.
var containerFields = []string{"image", "command", "args", "env", "envFrom", "ports", "volumeMounts", "workingDir", "imagePullPolicy"}

// correctPod moves fields of a container to it that stand beside it: in the pod, or in an entry of the list without a name. It
// returns where they stood. Where a pod has several containers, nothing says whose a field is.
func correctPod(template map[string]any) (corrected map[string]any, wrong []string) {
	spec, _ := template["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	all, wrong := joined(containers)
	if len(all) != 1 {
		return template, nil
	}
	only, spec := maps.Clone(all[0]), maps.Clone(spec)
	for _, field := range containerFields {
		value, stands := spec[field]
		if _, has := only[field]; !stands || has {
			continue
		}
		wrong = append(wrong, ".spec."+field)
		only[field] = value
		delete(spec, field)
	}
	if len(wrong) == 0 {
		return template, nil
	}
	spec["containers"] = []any{only}
	return replaced(template, "spec", spec), wrong
}

// joined joins entries of a list of containers that have no name to the one before them, where no field is in both.
func joined(containers []any) (all []map[string]any, wrong []string) {
	for i := range containers {
		entry, is := containers[i].(map[string]any)
		if !is {
			return nil, nil
		}
		last := len(all) - 1
		if _, isNamed := entry["name"]; isNamed || last < 0 || overlap(all[last], entry) {
			all = append(all, entry)
			continue
		}
		whole := maps.Clone(all[last])
		maps.Copy(whole, entry)
		all[last] = whole
		wrong = append(wrong, fmt.Sprintf(".spec.containers[%d]", i))
	}
	return all, wrong
}

func overlap(a, b map[string]any) bool {
	for key := range b {
		if _, has := a[key]; has {
			return true
		}
	}
	return false
}

// yamlOf writes a value as YAML, without a line break at its end.
func yamlOf(value any) string {
	text, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Sprintf("# cannot be written: %v", err)
	}
	return strings.TrimSuffix(string(text), "\n")
}
