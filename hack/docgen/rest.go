package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/heliostat-dev/heliostat/apiserver/rest"
)

const openingOfRoutes = `# The API below /v1

Each route of the [server for portals](../server.md), as proto/heliostat/v1 declares it. ` + "`make generate`" + ` writes this page.

- **permission** is what Kubernetes must permit the caller in the object's namespace. KIND is ` + "`computeclusters`, `clusterjobs`, `clusterjobschedules` or `clusterservices`" + `.
  Lists have what the caller can list, namespace by namespace.
- **codes** come beside 400 (what was sent cannot be read), 401 (no good token), 429 (too much at once), 500, 503 and 504, which every route has.
- ` + "`{kind}`" + ` is ` + "`clusters`, `jobs`, `schedules` or `services`" + `.
- gRPC has the same calls by their names. Errors are a ` + "`Problem`" + `: the body in REST, a detail of the status in gRPC.

`

// routesPage returns the reference of the API below /v1: a row for each route, with what the protocol's file says of its call.
func routesPage(protocol string, routes []rest.Route) (string, error) {
	declared, err := os.ReadFile(protocol)
	if err != nil {
		return "", fmt.Errorf("read the protocol: %w", err)
	}
	comments := commentsOf(string(declared))
	var rows [][]string
	for _, route := range routes {
		said, is := comments[route.Call]
		if !is {
			return "", fmt.Errorf("describe call %s: the protocol's file has no comment on it", route.Call)
		}
		rows = append(rows, []string{"`" + route.Method + " " + route.Path + "`", route.Call, said, permissionsOf(route), codesOf(route)})
	}
	var text strings.Builder
	text.WriteString(openingOfRoutes)
	writeTable(&text, "| route | call | what it does | permission | codes |", rows)
	return text.String(), nil
}

// commentsOf returns what the comment above each call says, without the call's own name at its beginning.
func commentsOf(protocol string) map[string]string {
	comments := map[string]string{}
	var above []string
	for line := range strings.Lines(protocol) {
		line = strings.TrimSpace(line)
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
	return comments
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
