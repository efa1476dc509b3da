package rest

import (
	"context"
	"fmt"
	"net/http"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/apiserver/presets"
	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/portal/limits"
	"github.com/heliostat-dev/heliostat/portal/problem"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// ListPresets implements the protocol.
func (p *portal) ListPresets(
	ctx context.Context, r *heliostatv1.ListPresetsRequest,
) (*heliostatv1.ListPresetsResponse, error) {
	if err := checkPath(map[string]string{"namespace": r.GetNamespace()}); err != nil {
		return nil, err
	}
	maps, err := presetMaps(ctx, p, r.GetNamespace())
	if err != nil {
		return nil, err
	}
	answer := &heliostatv1.ListPresetsResponse{}
	for _, one := range p.presets.List(maps, r.GetNamespace(), p.Namespace) {
		preset := &heliostatv1.Preset{Name: one.Name, Namespace: one.Namespace, Title: one.Title,
			Description: one.Description, Error: one.Error}
		if one.Schema != nil {
			if preset.Schema, err = structpb.NewStruct(one.Schema); err != nil {
				return nil, fmt.Errorf("write the schema of preset %s: %w", one.Name, err)
			}
		}
		answer.Presets = append(answer.Presets, preset)
	}
	return answer, nil
}

// presetMaps returns the ConfigMaps of the presets that can be used in a namespace. Those of the namespace itself are read as
// the caller: without a right to them there are none.
func presetMaps(ctx context.Context, p *portal, namespace string) ([]*corev1.ConfigMap, error) {
	caller, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	maps, err := p.Access.ReleasePresets(ctx, p.Namespace)
	if err != nil || namespace == p.Namespace {
		return maps, err
	}
	within, cancel := context.WithTimeout(ctx, memoryWithin)
	defer cancel()
	giveBack, err := p.listing.Take(within, senderOf(caller), limits.MaxMemoryEach) // users write them as they like
	if err != nil {
		return nil, ofPlaces(err)
	}
	defer giveBack()
	own, err := p.Access.Presets(ctx, caller, namespace)
	if err != nil && !isForbidden(err) {
		return nil, fmt.Errorf("list presets of namespace %s: %w", namespace, err)
	}
	return append(own, maps...), nil
}

// findPreset returns the preset of a request, which can be used.
func (p *portal) findPreset(ctx context.Context, r *heliostatv1.CreateObjectRequest) (*presets.Preset, error) {
	maps, err := presetMaps(ctx, p, r.GetNamespace())
	if err != nil {
		return nil, err
	}
	preset, is := p.presets.Find(maps, r.GetNamespace(), p.Namespace, r.GetPreset())
	if !is {
		var names []string
		for _, one := range p.presets.List(maps, r.GetNamespace(), p.Namespace) {
			names = append(names, one.Name)
		}
		return nil, problem.Bad("preset", fmt.Sprintf("%.80q is not there", r.GetPreset()),
			spelling.Remedy(r.GetPreset(), names))
	}
	if preset.Error != "" {
		return nil, problem.New(http.StatusConflict, "PresetBroken",
			fmt.Sprintf("preset %s/%s cannot be used: %s", preset.Namespace, preset.Name, preset.Error),
			"ask its author to correct it")
	}
	return preset, nil
}

// applyPreset returns the manifest that a preset makes of options.
func applyPreset(preset *presets.Preset, options map[string]any) (map[string]any, error) {
	object, findings, err := preset.Apply(options)
	if err != nil {
		return nil, fmt.Errorf("apply preset %s: %w", preset.Name, err)
	}
	if len(findings) == 0 {
		return object, nil
	}
	refused := problem.New(http.StatusUnprocessableEntity, "Invalid", "the preset refuses the options",
		findings[0].Remedy)
	for _, one := range findings {
		refused.Errors = append(refused.Errors, problem.FieldError{Field: one.Field, Rule: one.Rule,
			Message: one.Message, Remedy: one.Remedy})
	}
	return nil, refused
}
