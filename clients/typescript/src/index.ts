// Client of the API: every operation with its types, and streams of events. No request is sent twice.

import createClient, { type Client } from "openapi-fetch";
import { read, type RingerEvent } from "./events.js";
import type { components, operations, paths } from "./schema.js";

export type { components, operations, paths, RingerEvent };

/** Address and key of an engine. */
export interface RingerOptions {
  baseUrl: string;
  apiKey: string;
  /** What sends requests, in place of the `fetch` of the platform. */
  fetch?: (request: Request) => Promise<Response>;
}

export interface EventOptions {
  /** Ends the stream. */
  signal?: AbortSignal;
}

/** Methods of `openapi-fetch` by path (`GET("/v1/ping")`), and streams of events. */
export interface Ringer extends Client<paths> {
  /** Events of a result, until the engine ends them. */
  resultEvents(resultId: number | string, options?: EventOptions): AsyncGenerator<RingerEvent, void, void>;
  /** Events of all results of a run, until the engine ends them. */
  runEvents(runId: number | string, options?: EventOptions): AsyncGenerator<RingerEvent, void, void>;
}

/** A refused request: HTTP status, and the detail that the engine gives. */
export class ApiError extends Error {
  override readonly name = "ApiError";

  constructor(
    readonly status: number,
    readonly detail: unknown,
    readonly path: string,
  ) {
    super(`${path}: ${status}: ${typeof detail === "string" ? detail : JSON.stringify(detail)}`);
  }
}

/** Returns a client of the engine at an address. */
export function createRinger(options: RingerOptions): Ringer {
  const baseUrl = options.baseUrl.replace(/\/+$/, "");
  const headers = { "X-API-Key": options.apiKey };
  const send = options.fetch ?? ((request: Request) => fetch(request));
  const client = createClient<paths>({ baseUrl, headers, fetch: send });
  async function* events(path: string, { signal }: EventOptions = {}): AsyncGenerator<RingerEvent, void, void> {
    const request = { headers: { ...headers, Accept: "text/event-stream" }, ...(signal && { signal }) };
    const response = await send(new Request(baseUrl + path, request));
    if (!response.ok || response.body === null) throw await refusal(response);
    yield* read(response.body);
  }
  return Object.assign(client, {
    resultEvents: (id: number | string, more?: EventOptions) =>
      events(`/v1/simulation-result/${encodeURIComponent(id)}/events`, more),
    runEvents: (id: number | string, more?: EventOptions) =>
      events(`/v1/simulation-run/${encodeURIComponent(id)}/events`, more),
  });
}

/** Returns the data of an answer: `await data(ringer.GET("/v1/all-agents"))`. Throws `ApiError` where it is refused. */
export async function data<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const answer = await call;
  if (!answer.response.ok) throw new ApiError(answer.response.status, detail(answer.error), path(answer.response));
  return answer.data as T;
}

async function refusal(response: Response): Promise<ApiError> {
  const text = await response.text();
  let body: unknown = text;
  try {
    body = JSON.parse(text);
  } catch {
    // It is told as the text that it is.
  }
  return new ApiError(response.status, detail(body), path(response));
}

function detail(body: unknown): unknown {
  return typeof body === "object" && body !== null && "detail" in body ? body.detail : body;
}

function path(response: Response): string {
  return response.url === "" ? "" : new URL(response.url).pathname;
}
