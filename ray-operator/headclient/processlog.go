package headclient

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxNodes is how many Ray nodes are asked for their logs. The dashboard lists no more.
const maxNodes = 10_000

// A dashboard waits so many seconds for the first Ray node that does not answer: less than DefaultTimeout, so that it can answer
// for the node. It waits less for others, and after so many of them the rest is not asked.
const (
	silentAfter     = 3
	nextSilentAfter = 1
	maxSilent       = 10
)

// Search is what was found in the log directories of Ray nodes.
type Search struct {
	Logs []Log
	// Silent is how many Ray nodes did not answer, and Unasked how many were not asked because of that.
	Silent, Unasked int
}

var errNoToken = errors.New("this Ray gives its dashboard no token for the agents of its nodes")

// FindLogs returns the files that match a glob in the log directories of the Ray nodes that live. It asks each node by itself.
func (j *Jobs) FindLogs(ctx context.Context, glob string) (found Search, err error) {
	nodes, err := j.liveNodes(ctx)
	if err != nil {
		return Search{}, err
	}
	waited := 0
	for i, node := range nodes {
		within := silentAfter
		if waited > 0 {
			within = nextSilentAfter
		}
		files, err := j.files(ctx, node, glob, within)
		switch {
		case errors.Is(err, errSilent):
			waited++
			found.Silent++
		case errors.Is(err, errNoNode), KindOf(err) == Protocol: // others may have what is sought
			found.Silent++
		case err != nil:
			return Search{}, err
		}
		for _, file := range files {
			found.Logs = append(found.Logs, Log{Node: node.String(), File: file})
		}
		if waited == maxSilent {
			found.Unasked = len(nodes) - i - 1
			break
		}
	}
	return found, nil
}

// LogFile passes a file of the log directory of a Ray node on, as ReplicaLog does.
func (j *Jobs) LogFile(ctx context.Context, log Log, offset int64, into io.Writer) (int64, error) {
	return j.Serve().ReplicaLog(ctx, log, offset, into)
}

// liveNodes returns the IDs of the Ray nodes that live.
func (j *Jobs) liveNodes(ctx context.Context) ([]NodeID, error) {
	const act = "list the Ray nodes"
	answer, err := j.ask(ctx, question{act: act, method: http.MethodGet, path: "/api/v0/nodes", limit: maxList, patience: listPatience,
		query: url.Values{"limit": {"10000"}, "filter_keys": {"state"}, "filter_predicates": {"="}, "filter_values": {"ALIVE"}}})
	if err != nil {
		return nil, err
	}
	var said struct {
		Data struct {
			Result struct {
				Nodes []struct {
					ID string `json:"node_id"`
				} `json:"result"`
			} `json:"result"`
		} `json:"data"`
	}
	if jsonParts(answer.body) > maxParts {
		return nil, j.fail(Protocol, act, errTooMany)
	}
	if err := decode(answer.body, &said); err != nil || said.Data.Result.Nodes == nil || len(said.Data.Result.Nodes) > maxNodes {
		return nil, j.fail(Protocol, act, errors.New("the answer is not the JSON that Ray gives"))
	}
	var nodes []NodeID
	for _, one := range said.Data.Result.Nodes {
		id, err := ParseNodeID(one.ID)
		if err != nil {
			return nil, j.fail(Protocol, act, err)
		}
		nodes = append(nodes, id)
	}
	return nodes, nil
}

// files returns the names that match a glob in the log directory of a Ray node, which has so many seconds to answer.
func (j *Jobs) files(ctx context.Context, node NodeID, glob string, within int) ([]string, error) {
	act := "list the logs of Ray node " + node.String()
	var failure string
	answer, err := j.ask(ctx, question{
		act: act, method: http.MethodGet, path: "/api/v0/logs",
		query: url.Values{"node_id": {node.String()}, "glob": {glob}, "timeout": {strconv.Itoa(within)}},
		judge: func(status int, words string) (Kind, string) {
			if status == http.StatusInternalServerError {
				failure = words
			}
			return judge(status, words)
		},
	})
	switch kind, why := lost(failure); {
	case why != nil:
		return nil, j.fail(kind, act, why)
	case strings.Contains(failure, "StatusCode.UNAUTHENTICATED"):
		return nil, j.fail(Unsupported, act, errNoToken)
	case err != nil:
		return nil, err
	}
	var said struct {
		Data struct {
			Files map[string][]string `json:"result"`
		} `json:"data"`
	}
	if err := decode(answer.body, &said); err != nil || said.Data.Files == nil {
		return nil, j.fail(Protocol, act, errors.New("the answer is not the JSON that Ray gives"))
	}
	var files []string
	for _, group := range slices.Sorted(maps.Keys(said.Data.Files)) {
		for _, file := range said.Data.Files[group] {
			if sendableFile(file) {
				files = append(files, file)
			}
		}
	}
	return files, nil
}
