# Waits until the port of the autoscaler is free, and then says in its place what it likes, for some seconds.
# The result is how often it was followed.
import concurrent.futures, grpc, time
words = [bytes.fromhex(word) for word in [{{.Words}}]]
followed, until = [], time.time() + 60
class Impostor(grpc.GenericRpcHandler):
    def service(self, call):
        if call.method.endswith("/Follow"):
            return grpc.unary_stream_rpc_method_handler(self.follow)
        if call.method.endswith("/Challenge"):
            return grpc.unary_unary_rpc_method_handler(lambda request, context: b"\x0a\x20" + bytes(32))
        return grpc.unary_unary_rpc_method_handler(lambda request, context: b"")
    def follow(self, request, context):
        followed.append(request)
        open("/tmp/followed", "w").close()
        context.send_initial_metadata(())
        yield words[0]
        time.sleep(4)
        while context.is_active():
            for word in words:
                yield word
                time.sleep(0.3)
os.mknod("/tmp/waits")
while time.time() < until:
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), handlers=[Impostor()], options=[("grpc.so_reuseport", 0)])
    try:
        if server.add_insecure_port("[::]:6380"):
            break
    except RuntimeError:
        time.sleep(0.005)
server.start()
while not followed and time.time() < until:
    time.sleep(0.1)
time.sleep(12)
server.stop(0)
result = len(followed)
