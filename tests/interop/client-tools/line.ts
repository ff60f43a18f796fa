// An HTTP program that offers tools: `fetch` and a reader of server-sent events are all it takes.

export type Input = Record<string, unknown>;
export type Request = { requestID: string; tool: string; input: Input; raw: string };
export type Frame = { event: string; data: string };

export class Daemon {
  readonly url: string;
  readonly token: string;

  constructor(url: string, token: string) {
    this.url = url;
    this.token = token;
  }

  send(method: string, path: string, body?: unknown, options: RequestInit = {}): Promise<Response> {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const headers = {
      authorization: `Bearer ${this.token}`,
      "content-type": "application/json",
      ...(options.headers as Record<string, string> | undefined),
    };
    return fetch(this.url + path, { ...options, method, headers, body: body === undefined ? undefined : text });
  }
}

/** The frames of a stream, as they come. */
export async function* frames(response: Response): AsyncGenerator<Frame> {
  if (!response.ok || response.body === null) throw new Error(`no stream: ${response.status}`);
  let rest = "";
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    rest += piece;
    for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
      const frame: Frame = { event: "message", data: "" };
      for (const line of rest.slice(0, end).split("\n")) {
        if (line.startsWith("event: ")) frame.event = line.slice(7);
        if (line.startsWith("data: ")) frame.data += line.slice(6);
      }
      rest = rest.slice(end + 2);
      yield frame;
    }
  }
}

/** A line: the tools of one client, and the stream of their calls. */
export class Line {
  readonly daemon: Daemon;
  readonly clientID: string;
  private closing = new AbortController();
  private stream: AsyncGenerator<Frame> | undefined;

  constructor(daemon: Daemon, clientID: string) {
    this.daemon = daemon;
    this.clientID = clientID;
  }

  async register(tools: { id: string; description: string; parameters: object }[], graceMs?: number): Promise<string[]> {
    const body = { clientID: this.clientID, tools, graceMs };
    const answer = await this.daemon.send("POST", "/client-tools/register", body);
    if (!answer.ok) throw new Error(`not registered: ${answer.status} ${await answer.text()}`);
    return (await answer.json()).registered;
  }

  async open(): Promise<void> {
    this.closing = new AbortController();
    const path = `/client-tools/pending/${encodeURIComponent(this.clientID)}`;
    const response = await this.daemon.send("GET", path, undefined, { signal: this.closing.signal });
    this.stream = frames(response);
  }

  /** The next frame that is not a ping. */
  async next(): Promise<Frame> {
    for (;;) {
      const { value, done } = await this.stream!.next();
      if (done) throw new Error("the stream ended");
      if (value.event !== "ping") return value;
    }
  }

  async request(): Promise<Request> {
    const frame = await this.next();
    if (frame.event !== "tool-request") throw new Error(`not a request: ${JSON.stringify(frame)}`);
    return { ...JSON.parse(frame.data), raw: frame.data };
  }

  answer(requestID: string, result: object | string): Promise<Response> {
    const text = typeof result === "string" ? result : JSON.stringify(result);
    return this.daemon.send("POST", "/client-tools/result", `{"requestID":${JSON.stringify(requestID)},"result":${text}}`);
  }

  /** Hangs up like a closed page. */
  hangUp(): void {
    this.closing.abort();
  }
}
