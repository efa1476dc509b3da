package route

import "strings"

// effects are paths of Ray's dashboard, from 2.52 to 2.60, whose GET runs code, ends something or holds the head up. One
// that ends with a slash stands for all below it: what a later Ray adds there is of the same sort.
var effects = []string{
	"/worker/",         // traceback, cpu_profile, gpu_profile, jax_profile: py-spy and others attach to a process
	"/task/",           // traceback, cpu_profile
	"/memory_profile",  // memray attaches to a process
	"/api/actors/kill", // ends an actor; gone since 2.53
	"/logical/kill_actor",
	"/api/v0/delay/", // waits for as long as the path says
	"/test/",         // dump and others of Ray's own tests
}

// hasEffect reports whether a GET of a path does more than read. HEAD and the opening of a WebSocket run the same code
// there. The path was checked, so that it has no escape that one of these would match.
func hasEffect(path string) bool {
	path = strings.TrimSuffix(path, "/") + "/"
	for _, one := range effects {
		if strings.HasPrefix(path, strings.TrimSuffix(one, "/")+"/") {
			return true
		}
	}
	return false
}
