// Command inputs writes inputs for a real API server to standard output, each with what the rules say of it: of clusters,
// jobs, services or schedules, or of the rights that specs need.
//
// In: what the inputs are about, how many there are, and from which seed. Out: one JSON object a line. It must never write
// anything that depends on the machine.
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

	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission/corpus"
)

func main() {
	random := flag.Int("n", 200, "how many generated inputs there are beside the table and the mutations")
	mutations := flag.Int("mutations", 200, "how many mutations of fields there are at most")
	seed := flag.Uint64("seed", 1, "the seed of the generated inputs")
	flag.Parse()
	out := bufio.NewWriter(os.Stdout)
	err := run(out, flag.Arg(0), corpus.Options{Random: *random, Mutations: *mutations, Seed: *seed})
	if err := errors.Join(err, out.Flush()); err != nil {
		fmt.Fprintln(os.Stderr, "inputs:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, what string, options corpus.Options) error {
	switch what {
	case "clusters":
		return write(out, corpus.Clusters().Inputs(options))
	case "jobs":
		return write(out, corpus.Jobs().Inputs(options))
	case "services":
		return write(out, corpus.Services().Inputs(options))
	case "schedules":
		return write(out, corpus.Schedules().Inputs(options))
	case "rights":
		return write(out, corpus.Rights(options))
	}
	return errors.New("usage: inputs [FLAG...] clusters|jobs|services|schedules|rights")
}

func write[T any](out io.Writer, inputs iter.Seq2[T, error]) error {
	line := json.NewEncoder(out)
	for input, err := range inputs {
		if err != nil {
			return err
		}
		if err := line.Encode(input); err != nil {
			return fmt.Errorf("write an input: %w", err)
		}
	}
	return nil
}
