// What every SDK must be able to do with a daemon. `connect` takes a handler for changes of the tool
// list, and returns a connected client and a way to close it.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { Daemon, Line } from "./line.ts";

const LONG_MS = 60_000;
const LIMIT_MS = 10_000;
const daemon = new Daemon(process.env.INTEROP_BASE, process.env.INTEROP_TOKEN);

export async function check(name, connect) {
  const changes = new Changes();
  const { client, close } = await connect({
    tools: { autoRefresh: false, debounceMs: 0, onChanged: () => changes.heard() },
  });
  try {
    const tools = await list(client);
    const names = tools.map((tool) => tool.name);
    assert.ok(names.includes("job_sleep") && names.includes("ping"), names.join(" "));
    assert.ok(tools.every((tool) => tool.inputSchema.type === "object"));

    const pong = await client.callTool({ name: "ping", arguments: {} });
    assert.equal(pong.structuredContent.type, "pong");
    assert.deepEqual(JSON.parse(pong.content[0].text), pong.structuredContent);

    await progress(client);
    await cancel(client);
    await toolOnALine(client, changes);

    const failed = await client.callTool({ name: "job_sleep", arguments: { milliseconds: "soon" } });
    assert.equal(failed.isError, true);
    await assert.rejects(client.callTool({ name: "nothing", arguments: {} }));
  } finally {
    await close();
  }
  console.log(`ok ${name}`);
}

/** How often the client was notified that the list has changed. */
class Changes {
  count = 0;
  waiting = [];

  heard() {
    this.count += 1;
    this.waiting.splice(0).forEach((wake) => wake());
  }

  /** Resolves after more than `before` notifications. */
  async after(before) {
    const limit = AbortSignal.timeout(LIMIT_MS);
    const late = new Promise((_, reject) => {
      limit.onabort = () => reject(new Error("the client was not notified that the list changed"));
    });
    while (this.count <= before) {
      await Promise.race([new Promise((wake) => this.waiting.push(wake)), late]);
    }
    limit.onabort = null;
  }
}

async function list(client) {
  return (await client.listTools()).tools;
}

async function progress(client) {
  const seen = [];
  const slept = await callWith(client, "job_sleep", { milliseconds: 400 }, {
    onprogress: ({ progress }) => seen.push(progress),
  });
  assert.equal(slept.structuredContent.milliseconds, 400);
  assert.ok(seen.length > 0, "progress came");
  assert.ok(seen.every((value, place) => place === 0 || value > seen[place - 1]), seen.join(" "));
}

async function cancel(client) {
  const controller = new AbortController();
  const before = await cancelled(client);
  const call = callWith(client, "job_sleep", { milliseconds: LONG_MS }, {
    signal: controller.signal,
    onprogress: () => controller.abort(),
  });
  await assert.rejects(call);
  for (const ends = Date.now() + LIMIT_MS; (await cancelled(client)) === before; ) {
    assert.ok(Date.now() < ends, "the cancelled call goes on");
  }
}

/** The client is notified of a new tool, calls it, cancels a call, and is notified that it has gone. */
async function toolOnALine(client, changes) {
  const line = new Line(daemon, randomUUID());
  await line.open();
  try {
    const parameters = { type: "object", properties: { x: { type: "integer" } } };
    let before = changes.count;
    const [name] = await line.register([{ id: "echo", description: "Echoes.", parameters }]);
    await changes.after(before);
    const listed = (await list(client)).find((tool) => tool.name === name);
    assert.deepEqual(listed?.inputSchema, parameters);

    await answered(client, line, name);
    await takenBack(client, line, name);
    before = changes.count;
    line.hangUp();
    await changes.after(before);
    assert.ok((await list(client)).every((tool) => tool.name !== name));
  } finally {
    line.hangUp();
  }
}

async function answered(client, line, name) {
  const call = client.callTool({ name, arguments: { x: 7 } });
  const request = await line.request();
  assert.deepEqual(request.input, { x: 7 });
  const result = { status: "success", title: "t", output: "seven", metadata: {} };
  assert.equal((await line.answer(request.requestID, result)).status, 200);
  const called = await call;
  assert.ok(!called.isError && called.content[0].text.includes("seven"), JSON.stringify(called));
}

async function takenBack(client, line, name) {
  const controller = new AbortController();
  const unwanted = callWith(client, name, { x: 8 }, { signal: controller.signal });
  const { requestID } = await line.request();
  controller.abort();
  await assert.rejects(unwanted);
  const frame = await line.next();
  assert.equal(frame.event, "tool-cancel");
  assert.equal(JSON.parse(frame.data).requestID, requestID);
}

// The first generation takes a schema between the parameters and the options.
function callWith(client, name, args, options) {
  const params = { name, arguments: args };
  return client.isFirstGeneration
    ? client.callTool(params, undefined, options)
    : client.callTool(params, options);
}

async function cancelled(client) {
  const listed = await client.callTool({ name: "job_list", arguments: {} });
  return listed.structuredContent.by_status.cancelled;
}
