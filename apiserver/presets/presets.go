// Package presets makes manifests of presets: what an administrator prepared, with the options that a user chose.
//
// In: ConfigMaps with the label heliostat.dev/preset, and options. Out: presets with the schema of their options, for a
// form; and a manifest of one of our kinds, or findings that say which option is wrong and what helps. A preset
// that cannot be used is not left out: it says why.
//
// It is pure and total. A value never changes the structure of a manifest: it is put into the parsed tree, as one
// scalar or a list of scalars. Schemas load nothing. A preset bounds what its form offers, and never what a user may
// create.
package presets

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Keys of the ConfigMap of a preset.
const (
	KeyTitle       = "title"
	KeyDescription = "description"
	KeySchema      = "schema.json"
	KeyManifest    = "manifest.yaml"
)

// How long the parts of a preset may be, in bytes.
const (
	longestTitle       = 256
	longestDescription = 4 << 10
	longestSchema      = 32 << 10
	longestManifest    = 128 << 10
)

// ErrBroken is that a preset cannot be used.
var ErrBroken = errors.New("the preset cannot be used")

// Preset is a manifest with options.
type Preset struct {
	// Name and Namespace are those of its ConfigMap.
	Name, Namespace string
	// Title and Description are for people. A preset without a title has its name for one.
	Title, Description string
	// Schema is a JSON Schema of the options. It is nil where it cannot be read, and is not to be changed.
	Schema map[string]any
	// Error says why the preset cannot be used, with what helps. It is empty for one that can.
	Error string

	compiled *jsonschema.Schema
	defaults map[string]any
	manifest map[string]any
	// size is about how much memory it takes, in bytes.
	size int
}

// Kind returns the kind that the preset makes, as manifests name it. It is empty for a preset that cannot be used.
func (p *Preset) Kind() string {
	kind, _ := p.manifest["kind"].(string)
	return kind
}

// Finding is an option that is refused.
type Finding struct {
	// Field is the path of the option, such as options.workers.
	Field string
	// Rule names the rule for programs, in kebab-case.
	Rule string
	// Message says what is wrong, and Remedy what helps.
	Message, Remedy string
}

// Parse reads a preset. Of one that cannot be used it returns what could be read, whose Error is the error's text.
func Parse(source *corev1.ConfigMap) (*Preset, error) {
	if source == nil {
		return &Preset{Error: ErrBroken.Error()}, ErrBroken
	}
	p := &Preset{Name: source.Name, Namespace: source.Namespace, Title: source.Name, size: leastSize}
	if err := p.read(source); err != nil {
		p.Error = err.Error()
		return p, err
	}
	return p, nil
}

func (p *Preset) read(source *corev1.ConfigMap) error {
	lengths := map[string]int{
		KeyTitle: longestTitle, KeyDescription: longestDescription, KeySchema: longestSchema, KeyManifest: longestManifest,
	}
	known := slices.Sorted(maps.Keys(lengths))
	keys := slices.Sorted(maps.Keys(source.Data))
	for _, key := range append(keys, slices.Sorted(maps.Keys(source.BinaryData))...) {
		switch length, isKnown := lengths[key]; {
		case !isKnown:
			return fmt.Errorf("key %q is unknown; %s", shown(key), spelling.Remedy(key, known))
		case len(source.BinaryData[key]) > 0:
			return fmt.Errorf("%s is in binaryData; put it into data", key)
		case len(source.Data[key]) > length:
			return fmt.Errorf("%s has more than %d bytes; shorten it", key, length)
		}
	}
	if title := strings.TrimSpace(source.Data[KeyTitle]); title != "" {
		p.Title = title
	}
	p.Description = strings.TrimSpace(source.Data[KeyDescription])
	p.size += len(source.Data[KeyTitle]) + len(source.Data[KeyDescription]) + perByte*len(source.Data[KeySchema])
	for _, key := range []string{KeySchema, KeyManifest} {
		if strings.TrimSpace(source.Data[key]) == "" {
			return fmt.Errorf("%s is missing; add the key", key)
		}
	}
	if err := p.readSchema(source.Data[KeySchema]); err != nil {
		return fmt.Errorf("%s: %w", KeySchema, err)
	}
	if err := p.readManifest(source.Data[KeyManifest]); err != nil {
		return fmt.Errorf("%s: %w", KeyManifest, err)
	}
	return nil
}

// IsPreset reports whether a ConfigMap is a preset.
func IsPreset(source *corev1.ConfigMap) bool {
	if source == nil {
		return false
	}
	_, ok := source.Labels[v1beta1.LabelPreset]
	return ok
}

// List returns the presets that can be used in a namespace, by name: those of the namespace, and those of the
// release's for all users. Where both have one of a name, that of the namespace counts. Broken ones are among them.
func List(sources []*corev1.ConfigMap, namespace, release string) []*Preset {
	return list(sources, namespace, release, parse)
}

func list(sources []*corev1.ConfigMap, namespace, release string, read func(*corev1.ConfigMap) *Preset) []*Preset {
	chosen := choose(sources, namespace, release)
	all := make([]*Preset, 0, len(chosen))
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		all = append(all, read(chosen[name]))
	}
	return all
}

func parse(source *corev1.ConfigMap) *Preset {
	preset, _ := Parse(source) // it has the error
	return preset
}

// Find returns the preset of a name that List would return, and false where there is none.
func Find(sources []*corev1.ConfigMap, namespace, release, name string) (*Preset, bool) {
	return find(choose(sources, namespace, release)[name], parse)
}

func find(source *corev1.ConfigMap, read func(*corev1.ConfigMap) *Preset) (*Preset, bool) {
	if source == nil {
		return nil, false
	}
	return read(source), true
}

// choose returns the presets of a namespace and of the release's, by name.
func choose(sources []*corev1.ConfigMap, namespace, release string) map[string]*corev1.ConfigMap {
	chosen := map[string]*corev1.ConfigMap{}
	for _, from := range []string{release, namespace} {
		for _, source := range sources {
			if IsPreset(source) && source.Namespace == from && from != "" {
				chosen[source.Name] = source
			}
		}
	}
	return chosen
}

// Apply returns the manifest with the options in it, and with defaults for those that were not given. Where options are
// refused it returns all findings, and no manifest. The error is that of a broken preset.
func (p *Preset) Apply(options map[string]any) (object map[string]any, findings []Finding, err error) {
	if p == nil || p.manifest == nil || p.compiled == nil {
		return nil, nil, ErrBroken
	}
	values, findings := p.choose(options)
	if len(findings) > 0 {
		return nil, findings, nil
	}
	x := expansion{values: values}
	object, _ = x.expand(p.manifest).(map[string]any)
	if len(x.findings) > 0 {
		return nil, x.findings, nil
	}
	return object, nil, nil
}
