# What a user types beside a suspended cluster.
exec 2>&1
ray job list --address {{.Address}}
ray job submit --address {{.Address}} --submission-id woken -- echo from beside
ray job submit --address {{.Address}} --no-wait --submission-id endless -- sleep 1000
ray job stop --address {{.Address}} endless
ray job logs --address {{.Address}} woken | sed 's/^/logs: /'
