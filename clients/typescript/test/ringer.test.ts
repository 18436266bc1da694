// Client and engine: an operation, refusals, a stream of events, and how a run ends a test.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { ApiError, createRinger, data, type RingerEvent } from "ringer-client";
import { judge, NotTested, runSuite, ScenarioFailed, startEngine, type Engine, type Run } from "ringer-client/node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { read } from "../src/events.js";

async function refused(call: Promise<unknown>): Promise<unknown> {
  return call.then(() => expect.unreachable("it was not refused"), (error: unknown) => error);
}

async function all(events: AsyncIterable<RingerEvent>): Promise<RingerEvent[]> {
  const found = [];
  for await (const event of events) found.push(event);
  return found;
}

describe("an engine", () => {
  let engine: Engine;
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "ringer-"));
    engine = await startEngine();
  });

  afterAll(async () => {
    await engine?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test("is called by its operations", async () => {
    const ringer = engine.client();
    expect((await data(ringer.GET("/v1/ping"))).message).toBe("pong");
    const { agent_id } = await data(ringer.POST("/v1/add-agent", { body: { name: "Desk" } }));
    const read = await data(ringer.GET("/v1/agents/{agent_id}", { params: { path: { agent_id } } }));
    expect([read.name, read.type]).toEqual(["Desk", "INBOUND"]);
  });

  test("tells status and detail of what it refuses", async () => {
    const ringer = engine.client();
    const empty = await refused(data(ringer.POST("/v1/add-agent", { body: { name: "" } })));
    expect(empty).toBeInstanceOf(ApiError);
    expect(empty).toMatchObject({ status: 422, detail: [{ loc: ["body", "name"] }] });
    const stranger = createRinger({ baseUrl: engine.baseUrl, apiKey: "not-a-key-of-this-engine" });
    const wrong = await refused(data(stranger.GET("/v1/all-agents")));
    expect(wrong).toMatchObject({ name: "ApiError", status: 401, path: "/v1/all-agents", detail: expect.stringMatching(/key/i) });
    expect(String(wrong)).not.toContain("not-a-key");
    expect(await refused(all(stranger.resultEvents(1)))).toMatchObject({ status: 401 });
  });

  test("streams the events of a result and of its run", async () => {
    const suite = process.env["RINGER_TEST_SUITE"]!;
    const run = await runSuite(suite, { engine, spawn: true, filter: "answers", out: join(folder, "results") });
    judge(run);
    const id = run.scenarios[0]!.calls[0]!.resultId;
    const events = await all(engine.client().resultEvents(id));
    expect(events.length).toBeGreaterThan(2);
    const { simulation_result: result } = await data(engine.client().GET("/v1/retrieve-simulation-result/{simulation_result_id}", {
      params: { path: { simulation_result_id: Number(id) } },
    }));
    expect(result.verdict?.word).toBe("passed");
    const ofRun = engine.client().runEvents(result.simulation_run_id!);
    expect((await ofRun.next()).value).toMatchObject({ data: expect.anything() });
    await ofRun.return();
  });

  test("does not show its key", () => {
    expect(inspect(engine) + JSON.stringify(engine)).not.toContain(engine.apiKey);
  });
});

test("runs end tests by their verdicts", async () => {
  const suite = process.env["RINGER_TEST_SUITE"]!;
  const folder = await mkdtemp(join(tmpdir(), "ringer-"));
  try {
    const run = await runSuite(suite, { out: folder });
    expect(run.scenarios.map((one) => [one.name, one.verdict])).toEqual([
      ["answers", "passed"], ["speaks French", "failed"], ["says no please", "failed"], ["is polite", "unknown"],
    ]);
    expect(run.scenarios[1]!.calls.map((call) => call.seed)).toEqual([1, 2]);
    expect(() => judge(run)).toThrow(ScenarioFailed);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  const notes: (string | undefined)[] = [];
  const ended = (exitCode: number, verdict: string): Run =>
    ({ exitCode, report: "report.html", scenarios: [{ file: "a", name: "keys", verdict, reason: "why", calls: [] }] });
  judge(ended(3, "unknown"), { skip: (note) => notes.push(note) });
  expect(notes).toEqual(["keys: unknown: why\nreport: report.html"]);
  expect(() => judge(ended(3, "unknown"))).toThrow(NotTested);
  expect(() => judge(ended(4, "unreachable"), { skip: (note) => notes.push(note) })).toThrow(NotTested);
  expect(await refused(runSuite("there-is-no-such-file.yaml"))).toBeInstanceOf(NotTested);
  expect(String(await refused(startEngine({ program: "no-such-ringer" })))).toContain("pip install ringer-engine");
});

test("events are read however their bytes arrive", async () => {
  const text = 'id: 7\nevent: turn\ndata: {"a":\ndata: "é"}\n\n: kept alive\r\n\r\ndata: plain\r\n\r\nevent: no data\n\n';
  const bytes = new TextEncoder().encode(text);
  for (const size of [1, 2, 3, 1000]) {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
        controller.close();
      },
    });
    expect(await all(read(body))).toEqual([
      { name: "turn", data: { a: "é" }, id: "7" }, { name: "message", data: "plain", id: "7" },
    ]);
  }
});
