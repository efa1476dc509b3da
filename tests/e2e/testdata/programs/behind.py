# What is behind objects.py and actors.py: it waits for /tmp/left, and then looks at what is left.
ray.wait(list(held.values()), num_returns=len(held), fetch_local=False)
os.mknod("/tmp/there")
while not os.path.exists("/tmp/left"):
    if os.path.exists("/tmp/fetch"):
        ray.get(held["fetched while it drains"])
        os.remove("/tmp/fetch")
    time.sleep(0.05)
os.remove("/tmp/left")
def look(get):
    try:
        get()
        return "there"
    except ray.exceptions.RayError as e:
        return type(e).__name__
asked |= {name: (lambda ref=ref: ray.get(ref, timeout=60)) for name, ref in held.items()}
result = {name: look(get) for name, get in asked.items()}
cleanup()
