package crdcheck

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// catalogue finds the rules of a kind.
type catalogue struct {
	// order is where the rule of an ID stands.
	order map[string]int
	// byMessage are the IDs of CEL rules by what the API server answers.
	byMessage map[string]string
	byID      map[string]validate.Rule
	isPolicy  map[string]bool
}

func newCatalogue(rules []validate.Rule) catalogue {
	c := catalogue{
		order: make(map[string]int, len(rules)), byMessage: map[string]string{}, byID: make(map[string]validate.Rule, len(rules)),
		isPolicy: map[string]bool{},
	}
	for i, rule := range rules {
		c.order[rule.ID], c.byID[rule.ID] = i, rule
		switch rule.By {
		case validate.Expression:
			c.byMessage[rule.Text()] = rule.ID
		case validate.Policy:
			c.isPolicy[rule.ID] = true
		}
	}
	return c
}

// sort puts findings into the order of the rules. Those of no rule come first.
func (c catalogue) sort(findings validate.Findings) {
	place := func(f validate.Finding) int {
		if at, is := c.order[f.Rule]; is {
			return at
		}
		return -1
	}
	slices.SortStableFunc(findings, func(a, b validate.Finding) int { return place(a) - place(b) })
}

// findings returns what the API server's errors say, by path, each with its rule.
func (c catalogue) findings(object map[string]any, errs field.ErrorList) validate.Findings {
	var found validate.Findings
	for _, err := range errs {
		found = append(found, c.finding(object, err))
	}
	slices.SortStableFunc(found, func(a, b validate.Finding) int { return cmp.Compare(a.Path, b.Path) })
	return found
}

func (c catalogue) finding(object map[string]any, err *field.Error) validate.Finding {
	rule, is := c.byID[c.ruleOf(err)]
	if !is {
		return ofNoRule(err)
	}
	path := err.Field
	if path == "" || path == "<nil>" {
		path = rule.Field // the API server does not say where a rule about the whole object is broken
	}
	return validate.Finding{
		Rule: rule.ID, Path: path, Value: valueOf(object, path, err), Refused: rule.Refused, Remedy: rule.Remedy,
	}
}

// ruleOf returns the ID of the rule that an error of the API server is about, empty if there is none: a CEL rule by its
// message, a bound of the schema by its place and its sort.
func (c catalogue) ruleOf(err *field.Error) string {
	if id, is := c.byMessage[err.Detail]; is {
		return id
	}
	// A rule that could not be evaluated, such as for a field that is missing.
	if _, message, is := strings.Cut(err.Detail, " evaluating rule: "); is {
		return c.byMessage[message]
	}
	for _, bound := range bounds {
		if bound.is(err) {
			return bound.rule
		}
	}
	return ""
}

// bound is how the API server says that a rule of the schema is broken.
type bound struct {
	rule string
	sort field.ErrorType
	// at matches the path, and says begins what stands behind it; empty for any.
	at   *regexp.Regexp
	says string
}

// bounds are the rules of the schema, those of a place first.
var bounds = []bound{
	{rule: "port-name", sort: field.ErrorTypeInvalid, at: regexp.MustCompile(`\.ports\[\d+\]\.name$`), says: " should match"},
	{rule: "network-nobody", sort: field.ErrorTypeRequired, at: regexp.MustCompile(`\.network\.(allowFrom\[\d+\]\.from|allowTo\[\d+\]\.to)$`)},
	{rule: "runtime-env-object", sort: field.ErrorTypeTypeInvalid, at: regexp.MustCompile(`^spec\.(jobTemplate\.spec\.)?runtimeEnv$`)},
	{rule: "serve-missing", sort: field.ErrorTypeRequired, at: regexp.MustCompile(`^spec\.serveConfig$`)},
	{rule: "serve-no-object", sort: field.ErrorTypeTypeInvalid, at: regexp.MustCompile(`^spec\.serveConfig$`)},
	{rule: "required", sort: field.ErrorTypeRequired},
	{rule: "long-text", sort: field.ErrorTypeTooLong},
	{rule: "long-list", sort: field.ErrorTypeTooMany},
	{rule: "unknown-word", sort: field.ErrorTypeNotSupported},
	{rule: "duplicate", sort: field.ErrorTypeDuplicate},
	{rule: "quantity", sort: field.ErrorTypeInvalid, says: " should match"}, // no other field has a pattern
	{rule: "out-of-bounds", sort: field.ErrorTypeInvalid, says: " should be "},
	{rule: "out-of-bounds", sort: field.ErrorTypeInvalid, says: " should have at least"},
}

func (b *bound) is(err *field.Error) bool {
	return err.Type == b.sort && (b.at == nil || b.at.MatchString(err.Field)) && strings.Contains(err.Detail, b.says)
}

// ofNoRule is what the schema refuses and no rule names: the words are the API server's.
func ofNoRule(err *field.Error) validate.Finding {
	return validate.Finding{Path: err.Field, Refused: err.Detail, Remedy: "see the reference for what the field takes"}
}

// shownText is how much of a text that is too long is shown.
const shownText = 20

// mayHoldSecret matches places whose value nobody is shown: an address may hold a password. Nor is one of another type than the
// field's, which may be a runtime environment with its variables.
var mayHoldSecret = regexp.MustCompile(`\.controlStore\.redis\.address$`)

// valueOf returns what stands at the place of an error, nil where it would not help, as of an object or a list, or do harm.
func valueOf(object map[string]any, path string, err *field.Error) any {
	switch {
	case mayHoldSecret.MatchString(path) || err.Type == field.ErrorTypeTypeInvalid:
		return nil
	case err.Type == field.ErrorTypeTooMany:
		return err.BadValue // how many there are
	}
	switch value := find(object, path).(type) {
	case string:
		if letters := []rune(value); len(letters) > shownText && err.Type == field.ErrorTypeTooLong {
			return string(letters[:shownText]) + "…"
		}
		return value
	case int64, float64, bool:
		return value
	case map[string]any:
		return keyOf(err)
	}
	return nil
}

// keyOf returns the key of an entry that is there twice, nil for another error and where the key has several parts.
func keyOf(err *field.Error) any {
	key, is := err.BadValue.(map[string]any)
	if err.Type != field.ErrorTypeDuplicate || !is || len(key) != 1 {
		return nil
	}
	return slices.Collect(maps.Values(key))[0]
}

// find returns what lies at a path such as spec.workerGroups[0].name, nil where nothing is found.
func find(object map[string]any, path string) any {
	var at any = object
	for name := range strings.SplitSeq(path, ".") {
		name, indices, _ := strings.Cut(name, "[")
		fields, is := at.(map[string]any)
		if !is {
			return nil
		}
		at = fields[name]
		if indices == "" {
			continue
		}
		for index := range strings.SplitSeq(strings.TrimSuffix(indices, "]"), "][") {
			at = entry(at, index)
		}
	}
	return at
}

// entry returns an entry of a list or a map, nil where there is none.
func entry(of any, index string) any {
	switch of := of.(type) {
	case map[string]any:
		return of[index]
	case []any:
		if i, err := strconv.ParseUint(index, 10, 31); err == nil && int(i) < len(of) {
			return of[i]
		}
	}
	return nil
}
