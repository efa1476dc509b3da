package main

import (
	"errors"
	"fmt"
	"slices"

	tree "go.yaml.in/yaml/v3"
)

// change rewrites the fields of an object.
type change func(d *document, o object) error

// kinds has the change of each kind.
var kinds = map[string]change{
	"ComputeCluster":     clusterAt("spec"),
	"ClusterJob":         clusterAt("spec", "clusterTemplate", "spec"),
	"ClusterService":     service,
	"ClusterJobSchedule": schedule,
}

// clusterAt returns the change of the spec of a cluster, which an object may have at that path.
func clusterAt(path ...string) change {
	return func(_ *document, o object) error {
		spec, found, err := o.below(path...)
		if err != nil || !found {
			return err
		}
		return cluster(spec)
	}
}

// cluster rewrites the spec of a cluster.
func cluster(spec object) error {
	return errors.Join(
		reword(spec, "upgradeStrategy", "type", map[string]string{
			"OnDelete": "None", "RollingWorkers": "RollingWorkers", "Recreate": "Recreate",
		}),
		renameIn(spec, "upgradeStrategy", "rolling", "rollingWorkers"),
		reword(spec, "network", "encryption", map[string]string{"Required": "Enabled", "Disabled": "Disabled"}),
		nodePorts(spec, []string{"gcs", "dashboard", "client", "metrics", "serve"}, "head", "service"),
		omitEmpty(spec, "image"),
		omitEmpty(spec, "autoscaling", "image"),
		omitEmpty(spec, "controlStore", "managedRedis", "image"),
		omitEmptyImages(spec),
	)
}

// omitEmptyImages takes empty images out of the groups of workers of a cluster.
func omitEmptyImages(spec object) error {
	groups, err := spec.value("workerGroups")
	if err != nil || groups == nil {
		return err
	}
	if groups.Kind != tree.SequenceNode {
		return spec.wrong("workerGroups", errShape)
	}
	var problems []error
	for i, group := range groups.Content {
		path := fmt.Sprintf("%s[%d]", spec.to("workerGroups"), i)
		switch group.Kind {
		case tree.MappingNode:
			problems = append(problems, omitEmpty(object{path: path, node: group}, "image"))
		case tree.AliasNode:
			problems = append(problems, fmt.Errorf("%s: %w", path, errAlias))
		default:
			problems = append(problems, fmt.Errorf("%s: %w", path, errShape))
		}
	}
	return errors.Join(problems...)
}

// omitEmpty takes a text out that is empty. v1alpha1 took it as absent, and v1beta1 refuses it.
func omitEmpty(o object, path ...string) error {
	last := len(path) - 1
	of, found, err := o.below(path[:last]...)
	if err != nil || !found {
		return err
	}
	value, err := of.value(path[last])
	if err != nil || value == nil {
		return err
	}
	if value.Kind != tree.ScalarNode {
		return of.wrong(path[last], errShape)
	}
	if value.Value == "" {
		of.remove(path[last])
	}
	return nil
}

// schedule rewrites the fields of a ClusterJobSchedule.
func schedule(d *document, o object) error {
	return errors.Join(
		omitEmpty(o, "spec", "timeZone"),
		clusterAt("spec", "jobTemplate", "spec", "clusterTemplate", "spec")(d, o),
	)
}

// reword replaces the word of a field of a part of the spec.
func reword(spec object, part, name string, words map[string]string) error {
	of, found, err := spec.below(part)
	if err != nil || !found {
		return err
	}
	word, err := of.text(name)
	if err != nil || word == "" {
		return err
	}
	with, known := words[word]
	if !known {
		return of.wrong(name, fmt.Errorf("v1alpha1 has no %q; correct it", word))
	}
	return of.replace(name, with)
}

// renameIn gives a field of a part of the spec another name.
func renameIn(spec object, part, name, as string) error {
	of, found, err := spec.below(part)
	if err != nil || !found {
		return err
	}
	if of.find(as) >= 0 {
		return of.wrong(as, errNew)
	}
	return of.rename(name, as)
}

// service rewrites the fields of a ClusterService.
func service(d *document, o object) error {
	spec, found, err := o.below("spec")
	if err != nil || !found {
		return err
	}
	return errors.Join(
		omitEmpty(spec, "healthPath"),
		omitEmpty(spec, "upgrade", "gateway", "parentRef", "namespace"),
		omitEmpty(spec, "upgrade", "gateway", "parentRef", "sectionName"),
		upgrade(d, spec),
		nodePorts(spec, []string{"http", "grpc"}, "service"),
		clusterAt("spec", "clusterTemplate", "spec")(d, o),
	)
}

// ofSurge has the fields of an upgrade that hold for Surge alone, with the defaults of the schema of v1alpha1.
var ofSurge = map[string]string{"maxSurgePercent": "100", "stepPercent": "20", "intervalSeconds": "10"}

// upgrade makes upgradeStrategy of upgrade.
func upgrade(d *document, spec object) error {
	if spec.find("upgradeStrategy") >= 0 {
		return spec.wrong("upgradeStrategy", errNew)
	}
	of, found, err := spec.below("upgrade")
	if err != nil {
		return err
	}
	if !found {
		spec.remove("upgrade") // null
		return nil
	}
	strategy, err := of.text("strategy")
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"", "Surge", "InPlace", "None"}, strategy) {
		return of.wrong("strategy", fmt.Errorf("v1alpha1 has no %q; correct it", strategy))
	}
	for _, name := range []string{"type", "surge"} {
		if of.find(name) >= 0 {
			return of.wrong(name, errNew)
		}
	}
	surge, err := takeSurge(of)
	if err != nil {
		return err
	}
	if strategy == "InPlace" {
		surge.leaveOut(d, of, strategy)
	} else {
		surge.into(of)
	}
	return errors.Join(of.rename("strategy", "type"), spec.rename("upgrade", "upgradeStrategy"))
}

// surgeFields are the keys and values of an upgrade that hold for Surge alone, and where the first one was.
type surgeFields struct {
	pairs []*tree.Node
	at    int
}

// takeSurge takes these fields out of an upgrade.
func takeSurge(of object) (surgeFields, error) {
	var all surgeFields
	for i := 0; i+1 < len(of.node.Content); {
		name := of.node.Content[i].Value
		if _, is := ofSurge[name]; !is {
			i += 2
			continue
		}
		if _, err := of.text(name); err != nil { // refuses what is there twice, too
			return all, err
		}
		if len(all.pairs) == 0 {
			all.at = i
		}
		all.pairs = append(all.pairs, of.node.Content[i], of.node.Content[i+1])
		of.node.Content = slices.Delete(of.node.Content, i, i+2)
	}
	return all, nil
}

// into makes the member surge of the fields, where the first of them was.
func (s surgeFields) into(of object) {
	if len(s.pairs) == 0 {
		return
	}
	surge := &tree.Node{Kind: tree.MappingNode, Tag: "!!map", Style: of.node.Style, Content: s.pairs}
	name := key("surge", surge)
	of.node.Content = slices.Insert(of.node.Content, s.at, name, surge)
}

// leaveOut says which fields are left out because they have no effect with a strategy. The API server filled in defaults with
// every strategy, and nobody misses these.
func (s surgeFields) leaveOut(d *document, of object, strategy string) {
	for i := 0; i+1 < len(s.pairs); i += 2 {
		if name, value := s.pairs[i].Value, s.pairs[i+1].Value; value != ofSurge[name] {
			d.note("%s: %s is left out, because it has no effect with %s", of.to(name), value, strategy)
		}
	}
}
