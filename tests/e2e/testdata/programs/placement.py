from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group
def hosts(count, strategy):
    group = placement_group([{"CPU": 0.5}] * count, strategy=strategy)
    ray.get(group.ready())
    nodes = len(set(placement_group_table(group)["bundles_to_node_id"].values()))
    remove_placement_group(group)
    return nodes
result = [hosts(2, "STRICT_SPREAD"), hosts(2, "STRICT_PACK")]
