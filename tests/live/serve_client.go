package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/internal/loadgen"
)

// Networks gives the file of the network namespace of each node of the local Kubernetes that
// LOCALKUBE and LOCALKUBE_NAME name, by the node's name.
func Networks(ctx context.Context) (map[string]string, error) {
	program, name := os.Getenv("LOCALKUBE"), os.Getenv("LOCALKUBE_NAME")
	if program == "" {
		return nil, errors.New("find the nodes' networks: LOCALKUBE and LOCALKUBE_NAME name no local Kubernetes: run make e2e, or leave out what has the label localkube")
	}
	out, err := exec.CommandContext(ctx, program, "status", "--name", name, "-o", "json").Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for the nodes' networks: %w", program, err)
	}
	var status struct {
		Nodes []struct{ Name, Netns string }
	}
	if err := json.Unmarshal(out, &status); err != nil {
		return nil, fmt.Errorf("read what %s says of the nodes: %w", program, err)
	}
	networks := map[string]string{}
	for _, node := range status.Nodes {
		networks[node.Name] = node.Netns
	}
	return networks, nil
}

// BuildClient builds tests/internal/loadgen/cmd of the repository at root into a directory, and gives the
// program's path.
func BuildClient(ctx context.Context, root, directory string) (string, error) {
	program := directory + "/load"
	out, err := exec.CommandContext(ctx, "go", "build", "-C", root, "-o", program, "./tests/internal/loadgen/cmd").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the client: %w: %s", err, out)
	}
	return program, nil
}

// Client is a program that sends requests from a node, past its kube-proxy, as a pod does.
type Client struct {
	Node    string
	command *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
	said    *strings.Builder
}

// Command gives a process that runs a program on a node.
type Command func(program string, args ...string) *exec.Cmd

// Inside gives processes that are in a node's network. They need root.
func Inside(network string) Command {
	return func(program string, args ...string) *exec.Cmd {
		return exec.Command("nsenter", append([]string{"--net=" + network, program}, args...)...)
	}
}

// StartClient starts the program of tests/internal/loadgen/cmd. It sends until End; it ends by itself when
// the process of the tests does.
func StartClient(node string, run Command, program string, args ...string) (*Client, error) {
	c := &Client{Node: node, command: run(program, args...), said: &strings.Builder{}}
	c.command.Stderr = c.said
	in, err := c.command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start a client on %s: %w", node, err)
	}
	out, err := c.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a client on %s: %w", node, err)
	}
	if err := c.command.Start(); err != nil {
		return nil, fmt.Errorf("start a client on %s: %w", node, err)
	}
	c.in, c.out = in, json.NewDecoder(out)
	return c, nil
}

// Phase begins a phase, and returns when what is due counts to it.
func (c *Client) Phase(name string) error {
	var began loadgen.Began
	if err := c.tell("phase "+name, &began); err != nil {
		return err
	}
	if began.Phase != name {
		return fmt.Errorf("begin phase %q on %s: it began %q", name, c.Node, began.Phase)
	}
	return nil
}

// Report is what became of all requests so far.
func (c *Client) Report() (loadgen.Report, error) {
	var report loadgen.Report
	err := c.tell("report", &report)
	return report, err
}

// End has no more requests sent, waits until those that were sent are answered or have failed,
// and gives what became of all.
func (c *Client) End() (loadgen.Report, error) {
	var report loadgen.Report
	told := c.tell("end", &report)
	ended := errors.Join(c.in.Close(), c.command.Wait())
	if told == nil && ended != nil {
		told = fmt.Errorf("end the client on %s: %w: %s", c.Node, ended, c.said)
	}
	return report, told
}

// tell sends a line and reads the answer.
func (c *Client) tell(line string, into any) error {
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		return fmt.Errorf("tell the client on %s %q: %w", c.Node, line, err)
	}
	if err := c.out.Decode(into); err != nil {
		return fmt.Errorf("read what the client on %s says to %q: %w", c.Node, line, err)
	}
	return nil
}
