// Command v1beta1 rewrites objects of heliostat.dev/v1alpha1 as heliostat.dev/v1beta1. It goes at the first release.
//
// In: YAML or JSON, from files or from standard input, such as "kubectl get -o yaml" prints it. Out, on standard output: the
// same documents, in which our objects are rewritten and say nothing that the API server or the operator set. On standard
// error: what was left out, and why.
//
// It must never write a part: where one field cannot be rewritten, it names the field and the document, and writes nothing.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "v1beta1:", err)
		os.Exit(1)
	}
}

// run rewrites files, or what in has where there are none.
func run(files []string, in io.Reader, out, notes io.Writer) error {
	text, err := readAll(files, in)
	if err != nil {
		return err
	}
	rewritten, said, err := Rewrite(text)
	if err != nil {
		return fmt.Errorf("nothing was written:\n%w", err)
	}
	for _, line := range said {
		if _, err := fmt.Fprintln(notes, line); err != nil {
			return fmt.Errorf("say what was left out: %w", err)
		}
	}
	if _, err := out.Write(rewritten); err != nil {
		return fmt.Errorf("write the objects: %w", err)
	}
	return nil
}

// readAll returns the texts of files, with a divider between two.
func readAll(files []string, in io.Reader) ([]byte, error) {
	if len(files) == 0 {
		text, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return text, nil
	}
	var all [][]byte
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the objects: %w", err)
		}
		if len(text) > 0 && text[len(text)-1] != '\n' {
			text = append(text, '\n')
		}
		all = append(all, text)
	}
	return bytes.Join(all, []byte("---\n")), nil
}
