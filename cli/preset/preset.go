// Package preset begins commands with what an administrator prepared.
//
// In: the name of a preset, and options as NAME=VALUE. Out: the manifest that it makes of them, as package presets has it for
// the server, or which option is wrong and what helps.
//
// It must never read ConfigMaps of another namespace than the user's and that of the release.
package preset

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/apiserver/presets"
	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// release is the namespace of the release as the documentation has it, whose presets are for all users.
const release = "heliostat-system"

// optionName is the option by which presets let users name the object.
const optionName = "name"

// Flags are which preset is meant, with what options.
type Flags struct {
	name      string
	namespace string
	options   []string
}

// Add adds the flags to those of a command.
func (f *Flags) Add(flags *pflag.FlagSet) {
	flags.StringVar(&f.name, "preset", "", "begin with this preset, of the namespace or of the administrator")
	flags.StringArrayVar(&f.options, "option", nil, "option of the preset, as NAME=VALUE; can be given more than once")
	flags.StringVar(&f.namespace, "preset-namespace", release, "namespace of the administrator's presets")
}

// IsGiven reports whether a preset is meant.
func (f *Flags) IsGiven() bool { return f.name != "" }

// Check refuses options without a preset.
func (f *Flags) Check() error {
	if f.name == "" && len(f.options) > 0 {
		return outcome.Errorf(outcome.Usage, "--option is of a preset; name it with --preset")
	}
	return nil
}

// Manifest returns what the preset makes of the options, which must be of a kind. The name of the object, where the user gave
// one, is the option name of a preset that has it.
func (f *Flags) Manifest(ctx context.Context, objects *kube.Objects, kind kube.Kind, named string) ([]byte, error) {
	sources, unread := f.sources(ctx, objects)
	found, isThere := presets.Find(sources, objects.Namespace, f.namespace, f.name)
	switch {
	case !isThere && unread != nil:
		return nil, unread
	case !isThere:
		return nil, f.missing(sources, objects.Namespace)
	case found.Error != "":
		return nil, outcome.Errorf(outcome.Refused, "preset %s cannot be used: %s", f.name, found.Error)
	case found.Kind() != kind.Name:
		return nil, outcome.Errorf(outcome.Usage, "preset %s makes a %s; name one that makes a %s", f.name, found.Kind(), kind.Name)
	}
	values, err := readOptions(f.options, found.Schema)
	if err != nil {
		return nil, err
	}
	properties, _ := found.Schema["properties"].(map[string]any)
	if _, isOption := properties[optionName]; isOption && values[optionName] == nil && named != "" {
		values[optionName] = named
	}
	made, findings, err := found.Apply(values)
	switch {
	case err != nil:
		return nil, outcome.Errorf(outcome.Refused, "preset %s: %w", f.name, err)
	case len(findings) > 0:
		return nil, refusal(findings)
	}
	text, err := yaml.Marshal(made)
	if err != nil {
		return nil, fmt.Errorf("write the manifest of preset %s: %w", f.name, err)
	}
	return text, nil
}

// sources returns the presets of both namespaces. Many users may not see those of the release: then it says so too.
func (f *Flags) sources(ctx context.Context, objects *kube.Objects) (all []*corev1.ConfigMap, unread error) {
	for _, namespace := range []string{objects.Namespace, f.namespace} {
		list := &corev1.ConfigMapList{}
		err := objects.List(ctx, list, client.InNamespace(namespace), client.HasLabels{v1beta1.LabelPreset})
		if err != nil && !apierrors.IsNotFound(err) {
			unread = kube.Because(fmt.Errorf("list presets %s: %w", kube.Where(namespace), err))
		}
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	}
	return all, unread
}

// missing says which preset was probably meant.
func (f *Flags) missing(sources []*corev1.ConfigMap, namespace string) error {
	var known []string
	for _, one := range presets.List(sources, namespace, f.namespace) {
		known = append(known, one.Name)
	}
	if len(known) == 0 {
		return outcome.Errorf(outcome.Usage, "there is no preset, neither %s nor %s", kube.Where(namespace), kube.Where(f.namespace))
	}
	return outcome.Errorf(outcome.Usage, "there is no preset %q; %s", f.name, spelling.Remedy(f.name, known))
}

// readOptions reads NAME=VALUE. A value that is JSON, such as 3, true or ["a"], is that, unless the schema has a text there.
func readOptions(options []string, schema map[string]any) (map[string]any, error) {
	properties, _ := schema["properties"].(map[string]any)
	values := map[string]any{}
	for _, one := range options {
		name, text, hasValue := strings.Cut(one, "=")
		if _, isTwice := values[name]; !hasValue || name == "" || isTwice {
			return nil, outcome.Errorf(outcome.Usage, "--option %q must be NAME=VALUE, each name once", name)
		}
		var value any
		property, _ := properties[name].(map[string]any)
		if property["type"] == "string" || json.Unmarshal([]byte(text), &value) != nil || value == nil {
			value = text
		}
		values[name] = value
	}
	return values, nil
}

// refusal says what is wrong with options, a line for each.
func refusal(findings []presets.Finding) error {
	var lines []string
	for _, one := range findings {
		lines = append(lines, fmt.Sprintf("%s; %s", one.Message, strings.ToLower(one.Remedy[:1])+one.Remedy[1:]))
	}
	return outcome.Errorf(outcome.Usage, "the options of the preset are refused:\n  %s", strings.Join(lines, "\n  "))
}
