package testkit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// statusSchema is what a CRD says of a value, as far as statuses of ours need it.
type statusSchema struct {
	Type       string                   `json:"type"`
	Properties map[string]*statusSchema `json:"properties"`
	Values     *statusSchema            `json:"additionalProperties"`
	Items      *statusSchema            `json:"items"`
	Required   []string                 `json:"required"`
	Enum       []any                    `json:"enum"`
	Pattern    string                   `json:"pattern"`
	MinLength  *int                     `json:"minLength"`
	MaxLength  *int                     `json:"maxLength"`
	MaxItems   *int                     `json:"maxItems"`
	Minimum    *float64                 `json:"minimum"`
	Maximum    *float64                 `json:"maximum"`
	ListType   string                   `json:"x-kubernetes-list-type"`
	ListKeys   []string                 `json:"x-kubernetes-list-map-keys"`
}

// schemas are those of the kinds, by kind.
var schemas = sync.OnceValues(func() (map[string]*statusSchema, error) {
	files, err := findCRDs()
	if err != nil {
		return nil, err
	}
	all := map[string]*statusSchema{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var crd struct {
			Spec struct {
				Names    struct{ Kind string }
				Versions []struct {
					Schema struct {
						Whole *statusSchema `json:"openAPIV3Schema"`
					}
				}
			}
		}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		all[crd.Spec.Names.Kind] = crd.Spec.Versions[0].Schema.Whole
	}
	return all, nil
})

// findCRDs returns the files of the CRDs, seen from the package that is tested.
func findCRDs() ([]string, error) {
	at, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for {
		if files, _ := filepath.Glob(filepath.Join(at, "ray-operator/config/crd/heliostat.dev_*.yaml")); len(files) > 0 {
			return files, nil
		}
		if at == filepath.Dir(at) {
			return nil, errors.New("no directory above has the CRDs")
		}
		at = filepath.Dir(at)
	}
}

// checkStatus returns the answer to a status that the schema of its kind refuses, as the API server has it. An operator
// that writes such a status writes none any more.
func checkStatus(obj client.Object) error {
	kind := kindOf(obj)
	all, err := schemas()
	if err != nil {
		return err
	}
	whole := all[kind]
	if whole == nil {
		return nil
	}
	text, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return err
	}
	if wrong := whole.Properties["status"].check("status", object["status"]); len(wrong) > 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("the schema of %s refuses a status: %s", kind, strings.Join(wrong, "; ")))
	}
	return nil
}

// check returns what of a value the schema refuses.
func (s *statusSchema) check(path string, value any) []string {
	switch value := value.(type) {
	case map[string]any:
		return s.checkObject(path, value)
	case []any:
		return s.checkList(path, value)
	case string:
		return s.checkText(path, value)
	case float64:
		if s.Minimum != nil && value < *s.Minimum || s.Maximum != nil && value > *s.Maximum {
			return []string{fmt.Sprintf("%s is %v", path, value)}
		}
	}
	return nil
}

func (s *statusSchema) checkObject(path string, value map[string]any) []string {
	var wrong []string
	for _, name := range s.Required {
		if _, is := value[name]; !is {
			wrong = append(wrong, path+"."+name+" is missing")
		}
	}
	for name, below := range value {
		switch of := cmp.Or(s.Properties[name], s.Values); {
		case of != nil:
			wrong = append(wrong, of.check(path+"."+name, below)...)
		case s.Properties != nil:
			wrong = append(wrong, path+"."+name+" is unknown")
		}
	}
	return wrong
}

func (s *statusSchema) checkList(path string, value []any) []string {
	var wrong, keys []string
	if s.MaxItems != nil && len(value) > *s.MaxItems {
		wrong = append(wrong, fmt.Sprintf("%s has %d items", path, len(value)))
	}
	for i, below := range value {
		wrong = append(wrong, s.Items.check(fmt.Sprintf("%s[%d]", path, i), below)...)
		key := fmt.Sprint(below)
		if object, is := below.(map[string]any); is {
			key = ""
			for _, name := range s.ListKeys {
				key += fmt.Sprint(object[name], "/")
			}
		}
		if s.ListType != "atomic" && slices.Contains(keys, key) {
			wrong = append(wrong, fmt.Sprintf("%s[%d] is there twice", path, i))
		}
		keys = append(keys, key)
	}
	return wrong
}

func (s *statusSchema) checkText(path, value string) []string {
	switch length := utf8.RuneCountInString(value); {
	case s.MinLength != nil && length < *s.MinLength, s.MaxLength != nil && length > *s.MaxLength:
		return []string{fmt.Sprintf("%s has %d characters", path, length)}
	case s.Enum != nil && !slices.Contains(s.Enum, any(value)):
		return []string{fmt.Sprintf("%s is %q", path, value)}
	case s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(value):
		return []string{fmt.Sprintf("%s is %q", path, value)}
	}
	return nil
}
