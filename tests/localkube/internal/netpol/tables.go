package netpol

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
)

// programs are what this package runs, each with the Debian package that has it.
var programs = []struct{ name, pkg string }{
	{"iptables", "iptables"}, {"iptables-restore", "iptables"}, {"iptables-save", "iptables"}, {"ipset", "ipset"},
	{"ip6tables", "iptables"}, {"ip6tables-restore", "iptables"}, {"ip6tables-save", "iptables"},
}

// filters are the programs that work on the tables of each family.
var filters = map[plan.Family]string{plan.IPv4: "iptables", plan.IPv6: "ip6tables"}

// requirePrograms fails with the command that helps when a program is missing.
func requirePrograms() error {
	for _, p := range programs {
		if _, err := exec.LookPath(p.name); err != nil {
			return fmt.Errorf("find %s, install it with \"apt-get install %s\": %w", p.name, p.pkg, err)
		}
	}
	return nil
}

// apply makes the ruleset the one in force in the network namespace it runs in.
// Sets come before the chains that name them and go after them; packets meet
// either all old or all new chains of their family. What is in the tables is read
// again each time, so that the leftovers of an earlier process or a failed attempt
// go too.
func apply(ctx context.Context, families []plan.Family, rules Ruleset) error {
	if err := feed(ctx, renderSets(rules.Sets), "ipset", "restore"); err != nil {
		return err
	}
	for _, family := range families {
		if err := applyChains(ctx, filters[family], rules.of(family)); err != nil {
			return err
		}
	}
	oldSets, err := staleSets(ctx, rules)
	if err != nil || len(oldSets) == 0 {
		return err
	}
	return feed(ctx, renderDestroy(oldSets), "ipset", "restore")
}

// applyChains puts chains of one family in force, with the program for its tables.
func applyChains(ctx context.Context, filter string, chains []Chain) error {
	stale, err := staleChains(ctx, filter, chains)
	if err != nil {
		return err
	}
	if err := feed(ctx, renderChains(chains, stale), filter+"-restore", "--wait", "5", "--noflush"); err != nil {
		return err
	}
	return enter(ctx, filter)
}

// staleChains are our chains in the kernel beside those.
func staleChains(ctx context.Context, filter string, chains []Chain) ([]string, error) {
	saved, err := run(ctx, "", filter+"-save", "--table", "mangle")
	if err != nil {
		return nil, err
	}
	keep := []string{entryChain}
	for _, chain := range chains {
		keep = append(keep, chain.Name())
	}
	var stale []string
	for line := range strings.Lines(saved) {
		name, isChain := strings.CutPrefix(strings.Fields(line + " -")[0], ":")
		if isChain && strings.HasPrefix(name, chainPrefix) && !slices.Contains(keep, name) {
			stale = append(stale, name)
		}
	}
	return stale, nil
}

// staleSets are our sets in the kernel that the ruleset does not have.
func staleSets(ctx context.Context, rules Ruleset) ([]string, error) {
	listed, err := run(ctx, "", "ipset", "list", "-name")
	if err != nil {
		return nil, err
	}
	var stale []string
	for _, name := range strings.Fields(listed) {
		isKept := slices.ContainsFunc(rules.Sets, func(set Set) bool { return set.Name == name })
		if strings.HasPrefix(name, setPrefix) && !isKept {
			stale = append(stale, name)
		}
	}
	return stale, nil
}

// enter makes FORWARD lead to our entry chain, once.
func enter(ctx context.Context, filter string) error {
	rule := []string{"FORWARD", "--jump", entryChain}
	if _, err := run(ctx, "", filter, append([]string{"--wait", "5", "--table", "mangle", "--check"}, rule...)...); err == nil {
		return nil
	}
	_, err := run(ctx, "", filter, append([]string{"--wait", "5", "--table", "mangle", "--insert"}, rule...)...)
	return err
}

func feed(ctx context.Context, input, name string, args ...string) error {
	_, err := run(ctx, input, name, args...)
	return err
}

// run returns what the program prints; its error ends with what the program
// said about it.
func run(ctx context.Context, input, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var out, complaint bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &complaint
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run %s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(complaint.String()))
	}
	return out.String(), nil
}
