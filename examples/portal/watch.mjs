// Shows the objects that the caller can list, and each change of one, until it is ended.
//
// usage: SERVER=https://HOST TOKEN=… NODE_EXTRA_CA_CERTS=ca.crt node watch.mjs [QUERY],
// such as "kinds=jobs&namespaces=team-a".

const server = process.env.SERVER;
const query = new URLSearchParams(process.argv[2] ?? "");
const lines = new Map(); // by kind, namespace and name
let since = ""; // the ID of the last event

// events yields the server-sent events of an answer.
async function* events(body) {
  let text = "";
  for await (const part of body.pipeThrough(new TextDecoderStream())) {
    text += part;
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const event = {};
      for (const line of text.slice(0, end).split("\n")) {
        const [, name, value] = /^([a-z]*): ?(.*)$/.exec(line) ?? [];
        if (name) event[name] = value; // others are comments, which keep the connection open
      }
      if (event.event) yield event;
    }
  }
}

function show(change, line) {
  const { kind, namespace, name, phase, code, remedy } = line;
  console.log(change, `${kind}/${namespace}/${name}`, phase ?? "", code ?? "", remedy ?? "");
}

async function watch() {
  const headers = { Authorization: `Bearer ${process.env.TOKEN}` };
  if (since) headers["Last-Event-ID"] = since;
  const answer = await fetch(`${server}/v1/objects/watch?${query}`, { headers });
  if (!answer.ok) {
    const problem = await answer.json();
    console.error(`${problem.status} ${problem.reason}: ${problem.detail}. ${problem.remedy ?? ""}`);
    if (answer.status !== 429 && answer.status !== 503) process.exit(1);
    return;
  }
  for await (const event of events(answer.body)) {
    const { line, detail } = JSON.parse(event.data);
    const key = line && `${line.kind}/${line.namespace}/${line.name}`;
    if (event.event === "sync") lines.clear(); // a whole state follows
    if (event.event === "put") lines.set(key, line), show("put", line);
    if (event.event === "del") lines.delete(key), show("del", line);
    if (event.event === "ready") console.log("ready:", lines.size, "objects");
    if (event.event === "stale" || event.event === "bye") console.log(`${event.event}: ${detail}`);
    if (event.id) since = event.id;
  }
}

for (;;) {
  await watch().catch((error) => console.error(`cannot watch: ${error.cause?.message ?? error.message}`));
  await new Promise((done) => setTimeout(done, 1000));
}
