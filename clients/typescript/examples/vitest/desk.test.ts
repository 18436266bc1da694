// A scenario of a suite, called on an engine that the test starts: `npx vitest run`.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { data } from "ringer-client";
import { judge, runSuite, startEngine, type Engine } from "ringer-client/node";
import { afterAll, beforeAll, expect, test } from "vitest";

let engine: Engine;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "desk-"));
  engine = await startEngine();
});

afterAll(async () => {
  await engine?.stop();
  await rm(folder, { recursive: true, force: true });
});

test("the desk asks for the date of birth", async (context) => {
  const suite = join(import.meta.dirname ?? __dirname, "desk.yaml");
  const run = await runSuite(suite, { engine, spawn: true, filter: "date of birth", out: join(folder, "results") });
  judge(run, context);
  const path = { simulation_result_id: Number(run.scenarios[0]?.calls[0]?.resultId) };
  const { simulation_result: result } = await data(engine.client().GET("/v1/retrieve-simulation-result/{simulation_result_id}", { params: { path } }));
  expect(result.verdict?.word).toBe("passed");
});
