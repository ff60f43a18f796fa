// The second generation of the TypeScript SDK, in both eras.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import assert from "node:assert/strict";
import { check } from "./checks.mjs";

const { INTEROP_URL: url, INTEROP_TOKEN: token, INTEROP_COMMAND: command } = process.env;
const info = { name: "interop", version: "1.0.0" };

const ERAS = [
  ["legacy", {}, "2025-11-25"],
  ["modern", { versionNegotiation: { mode: "auto" } }, "2026-07-28"],
];

async function connect(options, version, transport) {
  const client = new Client(info, options);
  await client.connect(transport);
  assert.equal(client.getNegotiatedProtocolVersion?.() ?? version, version);
  return { client, close: () => client.close() };
}

for (const [era, options, version] of ERAS) {
  await check(`second generation over HTTP, ${era}`, (listChanged) => {
    const headers = { Authorization: `Bearer ${token}` };
    const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
    return connect({ ...options, listChanged }, version, transport);
  });
  await check(`second generation over stdio, ${era}`, (listChanged) => {
    const [program, ...args] = JSON.parse(command);
    const transport = new StdioClientTransport({ command: program, args, env: process.env });
    return connect({ ...options, listChanged }, version, transport);
  });
}
