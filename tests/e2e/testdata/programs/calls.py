    def answer(self, **said):
        from ray.serve.generated.serve_pb2 import UserDefinedResponse
        return UserDefinedResponse(greeting=json.dumps({**self.who(), **said}))

    def Method1(self, message):
        return self.answer(said=message.name)

    async def Streaming(self, message):
        count, pace = message.name.split()
        for chunk in range(int(count)):
            yield self.answer(chunk=chunk, of=int(count))
            await asyncio.sleep(float(pace))
