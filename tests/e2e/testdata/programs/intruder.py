# Asks Ray for what nobody has, then follows the autoscaler and gives it orders whenever it can, and in the
# end floods its port. The result is how often it was obeyed.
import grpc, hmac, threading, time
from ray.autoscaler.sdk import request_resources
claim, orders = bytes.fromhex({{printf "%q" .Claim}}), bytes.fromhex({{printf "%q" .Orders}})
token = open("/var/run/secrets/heliostat.dev/token/auth_token").read()
until = time.time() + 10
def flood():
    time.sleep(6)
    while time.time() < until:
        try:
            with socket.create_connection(("127.0.0.1", 6380), timeout=1) as one:
                for _ in range(64):
                    one.sendall(os.urandom(1 << 16))
        except OSError:
            pass
        time.sleep(0.01)
def demand():
    for bundles in [[{"CPU": 1}] * 20000, [{"CPU": 1e300, "GPU": float("inf")}], [{"CPU": -1}, {"x" * 10000: 1}], [{"CPU": float("nan")}], [{"CPU": 1}] * 100]:
        try:
            request_resources(bundles=bundles)
        except Exception as error:
            print(type(error).__name__, str(error)[:200])
        time.sleep(1)
    time.sleep(max(0, until - time.time() - 1))
    request_resources(bundles=[])
aside = [threading.Thread(target=one) for one in (flood, flood, demand)]
for one in aside:
    one.start()
time.sleep(2)
service, plain = "/heliostat.scalelink.v1.ScaleService/", lambda data: data
result = 0
while time.time() < until:
    with grpc.insecure_channel("127.0.0.1:6380", options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        try:
            nonce = channel.unary_unary(service + "Challenge", plain, plain)(b"", timeout=1)[2:]
            head = claim[2:] # behind the field's tag and length
            proof = hmac.digest(token.encode(), b"heliostat.scalelink.v1.Follow\0" + nonce + head, "sha256")
            words = channel.unary_stream(service + "Follow", plain, plain)(claim + b"\x12\x20" + proof, timeout=1)
            words.initial_metadata()
            channel.unary_unary(service + "Order", plain, plain)(orders, timeout=1)
            result += 1
            for word in words:
                pass
        except grpc.RpcError as error:
            print(error.code(), error.details())
    time.sleep(0.2)
for one in aside:
    one.join()
