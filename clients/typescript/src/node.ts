// Engines and suites for tests: they run the program `ringer` (`pip install ringer-engine`).

import { spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { createRinger, type Ringer } from "./index.js";

/** Milliseconds in which an engine is ready. */
const READY_MS = 60_000;
/** Settings of this process that would change an engine of a test. */
const NOT_INHERITED = ["RINGER_API_KEY", "RINGER_BOOTSTRAP_KEY", "RINGER_CONFIG", "RINGER_DATABASE_URL",
  "RINGER_SERVER_LISTEN", "RINGER_SERVER_PUBLIC_URL", "RINGER_SIP_LISTEN"];
/** Exit codes of `ringer run` after which there are results. */
const TOLD = [0, 1, 3, 4];
/** Order of calls in report.html. */
const ORDER: readonly string[] = ["failed", "unreachable", "unknown", "passed"];

/** Nothing was tested: the agent or the server was not reached, or a file, flag or setting is refused. */
export class NotTested extends Error {
  override readonly name = "NotTested";
}

/** A scenario failed by the agent's fault. */
export class ScenarioFailed extends Error {
  override readonly name = "ScenarioFailed";
}

export interface EngineOptions {
  /** The program; else RINGER_PROGRAM, else `ringer` of PATH. */
  program?: string;
  /** Folder of the engine's data; else a temporary one, which is removed. */
  folder?: string;
  /** Further flags of `ringer up`. */
  flags?: string[];
  /** Variables of the engine's environment. */
  settings?: Record<string, string>;
}

/** An engine on free ports of loopback, which calls agents there. */
export interface Engine {
  readonly baseUrl: string;
  /** Key of scope admin. It does not show where an engine is printed. */
  readonly apiKey: string;
  client(): Ringer;
  stop(): Promise<void>;
}

/** Starts an engine; resolves when it answers. */
export async function startEngine(options: EngineOptions = {}): Promise<Engine> {
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), "ringer-engine-")));
  const remove = () => (options.folder === undefined ? rm(folder, { recursive: true, force: true }) : Promise.resolve());
  const apiKey = randomBytes(24).toString("hex");
  const plain = Object.fromEntries(Object.entries(process.env).filter(([name]) => !NOT_INHERITED.includes(name)));
  const env = { ...plain, RINGER_SECURITY_ALLOW_PRIVATE_AGENTS: "true", RINGER_SECURITY_ALLOW_PRIVATE_TARGETS: "true",
    ...options.settings, RINGER_BOOTSTRAP_KEY: apiKey };
  const flags = ["up", "--data", join(resolve(folder), "data"), "--listen", "127.0.0.1:0", "--sip", "127.0.0.1:0",
    "--no-page-link", ...(options.flags ?? [])];
  const child = spawn(program(options), flags, { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
  const stop = async () => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      child.kill("SIGTERM");
      await once(child, "exit");
    }
    await remove();
  };
  try {
    const baseUrl = await ready(child);
    const engine = { baseUrl, client: () => createRinger({ baseUrl, apiKey }), stop };
    return Object.defineProperty(engine, "apiKey", { value: apiKey, enumerable: false }) as Engine;
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Resolves with the address that an engine prints. */
function ready(child: ChildProcess): Promise<string> {
  return new Promise((found, failed) => {
    const said: string[] = [];
    const timer = setTimeout(() => failed(new NotTested(`the engine was not ready within ${READY_MS / 1000} s`)), READY_MS);
    const end = (error: Error) => {
      clearTimeout(timer);
      failed(error);
    };
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream! }).on("line", (line) => {
        if (said.length < 100) said.push(line);
        const address = /ringer is ready: API (http:\/\/\S+?)[ ,]/.exec(line + " ")?.[1];
        if (address === undefined) return;
        clearTimeout(timer);
        found(address);
      });
    }
    child.once("error", (error) => end(missing(error)));
    child.once("close", (code) => end(new NotTested(`the engine ended with ${code}: ${said.slice(-5).join("\n")}`)));
  });
}

/** Options of a run, which are flags of `ringer run`. */
export interface RunOptions {
  program?: string;
  /** Folder against which paths are resolved. */
  cwd?: string;
  /** Folder of the results, as `ringer run --out`. */
  out?: string;
  /** Engine on which the calls are made; else RINGER_SERVER, else one of the run's own. */
  engine?: Engine;
  filter?: string;
  tag?: string[];
  seed?: number;
  repeat?: number;
  concurrency?: number;
  timeout?: number;
  config?: string;
  sim?: boolean;
  spawn?: boolean;
  evidence?: boolean;
}

export interface Call {
  seed: number;
  resultId: string;
  verdict: string;
  code: string;
  reason: string;
  /** Where the call stands in the report. */
  place: string;
  metrics: Record<string, unknown>;
}

/** A scenario with the verdict on its gate: passed, failed, unknown or unreachable. */
export interface Scenario {
  file: string;
  name: string;
  verdict: string;
  reason: string;
  calls: Call[];
}

export interface Run {
  exitCode: number;
  scenarios: Scenario[];
  report: string;
}

/** Plays suites by `ringer run`. Throws `NotTested` where there are no results. */
export async function runSuite(paths: string | string[], options: RunOptions = {}): Promise<Run> {
  const out = resolve(options.cwd ?? ".", options.out ?? "ringer-results");
  const words = ["run", ...[paths].flat(), ...flags(options), "--out", out, "--json"];
  const ports = await freePorts(4);
  const names = Object.fromEntries(ports.map((port, at) => [at === 0 ? "AGENT_PORT" : `AGENT_PORT_${at + 1}`, String(port)]));
  const key = options.engine === undefined ? {} : { RINGER_API_KEY: options.engine.apiKey };
  const env = { RINGER_LOG: "off", NO_COLOR: "1", ...names, ...process.env, ...key };
  const child = spawn(program(options), words, { cwd: options.cwd ?? ".", env, stdio: ["ignore", "pipe", "pipe"] });
  let [printed, said] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (printed += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  const code = await new Promise<number | null>((ended, failed) => {
    child.once("error", (error) => failed(missing(error)));
    child.once("close", ended);
  });
  const last = printed.trim().split("\n").at(-1) ?? "";
  if (code === null || !TOLD.includes(code) || last === "") {
    throw new NotTested(`\`ringer run\` ended with ${code}: ${said.trim().slice(-4000)}`);
  }
  return results(code, JSON.parse(last) as Summary, out);
}

/** Ends a test by a run: a failure throws `ScenarioFailed`; what could not be told skips; the rest throws `NotTested`. */
export function judge(run: Run, context?: { skip(note?: string): unknown }): void {
  const wrong = run.scenarios.filter((one) => one.verdict !== "passed");
  const text = [...wrong.map((one) => `${one.name}: ${one.verdict}: ${one.reason}`), `report: ${run.report}`].join("\n");
  if (run.exitCode === 0) return;
  if (run.exitCode === 1) throw new ScenarioFailed(text);
  if (run.exitCode === 3 && context !== undefined) context.skip(text);
  else throw new NotTested(text);
}

interface Summary {
  scenarios: { file: string; scenario: string; gate: string; unreachable: number; reason: string }[];
}

interface Line {
  file: string;
  scenario: string;
  seed: number;
  result_id: string;
  verdict: string;
  code: string;
  reason: string;
  metrics: { name: string; value: unknown }[];
}

/** Returns a run by its summary and `results.jsonl`. */
async function results(exitCode: number, summary: Summary, out: string): Promise<Run> {
  const report = join(out, "report.html");
  const text = await readFile(join(out, "results.jsonl"), "utf8");
  const lines = text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as Line);
  const ranked = [...lines].sort((a, b) => ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict));
  const scenarios = summary.scenarios.map((row): Scenario => ({
    file: row.file,
    name: row.scenario,
    verdict: row.gate === "unknown" && row.unreachable > 0 ? "unreachable" : row.gate,
    reason: row.reason,
    calls: lines.filter((line) => line.file === row.file && line.scenario === row.scenario).map((line) => ({
      seed: line.seed,
      resultId: line.result_id,
      verdict: line.verdict,
      code: line.code,
      reason: line.reason,
      place: `${report}#call-${ranked.indexOf(line)}`,
      metrics: Object.fromEntries((line.metrics ?? []).map((one) => [one.name, one.value])),
    })),
  }));
  return { exitCode, scenarios, report };
}

function flags(options: RunOptions): string[] {
  const server = options.engine?.baseUrl ?? (options.sim ? undefined : process.env["RINGER_SERVER"]);
  const values = { server, filter: options.filter, seed: options.seed, repeat: options.repeat, config: options.config,
    concurrency: options.concurrency, timeout: options.timeout };
  const switches = { sim: options.sim, spawn: options.spawn, evidence: options.evidence };
  return [
    ...Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`])),
    ...(options.tag ?? []).map((tag) => `--tag=${tag}`),
    ...Object.entries(switches).flatMap(([name, value]) => (value ? [`--${name}`] : [])),
  ];
}

function program(options: { program?: string }): string {
  return options.program ?? process.env["RINGER_PROGRAM"] ?? "ringer";
}

function missing(error: Error): Error {
  const is = "code" in error && error.code === "ENOENT";
  return is ? new NotTested("the program `ringer` is not found: `pip install ringer-engine`, or name it in RINGER_PROGRAM") : error;
}

/** Returns ports of TCP on loopback that nobody used a moment ago. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((closed) => server.close(closed))));
  return ports;
}
