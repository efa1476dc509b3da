package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	tree "go.yaml.in/yaml/v3"
)

// object is a mapping of a document, with the path that leads to it. One without a node is absent.
type object struct {
	path string
	node *tree.Node
}

var (
	errTwice = errors.New("it is there twice; leave one out")
	errMerge = errors.New("it has the key <<; write out what that merges")
	errAlias = errors.New("it is an alias; write out what its anchor has")
	errShape = errors.New("it is of another type than the API has; correct it")
	errNew   = errors.New("v1alpha1 does not have it; leave it out")
)

// to returns the path of a field.
func (o object) to(name string) string {
	return strings.TrimPrefix(o.path+"."+name, ".")
}

// wrong is an error about a field.
func (o object) wrong(name string, err error) error {
	return fmt.Errorf("%s: %w", o.to(name), err)
}

// find returns where the key of a field is, or -1.
func (o object) find(name string) int {
	if o.node == nil {
		return -1
	}
	for i := 0; i < len(o.node.Content); i += 2 {
		if o.node.Content[i].Value == name {
			return i
		}
	}
	return -1
}

// value returns the value of a field. It is nil where the field is absent or null.
func (o object) value(name string) (*tree.Node, error) {
	at := o.find(name)
	if merged := o.find("<<"); merged >= 0 {
		return nil, o.wrong("<<", errMerge)
	}
	if at < 0 {
		return nil, nil
	}
	rest := object{node: &tree.Node{Content: o.node.Content[at+2:]}}
	if rest.find(name) >= 0 {
		return nil, o.wrong(name, errTwice)
	}
	value := o.node.Content[at+1]
	if value.Kind == tree.AliasNode {
		return nil, o.wrong(name, errAlias)
	}
	if value.ShortTag() == "!!null" {
		return nil, nil
	}
	return value, nil
}

// text returns a field that is a text. It is empty where the field is absent.
func (o object) text(name string) (string, error) {
	value, err := o.value(name)
	if err != nil || value == nil {
		return "", err
	}
	if value.Kind != tree.ScalarNode {
		return "", o.wrong(name, errShape)
	}
	return value.Value, nil
}

// below returns the object to which a path leads, and reports whether there is one.
func (o object) below(path ...string) (object, bool, error) {
	for _, name := range path {
		value, err := o.value(name)
		if err != nil || value == nil {
			return object{path: o.to(name)}, false, err
		}
		if value.Kind != tree.MappingNode {
			return object{}, false, o.wrong(name, errShape)
		}
		o = object{path: o.to(name), node: value}
	}
	return o, true, nil
}

// replace gives a field that is a text another one.
func (o object) replace(name, with string) error {
	value, err := o.value(name)
	if err != nil || value == nil {
		return err
	}
	value.Value = with
	return nil
}

// rename gives a field another name in its place.
func (o object) rename(name, as string) error {
	at := o.find(name)
	if at < 0 {
		return nil
	}
	if o.find(as) >= 0 {
		return o.wrong(as, errNew)
	}
	o.node.Content[at].Value = as
	return nil
}

// remove takes a field out, and returns its key and value.
func (o object) remove(name string) (key, value *tree.Node) {
	at := o.find(name)
	if at < 0 {
		return nil, nil
	}
	key, value = o.node.Content[at], o.node.Content[at+1]
	o.node.Content = slices.Delete(o.node.Content, at, at+2)
	return key, value
}

// key returns the key of a new field in the style of the keys beside it.
func key(name string, beside *tree.Node) *tree.Node {
	made := &tree.Node{Kind: tree.ScalarNode, Tag: "!!str", Value: name}
	if beside != nil && len(beside.Content) > 0 {
		made.Style = beside.Content[0].Style & tree.DoubleQuotedStyle
	}
	return made
}
