package main

import (
	"fmt"
	"slices"
	"strconv"

	tree "go.yaml.in/yaml/v3"
)

// nodePorts moves node ports, which a Service has by the names of its ports, into its ports. Own are the ports that it has
// without an entry.
func nodePorts(spec object, own []string, path ...string) error {
	front, found, err := spec.below(path...)
	if err != nil || !found {
		return err
	}
	numbers, found, err := front.below("nodePorts")
	if err != nil {
		return err
	}
	if !found || len(numbers.node.Content) == 0 {
		front.remove("nodePorts")
		return nil
	}
	ports, err := portsOf(front, numbers.node.Style)
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(numbers.node.Content); i += 2 {
		if err := move(numbers, i, front.to("ports"), ports, own); err != nil {
			return err
		}
	}
	front.remove("nodePorts")
	return nil
}

// portsOf returns the list of ports of a Service. A new one stands in the place of the node ports, and has their style.
func portsOf(front object, style tree.Style) (*tree.Node, error) {
	ports, err := front.value("ports")
	if err != nil {
		return nil, err
	}
	if ports == nil {
		front.remove("ports") // null
		ports = &tree.Node{Kind: tree.SequenceNode, Tag: "!!seq", Style: style}
		at := front.find("nodePorts")
		name := key("ports", front.node)
		was := front.node.Content[at]
		name.HeadComment, name.LineComment, name.FootComment = was.HeadComment, was.LineComment, was.FootComment
		ports.LineComment = front.node.Content[at+1].LineComment
		front.node.Content = slices.Insert(front.node.Content, at, name, ports)
		return ports, nil
	}
	if ports.Kind != tree.SequenceNode {
		return nil, front.wrong("ports", errShape)
	}
	return ports, nil
}

// move puts the node port whose key is at an index into the entry of its port.
func move(numbers object, at int, path string, ports *tree.Node, own []string) error {
	name, number := numbers.node.Content[at], numbers.node.Content[at+1]
	if _, err := numbers.text(name.Value); err != nil {
		return err
	}
	if _, err := strconv.Atoi(number.Value); err != nil || number.ShortTag() != "!!int" {
		return numbers.wrong(name.Value, fmt.Errorf("%q is no number; correct it", number.Value))
	}
	entry, err := entryOf(path, ports, name.Value)
	if err != nil {
		return err
	}
	if entry.node == nil {
		if !slices.Contains(own, name.Value) {
			return numbers.wrong(name.Value, fmt.Errorf("%s has no such port; add it there, or leave it out", path))
		}
		value := &tree.Node{Kind: tree.ScalarNode, Tag: "!!str", Value: name.Value, Style: name.Style}
		entry.node = &tree.Node{Kind: tree.MappingNode, Tag: "!!map", Style: numbers.node.Style, HeadComment: name.HeadComment}
		entry.node.Content = []*tree.Node{key("name", numbers.node), value}
		ports.Content = append(ports.Content, entry.node)
	}
	if entry.find("nodePort") >= 0 {
		return entry.wrong("nodePort", errNew)
	}
	entry.node.Content = append(entry.node.Content, key("nodePort", entry.node), number)
	return nil
}

// entryOf returns the entry of a port. It has no node where there is none.
func entryOf(path string, ports *tree.Node, port string) (object, error) {
	for i, node := range ports.Content {
		entry := object{path: fmt.Sprintf("%s[%d]", path, i), node: node}
		if node.Kind != tree.MappingNode {
			return object{}, fmt.Errorf("%s: %w", entry.path, errShape)
		}
		name, err := entry.text("name")
		if err != nil {
			return object{}, err
		}
		if name == port {
			return entry, nil
		}
	}
	return object{path: path}, nil
}
