// Command print writes to standard output what is generated from the rules of package
// validate: the admission policy of the chart for a kind, the tables of the documentation, or
// inputs for the API server (corpus: clusters; jobs; services; schedules) with what the rules say of each.
//
// In: what to print, and for inputs how many and from which seed. Out: YAML, Markdown or
// one JSON object a line. It must never print anything that depends on the machine.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission/corpus"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/rights"
)

func main() {
	random := flag.Int("n", 200, "how many generated inputs there are beside the table and the mutations")
	mutations := flag.Int("mutations", 200, "how many mutations of fields there are at most")
	seed := flag.Uint64("seed", 1, "the seed of the generated inputs")
	flag.Parse()
	out := bufio.NewWriter(os.Stdout)
	err := run(out, flag.Arg(0), corpus.Options{Random: *random, Mutations: *mutations, Seed: *seed})
	if err := errors.Join(err, out.Flush()); err != nil {
		fmt.Fprintln(os.Stderr, "print:", err)
		os.Exit(1)
	}
}

var errWhat = errors.New("there are computeclusters, clusterjobs, clusterservices, clusterjobschedules, rights-pods, rights-objects, rights-doors, tables, corpus, jobs, services, schedules and rights")

func run(out io.Writer, what string, options corpus.Options) error {
	switch what {
	case "computeclusters":
		return printed(out)(admission.ClusterPolicy())
	case "clusterjobs":
		return printed(out)(admission.JobPolicy())
	case "clusterservices":
		return printed(out)(admission.ServicePolicy())
	case "clusterjobschedules":
		return printed(out)(admission.SchedulePolicy())
	case "rights-pods", "rights-objects", "rights-doors":
		return printed(out)(admission.RightsPolicy(rights.Family(strings.TrimPrefix(what, "rights-"))))
	case "tables":
		return printed(out)([]byte(admission.Tables()), nil)
	case "corpus":
		return lines(out, corpus.Clusters().Inputs(options))
	case "jobs":
		return lines(out, corpus.Jobs().Inputs(options))
	case "rights":
		return lines(out, corpus.Rights(options))
	case "services":
		return lines(out, corpus.Services().Inputs(options))
	case "schedules":
		return lines(out, corpus.Schedules().Inputs(options))
	}
	return fmt.Errorf("print %q: %w", what, errWhat)
}

// printed writes what was made, unless that failed.
func printed(out io.Writer) func(text []byte, err error) error {
	return func(text []byte, err error) error {
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	}
}

func lines[T any](out io.Writer, inputs iter.Seq2[T, error]) error {
	line := json.NewEncoder(out)
	for input, err := range inputs {
		if err != nil {
			return err
		}
		if err := line.Encode(input); err != nil {
			return fmt.Errorf("print an input: %w", err)
		}
	}
	return nil
}
