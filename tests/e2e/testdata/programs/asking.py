# Asks the actors a numbered question as soon as there is a head that knows them, and tells when the first one had
# answered. It is a driver of its own. The head of a name that it is given does not count: a pod that was deleted by
# force goes on for about a second, and answers.
import json, os, ray, socket, sys, time
host, port = os.environ["RAY_ADDRESS"].rsplit(":", 1)
said, until = None, time.time() + 150
while time.time() < until:
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
        ray.init(log_to_driver=False)
        heads = [node["NodeID"] for node in ray.nodes() if node["Alive"] and "node:__internal_head__" in node["Resources"]]
        if set(heads) <= set(sys.argv[2].split(",")):
            raise RuntimeError("there is no other head")
        actors = {name: ray.get_actor(name, namespace="steady") for name in sys.argv[3:]}
        counts, at = {}, None
        for name, actor in actors.items():
            counts[name] = ray.get(actor.next.remote(sys.argv[1]), timeout=30)
            at = at or time.time()
        print("ANSWER " + json.dumps({"At": at, "Counts": counts, "Heads": heads}))
        break
    except Exception as error:
        said = error
        ray.shutdown()
        time.sleep(0.05)
else:
    sys.exit(repr(said))
