// Command print writes what is generated about the API below /v1: its reference, one row for each route, and its OpenAPI
// document.
//
// In: the protocol's file, for what its comments say of each call; what protoc made of it, and the CRDs. Out: Markdown or
// JSON on standard output.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/heliostat-dev/heliostat/apiserver/rest"
)

const usage = "usage: print routes PROTOCOL\n       print openapi MADE DIRECTORY-OF-CRDS"

func main() {
	err := errors.New(usage)
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "routes":
		err = printRoutes(os.Stdout, args[1])
	case len(args) == 3 && args[0] == "openapi":
		err = printOpenAPI(os.Stdout, args[1], args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "print:", err)
		os.Exit(1)
	}
}

// printRoutes writes the reference from the protocol's file.
func printRoutes(out io.Writer, protocol string) error {
	file, err := os.Open(protocol)
	if err != nil {
		return fmt.Errorf("read the protocol: %w", err)
	}
	defer file.Close()
	return writeRoutes(out, file)
}

const introduction = `# The API below /v1

Each route of the [server for portals](../server.md), as proto/heliostat/v1 declares it. ` + "`make generate`" + ` writes this page.

- **permission** is what Kubernetes must permit the caller in the object's namespace. KIND is ` + "`computeclusters`, `clusterjobs`, `clusterjobschedules` or `clusterservices`" + `.
  Lists have what the caller can list, namespace by namespace.
- **codes** come beside 400 (what was sent cannot be read), 401 (no good token), 429 (too much at once), 500, 503 and 504, which every route has.
- ` + "`{kind}`" + ` is ` + "`clusters`, `jobs`, `schedules` or `services`" + `.
- gRPC has the same calls by their names. Errors are a ` + "`Problem`" + `: the body in REST, a detail of the status in gRPC.

| route | call | what it does | permission | codes |
|---|---|---|---|---|
`

// writeRoutes writes one row for each route.
func writeRoutes(out io.Writer, protocol io.Reader) error {
	comments, err := readComments(protocol)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, introduction); err != nil {
		return err
	}
	for _, route := range rest.Routes() {
		said, is := comments[route.Call]
		if !is {
			return fmt.Errorf("describe call %s: the protocol's file has no comment on it", route.Call)
		}
		if _, err := fmt.Fprintf(out, "| `%s %s` | %s | %s | %s | %s |\n",
			route.Method, route.Path, route.Call, said, permissionsOf(route), codesOf(route)); err != nil {
			return err
		}
	}
	return nil
}

// readComments returns what the comment above each call says, without the call's own name at its beginning.
func readComments(protocol io.Reader) (map[string]string, error) {
	comments := map[string]string{}
	var above []string
	lines := bufio.NewScanner(protocol)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if text, is := strings.CutPrefix(line, "// "); is {
			above = append(above, text)
			continue
		}
		if call, is := strings.CutPrefix(line, "rpc "); is {
			name, _, _ := strings.Cut(call, "(")
			comments[name] = strings.TrimPrefix(strings.Join(above, " "), name+" ")
		}
		above = nil
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the protocol: %w", err)
	}
	return comments, nil
}

func permissionsOf(route rest.Route) string {
	var all []string
	for _, one := range rest.Permissions(route.Call) {
		resource := one.Resource
		if resource == "" {
			resource = "KIND"
		}
		all = append(all, "`"+one.Verb+" "+resource+"`")
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

func codesOf(route rest.Route) string {
	var all []string
	for _, code := range rest.Codes(route) {
		all = append(all, strconv.Itoa(code))
	}
	return strings.Join(all, " ")
}
