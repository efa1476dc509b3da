package controlstore

import (
	"context"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// dummy is a key outside of any prefix that Ray deletes when it starts, to learn whether it
// speaks to a primary.
const dummy = "DUMMY"

// rayCommands are those that Ray 2.52 to 2.60 sends (redis_store_client.cc and
// redis_context.cc), as ACL rules name them. AUTH needs no permission.
func rayCommands() []string {
	return []string{"ping", "info", "del", "hset", "hsetnx", "hget", "hmget", "hexists", "hdel", "hscan", "incrby"}
}

// ownCommands are those by which the operator counts and removes keys, besides Ray's.
func ownCommands() []string { return []string{"scan", "unlink"} }

// tables are the hashes that Ray keeps.
func tables() []string {
	return []string{"KV", "NODE", "JOB", "ACTOR", "ACTOR_TASK_SPEC", "PLACEMENT_GROUP", "WORKERS"}
}

// probe does what Ray will do, on a key of ours, and leaves nothing behind. Ray's tables are
// only looked at: a right, or a shard, could be missing for some of them.
func (p prefix) probe(ctx context.Context) error {
	key := scratchKey(p.namespace)
	commands := [][]any{
		{"PING"},
		{"HSET", key, "a", "1"},
		{"HSETNX", key, "b", "1"},
		{"HGET", key, "a"},
		{"HMGET", key, "a", "b"},
		{"HEXISTS", key, "a"},
		{"HSCAN", key, "0", "COUNT", "10"},
		{"HDEL", key, "a"},
		{"DEL", key},
		{"INCRBY", key, "1"},
		{"UNLINK", key},
		// One that needs the same rights to the key as DEL, and spares what another has there.
		{"HDEL", dummy, "heliostat-probe"},
		{"SCAN", "0", "MATCH", pattern(p.namespace), "COUNT", "1"},
	}
	for _, table := range tables() {
		commands = append(commands, []any{"HEXISTS", naming.StorePrefix(p.namespace) + table, "heliostat-probe"})
	}
	replies, err := p.ask(ctx, append(commands, []any{"CLUSTER", "INFO"})...)
	if err != nil {
		return err
	}
	if err := p.permitted(replies[:len(commands)]); err != nil {
		return err
	}
	// The tables may all lie in one of several shards by chance. Who may not ask, or has no
	// cluster, goes on.
	if about, err := replies[len(commands)].Text(); err == nil {
		if size := field(about, "cluster_size"); size != "" && strings.TrimLeft(size, "0123456789") == "" && size != "1" {
			return problem(reason.StoreUnsupported.Of(p.name(), "it is a Redis Cluster of "+size+" shards"))
		}
	}
	return nil
}
