package bundle

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/yaml"
)

// assignment is a line of a file of variables, such as those of dotenv, shells and INI.
var assignment = regexp.MustCompile(`(?m)^[ \t]*(?:export[ \t]+)?[A-Za-z_][\w.-]*[ \t]*=[ \t]*(\S.*?)[ \t\r]*$`)

// divider begins a document of YAML.
var divider = regexp.MustCompile(`(?m)^---(?:[ \t]|\r?$)`)

// partsOf returns the values that stand in a value, at any depth: of variables, of fields of JSON and YAML, and the password of
// an address. Programs write each of them alone.
func partsOf(value string) []string {
	var parts []string
	for _, line := range assignment.FindAllStringSubmatch(value, -1) {
		parts = append(parts, unquoted(line[1])...)
	}
	for _, one := range divider.Split(value, -1) {
		parts = append(parts, fieldsOf(one)...)
	}
	if address, err := url.Parse(strings.TrimSpace(value)); err == nil && address.User != nil {
		password, _ := address.User.Password()
		parts = append(parts, password)
	}
	for _, part := range parts {
		if len(part) < len(value) {
			parts = append(parts, partsOf(part)...)
		}
	}
	return parts
}

// unquoted returns what the right side of an assignment may mean: in quotes, and before a comment.
func unquoted(right string) []string {
	if text, err := strconv.Unquote(right); err == nil && right[0] == '"' {
		return []string{text}
	}
	if quote := right[0]; quote == '\'' || quote == '"' {
		inside, _, _ := strings.Cut(right[1:], right[:1])
		return []string{inside}
	}
	before, _, isCommented := strings.Cut(right, " #")
	if isCommented {
		return []string{right, strings.TrimSpace(before)}
	}
	return []string{right}
}

// longestValue is how many bytes a value with parts may have. No object of Kubernetes has more.
const longestValue = 3 << 20

// fieldsOf returns the texts and numbers in an object or a list of JSON or YAML: as they are written, and as programs read
// them. Of a value whose anchors make too much, it returns those that are written.
func fieldsOf(value string) []string {
	fields, err := yaml.Scalars([]byte(value), longestValue)
	if err != nil || len(fields) == 0 {
		return nil
	}
	text, err := yaml.ToJSON([]byte(value), longestValue)
	if err != nil {
		return fields
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // a number stays as it was written
	var read any
	if err := decoder.Decode(&read); err != nil {
		return fields
	}
	return append(fields, leavesOf(read)...)
}

// leavesOf returns the texts and numbers at the ends of fields.
func leavesOf(fields any) []string {
	var leaves []string
	switch fields := fields.(type) {
	case string:
		return []string{fields}
	case json.Number:
		return []string{fields.String()}
	case []any:
		for _, one := range fields {
			leaves = append(leaves, leavesOf(one)...)
		}
	case map[string]any:
		for _, one := range fields {
			leaves = append(leaves, leavesOf(one)...)
		}
	}
	return leaves
}
