// Command rights compares what an account of ours may do with what it does.
//
// In: an account as NAMESPACE/NAME, audit logs of the API servers that tests ran on, and the chart as helm renders it.
// Out: the rights that were used, to be kept when the API server is gone; then every right
// that is used and not granted, or granted and never used. It only reads, and must see
// the logs of a whole run: a part of it does not need all that the whole needs. Of a part, missing
// prints the rights that are used and not granted.
//
//	rights used ACCOUNT AUDIT_LOG > NOTES
//	helm template heliostat CHART --namespace heliostat-system | rights compare ACCOUNT NOTES...
//	helm template heliostat CHART --namespace heliostat-system | rights missing ACCOUNT NOTES...
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rights:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	switch {
	case len(args) == 3 && args[0] == "used":
		return note(args[1], args[2], out)
	case len(args) > 2 && args[0] == "compare":
		return judge(args[1], args[2:], in, out, compare)
	case len(args) > 2 && args[0] == "missing":
		return judge(args[1], args[2:], in, out, missing)
	default:
		return errors.New("usage: rights used ACCOUNT AUDIT_LOG | rights compare ACCOUNT NOTES... < MANIFESTS, or missing for compare")
	}
}

// note prints the rights of an account that an audit log shows.
func note(account, path string, out io.Writer) error {
	user := userOf(account)
	log, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open the audit log: %w", err)
	}
	defer func() { _ = log.Close() }() // it was only read
	found, err := used(log, user)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("find what %s did: the audit log %s has no request of it", user, path)
	}
	_, err = fmt.Fprintln(out, strings.Join(found.sorted(), "\n"))
	return err
}

// judge compares notes about an account with manifests.
func judge(account string, paths []string, in io.Reader, out io.Writer, differ comparison) error {
	manifests, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read the manifests: %w", err)
	}
	may, err := granted(string(manifests), account)
	if err != nil {
		return err
	}
	did := rights{}
	for _, path := range paths {
		notes, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("open the notes: %w", err)
		}
		err = did.read(notes)
		_ = notes.Close() // it was only read
		if err != nil {
			return err
		}
	}
	if problems := differ(may, did, unasked[account]); len(problems) > 0 {
		return fmt.Errorf("%d rights differ:\n%s", len(problems), strings.Join(problems, "\n"))
	}
	_, err = fmt.Fprintf(out, "%d rights are granted, and all that are used: %s\n", len(may), strings.Join(did.sorted(), ", "))
	return err
}
