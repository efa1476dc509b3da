package signin

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/yaml"
)

// Link leads from an object on the page to another program, such as Grafana or a store of logs.
type Link struct {
	// Name is what users see.
	Name string `json:"name"`
	// Kind is that of the objects which have the link; empty is all.
	Kind string `json:"kind,omitempty"`
	// URLTemplate is an address with variables, such as ${name}. The page fills them in, escaped.
	URLTemplate string `json:"urlTemplate"`
}

// maxLinks bounds what is shown beside an object.
const maxLinks = 20

var (
	kinds = []string{"", "ComputeCluster", "ClusterJob", "ClusterJobSchedule", "ClusterService"}
	// variables are those of links. start and end are milliseconds since 1970, as Grafana has them.
	variables = []string{"namespace", "name", "uid", "start", "end"}
	variable  = regexp.MustCompile(`\$\{([^}]*)\}`)
)

// ParseLinks reads and checks the links of an administrator, a list in YAML.
func ParseLinks(text []byte) ([]Link, error) {
	var all []Link
	if err := yaml.Unmarshal(text, yaml.Settings, &all); err != nil {
		return nil, fmt.Errorf("read the links: %w", err)
	}
	if len(all) > maxLinks {
		return nil, fmt.Errorf("read the links: there are %d: write at most %d", len(all), maxLinks)
	}
	for at, one := range all {
		if err := one.check(); err != nil {
			return nil, fmt.Errorf("read the links: [%d].%w", at, err)
		}
	}
	return all, nil
}

func (l Link) check() error {
	if strings.TrimSpace(l.Name) == "" {
		return errors.New("name: it is empty: write what users see")
	}
	if !slices.Contains(kinds, l.Kind) {
		return fmt.Errorf("kind: unknown value %q; use one of %s, or leave it out for all", l.Kind, strings.Join(kinds[1:], ", "))
	}
	for _, found := range variable.FindAllStringSubmatch(l.URLTemplate, -1) {
		if !slices.Contains(variables, found[1]) {
			return fmt.Errorf("urlTemplate: ${%s} is no variable: use ${%s}", found[1], strings.Join(variables, "}, ${"))
		}
	}
	filled := variable.ReplaceAllString(l.URLTemplate, "x")
	read, err := url.Parse(filled)
	isAddress := err == nil && (read.Scheme == "https" || read.Scheme == "http") && read.Host != "" && read.User == nil
	if !isAddress || strings.Contains(filled, "${") {
		return fmt.Errorf("urlTemplate: %q is no address: write https://HOST/PATH with variables such as ${name}",
			l.URLTemplate)
	}
	// A user's name of an object must not choose the host that others are led to.
	if before, _, _ := strings.Cut(strings.SplitN(l.URLTemplate, "//", 2)[1], "/"); variable.MatchString(before) {
		return fmt.Errorf("urlTemplate: %q has a variable in its host: write the host out", l.URLTemplate)
	}
	return nil
}
