package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	tree "go.yaml.in/yaml/v3"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// serverSet returns the fields of metadata that the API server sets.
func serverSet() []string {
	return []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"}
}

// isReserved matches keys of labels and annotations below our domain.
var isReserved = regexp.MustCompile(`(^|[.])heliostat[.]dev/`)

// peoples returns the annotations below our domain that people and the server set. The operator writes all others.
func peoples() []string {
	return []string{
		v1beta1.AnnotationKeepRequestedBy, v1beta1.AnnotationKeepUntil, v1beta1.AnnotationOwner, v1beta1.AnnotationRequest,
		v1beta1.AnnotationResume, v1beta1.AnnotationRetry, v1beta1.AnnotationRetryOf, v1beta1.AnnotationStop,
	}
}

// lastApplied is where kubectl keeps what it applied: the object as v1alpha1.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// clean takes what the API server, kubectl and the operator set out of the metadata of an object.
func clean(metadata object) error {
	for _, name := range serverSet() {
		metadata.remove(name)
	}
	free := peoples()
	return errors.Join(
		drop(metadata, "labels", func(key string) bool { return isReserved.MatchString(key) }),
		drop(metadata, "annotations", func(key string) bool {
			return key == lastApplied || isReserved.MatchString(key) && !slices.Contains(free, key)
		}),
		dropEntries(metadata, "finalizers", func(entry *tree.Node) (bool, error) {
			return isReserved.MatchString(entry.Value), nil
		}),
		dropEntries(metadata, "ownerReferences", isOurs),
	)
}

// drop takes keys out of a field, and the field with its last key.
func drop(of object, name string, isDropped func(key string) bool) error {
	field, found, err := of.below(name)
	if err != nil || !found {
		return err
	}
	if field.find("<<") >= 0 {
		return field.wrong("<<", errMerge)
	}
	var kept []*tree.Node
	for i := 0; i+1 < len(field.node.Content); i += 2 {
		if !isDropped(field.node.Content[i].Value) {
			kept = append(kept, field.node.Content[i], field.node.Content[i+1])
		}
	}
	if field.node.Content = kept; len(kept) == 0 {
		of.remove(name)
	}
	return nil
}

// dropEntries takes entries out of a list, and the field with its last entry.
func dropEntries(of object, name string, isDropped func(entry *tree.Node) (bool, error)) error {
	list, err := of.value(name)
	if err != nil || list == nil {
		return err
	}
	if list.Kind != tree.SequenceNode {
		return of.wrong(name, errShape)
	}
	var kept []*tree.Node
	for _, entry := range list.Content {
		dropped, err := isDropped(entry)
		if err != nil {
			return of.wrong(name, err)
		}
		if !dropped {
			kept = append(kept, entry)
		}
	}
	if list.Content = kept; len(kept) == 0 {
		of.remove(name)
	}
	return nil
}

// isOurs reports whether a reference leads to an object of ours. Its UID is of an object that will be gone, so that garbage
// collection would delete what has it.
func isOurs(reference *tree.Node) (bool, error) {
	if reference.Kind != tree.MappingNode {
		return false, errShape
	}
	version, err := object{node: reference}.text("apiVersion")
	return strings.HasPrefix(version, group), err
}

// reasonToLeaveOut returns why an object must not be created again. It is empty where it must.
func reasonToLeaveOut(kind string, o, metadata object) (string, error) {
	owner, err := ownerOf(metadata)
	if err != nil || owner != "" {
		return owner, err
	}
	deleted, err := metadata.text("deletionTimestamp")
	if err != nil {
		return "", err
	}
	if deleted != "" {
		return "it is being deleted since " + deleted, nil
	}
	if kind != "ClusterJob" {
		return "", nil
	}
	end, err := endOf(o)
	if err != nil || end == "" {
		return "", err
	}
	return fmt.Sprintf("it has ended as %s, and would run once more", end), nil
}

// ownerOf returns which object of ours is the controller of an object, in words. It is empty where there is none.
func ownerOf(metadata object) (string, error) {
	references, err := metadata.value("ownerReferences")
	if err != nil || references == nil {
		return "", err
	}
	for i, entry := range references.Content {
		reference := object{path: metadata.to(fmt.Sprintf("ownerReferences[%d]", i)), node: entry}
		ours, err := isOurs(entry)
		if err != nil {
			return "", fmt.Errorf("%s: %w", reference.path, err)
		}
		isController, controls := reference.text("controller")
		kind, unknown := reference.text("kind")
		name, nameless := reference.text("name")
		if err := errors.Join(controls, unknown, nameless); err != nil {
			return "", err
		}
		if ours && isController == "true" {
			return fmt.Sprintf("it belongs to %s/%s, which creates its own again", kind, name), nil
		}
	}
	return "", nil
}

// endOf returns the condition by which a job has ended. It is empty where it has not.
func endOf(job object) (string, error) {
	status, found, err := job.below("status")
	if err != nil || !found {
		return "", err
	}
	conditions, err := status.value("conditions")
	if err != nil || conditions == nil {
		return "", err
	}
	for i, entry := range conditions.Content {
		condition := object{path: status.to(fmt.Sprintf("conditions[%d]", i)), node: entry}
		if entry.Kind != tree.MappingNode {
			return "", fmt.Errorf("%s: %w", condition.path, errShape)
		}
		kind, unknown := condition.text("type")
		state, stateless := condition.text("status")
		if err := errors.Join(unknown, stateless); err != nil {
			return "", err
		}
		if state == "True" && (kind == v1beta1.ConditionComplete || kind == v1beta1.ConditionFailed) {
			return kind, nil
		}
	}
	return "", nil
}
