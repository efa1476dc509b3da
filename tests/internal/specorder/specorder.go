// Package specorder has Ginkgo play a suite as planned. A suite imports it for that effect alone.
//
// In: the environment variable HELIOSTAT_PLAN, which names the plan.json of tests/times. Out: the priority of each
// outermost container, and the label LeftOut on those that a slow machine leaves out. Without the variable Ginkgo chooses
// the order. It must never change what a spec does.
package specorder

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// Variable names the environment variable with the path of the plan.
const Variable = "HELIOSTAT_PLAN"

// LeftOut labels the containers that a filter of labels must leave out.
const LeftOut = "left-out"

// A suite makes its containers while its package is initialized, which is after the packages that it imports.
func init() {
	path := os.Getenv(Variable)
	if path == "" {
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		panic(fmt.Sprintf("read the plan that %s names: %v", Variable, err))
	}
	transform, err := readPlan(text)
	if err != nil {
		panic(fmt.Sprintf("parse the plan %s: %v", path, err))
	}
	ginkgo.AddTreeConstructionNodeArgsTransformer(transform)
}

// readPlan returns a transformer that gives each container its priority in the plan, and those that are left out a label.
func readPlan(text []byte) (ginkgo.NodeArgsTransformer, error) {
	var plan struct {
		Priorities map[string]int `json:"priorities"`
		LeftOut    []string       `json:"leftOut"`
	}
	if err := json.Unmarshal(text, &plan); err != nil {
		return nil, err
	}
	return func(kind types.NodeType, _ ginkgo.Offset, name string, args []any) (string, []any, []error) {
		priority, planned := plan.Priorities[name]
		if !planned || !kind.Is(types.NodeTypesForContainerAndIt) {
			return name, args, nil
		}
		args = append(args, ginkgo.SpecPriority(priority))
		if slices.Contains(plan.LeftOut, name) {
			args = append(args, ginkgo.Label(LeftOut))
		}
		return name, args, nil
	}, nil
}
