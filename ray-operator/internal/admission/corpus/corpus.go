// Package corpus makes objects of our kinds, good and bad, with what package crdcheck says of each.
//
// In: a kind, counts and a seed. Out: inputs for a real API server, which must come to the
// same answers: a row for each side of each rule, mixtures of rows, and a rich object in which
// one field after the other has an odd value. The same counts and seed give the same inputs.
//
// It never asks a server itself, and nothing that users run imports it.
package corpus

import (
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/crdcheck"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// Options say how many inputs there are beside the rows, and from which seed.
type Options struct {
	Random, Mutations int
	Seed              uint64
}

// Input is an object as a user would send it.
type Input struct {
	Name string `json:"name"`
	// Before is the state that the object is changed from; absent: it is created.
	Before json.RawMessage `json:"before,omitempty"`
	Object json.RawMessage `json:"object"`
	// Refusals are what is wrong with it; none for a good one.
	Refusals []Refusal `json:"refusals,omitempty"`
	// Pods are some of a good row or mixture, which Kubernetes must take.
	Pods []*corev1.Pod `json:"pods,omitempty"`
}

// Refusal is one thing that is wrong.
type Refusal struct {
	// Rule is the ID of the rule that is broken.
	Rule  string `json:"rule"`
	Field string `json:"field"`
	// Says is a part of what the API server must answer if it names this one.
	Says string `json:"says"`
}

// Row is an edit of a kind's good object, named after the rule that it breaks.
type Row[T any] struct {
	Name string
	// Rule is empty where the object stays good.
	Rule string
	// Before makes the state that Edit then changes; nil: the object is created.
	Before, Edit func(T)
}

// Kind is a kind of the API with its rows.
type Kind[T interface{ DeepCopy() T }] struct {
	// Good makes the object that rows edit, with nothing said that need not be.
	Good func() T
	Rows []Row[T]

	// kind is how manifests name it.
	kind string
	// pods are some that the operator makes of a good one.
	pods func(T) []*corev1.Pod

	// Made once, as each object is judged for them: the inputs of the rows, and a good object with as many fields as possible.
	ofRows func() []made
	rich   func() []byte
}

// made is an input, or why it cannot be written down.
type made struct {
	Input
	err error
}

// newKind completes a kind with what is made of its rows.
func newKind[T interface{ DeepCopy() T }](k Kind[T]) Kind[T] {
	k.ofRows = sync.OnceValue(func() []made {
		var all []made
		for _, row := range k.Rows {
			input, err := k.ofRow(row)
			all = append(all, made{input, err})
		}
		return all
	})
	k.rich = sync.OnceValue(k.enrich)
	return k
}

// WithoutRow are the rules that no object of a Go type breaks: a resource.Quantity always is one. TestCreate_NamesTheRule in
// crdcheck breaks them.
var WithoutRow = []string{"quantity"}

// Judge returns what the rules say of a row.
func (k Kind[T]) Judge(row Row[T]) validate.Findings {
	object := k.Good()
	if row.Before == nil {
		row.Edit(object)
		return create(k.kind, object)
	}
	row.Before(object)
	before := object.DeepCopy()
	row.Edit(object)
	return findings(crdcheck.Update(k.kind, before, object))
}

// create returns what is refused of a new object.
func create(kind string, object any) validate.Findings {
	return findings(crdcheck.Create(kind, object))
}

// findings returns those of an answer. What the schema accepts and no Go type holds, such as a number above 32 bits, is refused
// as a whole: the admission policies refuse it too, by rules that are not asked here, so the finding has no words.
func findings(answer crdcheck.Answer, err error) validate.Findings {
	if err != nil {
		return validate.Findings{{Path: "spec"}}
	}
	return answer.Findings
}

// Inputs gives all inputs, or an error where one cannot be written down.
func (k Kind[T]) Inputs(options Options) iter.Seq2[Input, error] {
	return func(yield func(Input, error) bool) {
		for _, row := range k.ofRows() {
			if !yield(row.Input, row.err) {
				return
			}
		}
		source := rand.New(rand.NewPCG(options.Seed, 0))
		for i := range options.Random {
			name, object := k.mixture(source)
			input, err := k.input(fmt.Sprintf("mixture %d of seed %d: %s", i, options.Seed, name), object)
			if !yield(k.withPods(input, object), err) {
				return
			}
		}
		if options.Mutations == 0 {
			return
		}
		all := k.mutations()
		source.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, mutation := range all[:min(len(all), options.Mutations)] {
			if !yield(k.ofMutation(mutation)) {
				return
			}
		}
	}
}

func (k Kind[T]) ofRow(row Row[T]) (Input, error) {
	object := k.Good()
	var before json.RawMessage
	var err error
	if row.Before != nil {
		row.Before(object)
		if before, err = json.Marshal(object); err != nil {
			return Input{}, fmt.Errorf("write down what is before %s: %w", row.Name, err)
		}
	}
	row.Edit(object)
	input, err := k.input(row.Name, object)
	input.Before, input.Refusals = before, refusals(k.Judge(row))
	return k.withPods(input, object), err
}

// mixture lays some rows over each other: good ones, and in half of the mixtures any.
func (k Kind[T]) mixture(source *rand.Rand) (string, T) {
	goodOnly := source.IntN(2) == 0
	rows := slices.DeleteFunc(slices.Clone(k.Rows), func(r Row[T]) bool { return r.Before != nil || goodOnly && r.Rule != "" })
	object := k.Good()
	var names []string
	for range 1 + source.IntN(5) {
		row := rows[source.IntN(len(rows))]
		edited, can := apply(row, object)
		if !can {
			continue
		}
		object = edited
		names = append(names, row.Name)
	}
	return fmt.Sprint(names), object
}

// apply gives an edited copy of an object, unless what the row edits went with an earlier edit.
func apply[T interface{ DeepCopy() T }](row Row[T], object T) (edited T, can bool) {
	defer func() { can = recover() == nil }()
	edited = object.DeepCopy()
	row.Edit(edited)
	return edited, true
}

func (k Kind[T]) input(name string, object any) (Input, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return Input{}, fmt.Errorf("write down %s: %w", name, err)
	}
	return Input{Name: name, Object: text, Refusals: refusals(create(k.kind, object))}, nil
}

// withPods adds the pods to a good input.
func (k Kind[T]) withPods(in Input, object T) Input {
	if len(in.Refusals) > 0 {
		return in
	}
	in.Pods = k.pods(object.DeepCopy())
	for _, made := range in.Pods {
		made.APIVersion, made.Kind = "v1", "Pod"
	}
	return in
}

func refusals(found validate.Findings) []Refusal {
	ofSchema := map[string]string{}
	for _, rule := range slices.Concat(validate.Rules(), validate.JobRules(), validate.ServiceRules(), validate.ScheduleRules()) {
		if rule.By == validate.Schema {
			ofSchema[rule.ID] = rule.Says
		}
	}
	var all []Refusal
	for _, finding := range found {
		says, is := ofSchema[finding.Rule]
		switch {
		case finding.Rule == "":
			says = finding.Refused
		case !is:
			says = finding.Refused + "; " + finding.Remedy
		}
		all = append(all, Refusal{Rule: finding.Rule, Field: finding.Path, Says: says})
	}
	return all
}
