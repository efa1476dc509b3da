package headclient

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// maxNodes is how many Ray nodes are asked for their logs. The dashboard lists no more.
const maxNodes = 10_000

var errNoToken = errors.New("this Ray gives its dashboard no token for the agents of its nodes")

// FindLogs returns the files that match a glob in the log directories of all Ray nodes that live, and the IDs of those nodes
// that did not answer. It asks each node by itself.
func (j *Jobs) FindLogs(ctx context.Context, glob string) (found []Log, silent []string, err error) {
	nodes, err := j.liveNodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, node := range nodes {
		files, err := j.files(ctx, node, glob)
		switch {
		case errors.Is(err, errNoNode), errors.Is(err, errSilent), KindOf(err) == Protocol: // others may have what is sought
			silent = append(silent, node.String())
		case err != nil:
			return nil, nil, err
		}
		for _, file := range files {
			found = append(found, Log{Node: node.String(), File: file})
		}
	}
	return found, silent, nil
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

// files returns the names that match a glob in the log directory of a Ray node.
func (j *Jobs) files(ctx context.Context, node NodeID, glob string) ([]string, error) {
	act := "list the logs of Ray node " + node.String()
	var failure string
	answer, err := j.ask(ctx, question{
		act: act, method: http.MethodGet, path: "/api/v0/logs", query: url.Values{"node_id": {node.String()}, "glob": {glob}},
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
