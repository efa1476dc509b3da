package headtest

import (
	"encoding/json"
	"fmt"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// Wish is something that wants room: as many of a shape, for as long as its driver is
// connected. A floor stays.
type Wish struct {
	Kind  Kind
	Shape map[string]float64
	// Labels are what a node must have.
	Labels map[string]string
	Count  int
	// Strategy is a group's, and Within, if not empty, a label that is the same on all of
	// its nodes: it stands in for the strategy then, which is PACK.
	Strategy headclient.Strategy
	Within   string
	// Inside is how many tasks of one CPU wait for a group's bundles.
	Inside int
}

// Kind is what wants room.
type Kind string

// The kinds of wishes. A group is a placement group, a floor what request_resources asks for.
const (
	Tasks  Kind = "tasks"
	Actors Kind = "actors"
	Group  Kind = "group"
	Floor  Kind = "floor"
)

// Python makes the wish in a driver that is connected, and holds it in variables.
func (w Wish) Python() (string, error) {
	literal, err := json.Marshal(map[string]any{
		"kind": w.Kind, "shape": orEmpty(w.Shape), "labels": orEmpty(w.Labels), "count": w.Count,
		"strategy": w.Strategy, "within": w.Within, "inside": w.Inside,
	})
	if err != nil {
		return "", fmt.Errorf("write a wish for Python: %w", err)
	}
	return "wish = " + string(literal) + python, nil
}

func orEmpty[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}

const python = `
from ray.autoscaler.sdk import request_resources
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

def wanting(thing):
    rest = dict(wish["shape"])
    asked = {"num_cpus": rest.pop("CPU", 0), "num_gpus": rest.pop("GPU", 0), "resources": rest}
    if wish["labels"]:
        asked["label_selector"] = wish["labels"]
    return [ray.remote(thing).options(**asked).remote() for _ in range(wish["count"])]

if wish["kind"] == "tasks":
    held = wanting(lambda: 0)
elif wish["kind"] == "actors":
    held = wanting(type("Held", (), {}))
elif wish["kind"] == "floor":
    request_resources(bundles=[wish["shape"]] * wish["count"])
else:
    how = {"topology_strategy": {wish["within"]: "STRICT_PACK"}} if wish["within"] else {"strategy": wish["strategy"]}
    if wish["labels"]:
        how["bundle_label_selector"] = [wish["labels"]] * wish["count"]
    held = placement_group([wish["shape"]] * wish["count"], **how)
    inside = ray.remote(lambda: 0).options(num_cpus=1, scheduling_strategy=PlacementGroupSchedulingStrategy(held))
    tasks = [inside.remote() for _ in range(wish["inside"])]
`
