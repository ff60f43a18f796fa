// What every SDK must be able to do with a daemon. `connect` gives a connected client and a way to
// close it; `call` and `list` hide how the two generations of the SDK differ.
import assert from "node:assert/strict";

const LONG_MS = 60_000;

export async function check(name, connect) {
  const { client, close } = await connect();
  try {
    const { tools } = await client.listTools();
    const names = tools.map((tool) => tool.name);
    assert.ok(names.includes("job_sleep") && names.includes("ping"), names.join(" "));
    assert.ok(tools.every((tool) => tool.inputSchema.type === "object"));

    const pong = await client.callTool({ name: "ping", arguments: {} });
    assert.equal(pong.structuredContent.type, "pong");
    assert.deepEqual(JSON.parse(pong.content[0].text), pong.structuredContent);

    await progress(client);
    await cancel(client);

    const failed = await client.callTool({ name: "job_sleep", arguments: { milliseconds: "soon" } });
    assert.equal(failed.isError, true);
    await assert.rejects(client.callTool({ name: "nothing", arguments: {} }));
  } finally {
    await close();
  }
  console.log(`ok ${name}`);
}

async function progress(client) {
  const seen = [];
  const slept = await callWith(client, { milliseconds: 400 }, {
    onprogress: ({ progress }) => seen.push(progress),
  });
  assert.equal(slept.structuredContent.milliseconds, 400);
  assert.ok(seen.length > 0, "progress came");
  assert.ok(seen.every((value, place) => place === 0 || value > seen[place - 1]), seen.join(" "));
}

async function cancel(client) {
  const controller = new AbortController();
  const before = await cancelled(client);
  const call = callWith(client, { milliseconds: LONG_MS }, {
    signal: controller.signal,
    onprogress: () => controller.abort(),
  });
  await assert.rejects(call);
  for (const ends = Date.now() + 10_000; (await cancelled(client)) === before; ) {
    assert.ok(Date.now() < ends, "the cancelled call goes on");
  }
}

// The first generation takes a schema between the parameters and the options.
function callWith(client, args, options) {
  const params = { name: "job_sleep", arguments: args };
  return client.callTool.length >= 3 || client.isFirstGeneration
    ? client.callTool(params, undefined, options)
    : client.callTool(params, options);
}

async function cancelled(client) {
  const listed = await client.callTool({ name: "job_list", arguments: {} });
  return listed.structuredContent.by_status.cancelled;
}
