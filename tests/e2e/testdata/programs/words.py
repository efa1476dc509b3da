import getpass, json, os, ray, socket, sys
ray.init()
names = ["LITERAL", "GIVEN", "HELIOSTAT_JOB_NAME", "HELIOSTAT_JOB_ATTEMPT"]
def of():
    os.makedirs(os.path.expanduser("~/ray_results"), exist_ok=True)
    return {"USER OF": getpass.getuser(), **{name: os.environ.get(name) for name in names}}
place, task = ray.get(ray.remote(lambda: (socket.gethostname(), of())).remote())
json.dump({"Words": sys.argv[1:], "Driver": of(), "Task": task, "Place": place}, open("/ledger/words", "w"))
print("said at the end")
