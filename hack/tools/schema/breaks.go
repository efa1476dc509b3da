package main

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// judge returns what a change of an attribute breaks, in words. It is empty where it breaks nothing. A value is nil where the
// field does not have the attribute.
type judge func(before, after any) string

// judges of attributes. Any change of one that is not here breaks something, such as of a default.
var judges = map[string]judge{
	"required": comes, "aboveMin": comes, "belowMax": comes, "uniqueItems": comes, "embedded": comes,
	"nullable": goes, "keepsUnknown": goes, "served": goes,
	"min": rises, "minLength": rises, "minItems": rises, "minProperties": rises,
	"max": falls, "maxLength": falls, "maxItems": falls, "maxProperties": falls,
	"pattern": tightens, "format": tightens, "multipleOf": tightens,
	"enum": loses, "shortNames": shrinks, "categories": shrinks, "subresources": shrinks,
}

func comes(before, after any) string {
	if before != true && after == true {
		return "was not so before"
	}
	return ""
}

func goes(before, after any) string {
	if before == true && after != true {
		return "is so no more"
	}
	return ""
}

func rises(before, after any) string {
	low, had := before.(float64)
	if now, has := after.(float64); has && (!had || now > low) {
		return changed(before, after)
	}
	return ""
}

func falls(before, after any) string {
	high, had := before.(float64)
	if now, has := after.(float64); has && (!had || now < high) {
		return changed(before, after)
	}
	return ""
}

func tightens(before, after any) string {
	if after == nil {
		return ""
	}
	return differs(before, after)
}

func differs(before, after any) string {
	if reflect.DeepEqual(before, after) {
		return ""
	}
	return changed(before, after)
}

// loses is about values that are allowed: without a list, all are.
func loses(before, after any) string {
	if before == nil && after != nil {
		return changed(before, after)
	}
	if after == nil {
		return ""
	}
	return shrinks(before, after)
}

// shrinks is about names that there are.
func shrinks(before, after any) string {
	had, _ := before.([]any)
	has, _ := after.([]any)
	var lost []string
	for _, value := range had {
		if !slices.Contains(has, value) {
			lost = append(lost, text(value))
		}
	}
	if len(lost) == 0 {
		return ""
	}
	return "lost " + strings.Join(lost, ", ")
}

func changed(before, after any) string {
	say := func(value any) string {
		if value == nil {
			return "nothing"
		}
		return text(value)
	}
	return "was " + say(before) + " and is " + say(after)
}

// fields finds fields by kind and path.
type fields map[string]Field

func index(all []Field) fields {
	found := fields{}
	for _, field := range all {
		found[field.name()] = field
	}
	return found
}

func (f Field) name() string { return f.Of + " " + f.Path }

// parent returns the name of the field above.
func (f Field) parent() string {
	path := f.Path
	for _, mark := range []string{"[]", "{}"} {
		if above, is := strings.CutSuffix(path, mark); is {
			return f.Of + " " + above
		}
	}
	if end := strings.LastIndex(path, "."); end > 0 {
		return f.Of + " " + path[:end]
	}
	return f.Of + " ."
}

// Breaks returns the changes between two schemas by which an object, or a program that reads or writes one, may stop to work.
func Breaks(before, after []Field) []string {
	had, has := index(before), index(after)
	var all []string
	for _, field := range before {
		now, stays := has[field.name()]
		if stays {
			all = append(all, breaksOf(field, now, had, has)...)
		} else if _, parentStays := has[field.parent()]; parentStays || field.Path == "." {
			all = append(all, field.name()+": removed")
		}
	}
	for _, field := range after {
		_, isOld := had[field.name()]
		if _, parentIsOld := had[field.parent()]; !isOld && parentIsOld && field.Has["required"] == true {
			all = append(all, field.name()+": new and required")
		}
	}
	return all
}

// breaksOf returns what breaks at one field that stays.
func breaksOf(before, after Field, had, has fields) []string {
	var all []string
	if before.Type != after.Type {
		all = append(all, fmt.Sprintf("%s: type was %s and is %s", before.name(), before.Type, after.Type))
	}
	names := maps.Clone(before.Has)
	maps.Copy(names, after.Has)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		says, known := judges[name]
		if !known {
			says = differs
		}
		if words := says(before.Has[name], after.Has[name]); words != "" {
			all = append(all, fmt.Sprintf("%s: %s %s", before.name(), name, words))
		}
	}
	for _, rule := range after.Rules {
		if !slices.Contains(before.Rules, rule) && !isAboutNew(rule, after, had, has) {
			all = append(all, fmt.Sprintf("%s: new rule %s", before.name(), text(rule)))
		}
	}
	return all
}

var (
	// absent matches a rule that holds where one field below is absent, unless it goes on with a conditional.
	absent = regexp.MustCompile(`^!has\(self\.([A-Za-z0-9_]+)\) \|\| `)
	// conditional matches the sign of CEL that binds less than "||". Behind a dot or a bracket it is another one.
	conditional = regexp.MustCompile(`[^.\[]\?`)
)

// isAboutNew reports whether a rule holds for every object without a field that is new, and that nothing fills in.
func isAboutNew(rule string, of Field, had, has fields) bool {
	found := absent.FindStringSubmatch(rule)
	if found == nil || conditional.MatchString(rule) {
		return false
	}
	name := of.Of + " " + strings.TrimPrefix(of.Path+"."+found[1], ".")
	if of.Path == "." {
		name = of.Of + " " + found[1]
	}
	_, isOld := had[name]
	field, isThere := has[name]
	return !isOld && isThere && field.Has["default"] == nil
}
