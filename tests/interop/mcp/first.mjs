// The first generation of the TypeScript SDK, which most agents embed.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { check } from "./checks.mjs";

const { INTEROP_URL: url, INTEROP_TOKEN: token, INTEROP_COMMAND: command } = process.env;
const info = { name: "interop", version: "1.0.0" };

async function connect(listChanged, transport) {
  const client = new Client(info, { listChanged });
  client.isFirstGeneration = true;
  await client.connect(transport);
  return { client, close: () => client.close() };
}

await check("first generation over HTTP", (listChanged) => {
  const headers = { Authorization: `Bearer ${token}` };
  const requestInit = { headers };
  return connect(listChanged, new StreamableHTTPClientTransport(new URL(url), { requestInit }));
});
await check("first generation over stdio", (listChanged) => {
  const [program, ...args] = JSON.parse(command);
  const env = process.env;
  return connect(listChanged, new StdioClientTransport({ command: program, args, env }));
});
