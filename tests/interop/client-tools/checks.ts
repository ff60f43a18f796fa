// Checks a daemon from outside: INTEROP_URL, INTEROP_TOKEN. Prints `ok NAME` or throws.

import assert from "node:assert/strict";

import { Daemon, Line, frames } from "./line.ts";

const daemon = new Daemon(process.env.INTEROP_URL!, process.env.INTEROP_TOKEN!);
const echo = { id: "echo", description: "Gives back what it gets.", parameters: { type: "object" } };

function execute(toolID: string, input: string, signal?: AbortSignal): Promise<Response> {
  const body = `{"toolID":"${toolID}","sessionID":"s","messageID":"m","callID":"c","input":${input}}`;
  return daemon.send("POST", "/client-tools/execute", body, { signal });
}

async function a_registered_tool_is_called_and_its_payload_is_unchanged(): Promise<void> {
  const line = new Line(daemon, "ts-echo");
  const [tool] = await line.register([echo]);
  assert.equal(tool, "client_ts-echo_echo");
  await line.open();
  const input = '{"big":123456789012345678901,"none":null,"text":"häuser \\u0000"}';
  const called = execute(tool, input);
  const request = await line.request();
  assert.ok(request.raw.endsWith(`"input":${input}}`), request.raw);
  assert.equal(request.tool, tool);
  const result = '{"status":"success","title":"t","output":"o","metadata":{"big":98765432109876543210}}';
  const taken = await line.answer(request.requestID, result);
  assert.deepEqual(await taken.json(), { success: true });
  const answer = await called;
  assert.equal(answer.status, 200);
  assert.ok((await answer.text()).includes("98765432109876543210"));
  const again = await line.answer(request.requestID, result);
  assert.equal(again.status, 404);
  assert.equal((await again.json()).error, "Unknown request ID");
  line.hangUp();
}

async function a_client_that_comes_back_within_its_grace_gets_its_call_again(): Promise<void> {
  const line = new Line(daemon, "ts-grace");
  const [tool] = await line.register([echo], 20_000);
  await line.open();
  const called = execute(tool, '{"n":1}');
  const first = await line.request();
  line.hangUp();
  await line.open();
  const second = await line.request();
  assert.equal(second.requestID, first.requestID);
  assert.deepEqual(second.input, { n: 1 });
  await line.answer(second.requestID, { status: "success", title: "", output: "after the reconnect" });
  assert.equal((await (await called).json()).output, "after the reconnect");
  line.hangUp();
}

async function a_caller_that_hangs_up_is_told_to_the_client(): Promise<void> {
  const line = new Line(daemon, "ts-cancel");
  const [tool] = await line.register([echo]);
  await line.open();
  const caller = new AbortController();
  const called = execute(tool, "{}", caller.signal).catch((error: Error) => error.name);
  const request = await line.request();
  caller.abort();
  assert.equal(await called, "AbortError");
  const frame = await line.next();
  assert.equal(frame.event, "tool-cancel");
  assert.equal(JSON.parse(frame.data).requestID, request.requestID);
  assert.equal((await line.answer(request.requestID, { status: "success", title: "", output: "" })).status, 404);
  line.hangUp();
}

async function a_client_that_vanishes_fails_its_call_at_once(): Promise<void> {
  const line = new Line(daemon, "ts-gone");
  const [tool] = await line.register([echo]);
  await line.open();
  const called = execute(tool, "{}");
  await line.request();
  line.hangUp();
  const answer = await called;
  assert.equal(answer.status, 503);
  const { error } = await answer.json();
  assert.equal(error.code, "CLIENT_GONE");
  assert.equal(error.certainty, "may_have_run");
}

async function a_failure_is_a_failure_and_progress_arrives(): Promise<void> {
  const line = new Line(daemon, "ts-fail");
  const [tool] = await line.register([echo]);
  await line.open();
  const headers = { accept: "text/event-stream" };
  const followed = frames(await daemon.send("POST", `/v1/tools/${tool}/call`, {}, { headers }));
  assert.equal((await followed.next()).value!.event, "start");
  const request = await line.request();
  const progress = { requestID: request.requestID, percent: 40, message: "mixing" };
  assert.equal((await daemon.send("POST", "/client-tools/progress", progress)).status, 200);
  const chunk = (await followed.next()).value!;
  assert.equal(chunk.event, "chunk");
  assert.equal(JSON.parse(chunk.data).message, "mixing");
  await line.answer(request.requestID, { status: "error", error: "no ink" });
  const last = (await followed.next()).value!;
  assert.equal(last.event, "error");
  assert.ok(last.data.includes("no ink"), last.data);
  const unknown = await line.answer(request.requestID, { status: "splendid" });
  assert.equal(unknown.status, 400);
  line.hangUp();
}

for (const check of [
  a_registered_tool_is_called_and_its_payload_is_unchanged,
  a_client_that_comes_back_within_its_grace_gets_its_call_again,
  a_caller_that_hangs_up_is_told_to_the_client,
  a_client_that_vanishes_fails_its_call_at_once,
  a_failure_is_a_failure_and_progress_arrives,
]) {
  await check();
  console.log(`ok ${check.name}`);
}
process.exit(0);
