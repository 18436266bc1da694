// Eighteen calls with openapi-fetch and the types that openapi-typescript makes of the document: URL KEY.

import createClient from "openapi-fetch";
import type { paths } from "./schema";

const [url, key] = process.argv.slice(2) as [string, string];
const client = createClient<paths>({ baseUrl: url, headers: { "X-API-Key": key } });
let calls = 0;

/** The data of a call that has to succeed. */
async function data<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  calls += 1;
  const answer = await call;
  if (answer.data === undefined) throw new Error(`${answer.response.url}: ${JSON.stringify(answer.error)}`);
  return answer.data;
}

function same(found: unknown, expected: unknown): void {
  if (JSON.stringify(found) !== JSON.stringify(expected)) throw new Error(`${JSON.stringify(found)} is not ${JSON.stringify(expected)}`);
}

async function main(): Promise<void> {
  same((await data(client.GET("/v1/ping"))).message, "pong");
  const agent = (await data(client.POST("/v1/add-agent", { body: { name: "Desk", goals: ["book"] } }))).agent_id;
  const read = await data(client.GET("/v1/agents/{agent_id}", { params: { path: { agent_id: agent } } }));
  same([read.name, read.type, read.goals.length], ["Desk", "INBOUND", 1]);
  await data(client.POST("/v1/update-agent", { body: { agent_id: String(agent), name: "Front desk" } }));
  same((await data(client.GET("/v1/all-agents")))[0]?.name, "Front desk");
  const folder = (await data(client.POST("/v1/create-folder", { body: { name: "Desks" } }))).id;
  await data(client.PUT("/v1/folders/move-agent", { body: { agent_id: agent, folder_id: folder } }));
  same((await data(client.GET("/v1/all-folders"))).map((one) => one.name), ["Desks"]);
  const human = await data(client.POST("/v1/create-digital-human", { body: { digital_human: { name: "Maria", intent: "Book." } } }));
  const id = human.digital_human.id;
  const path = { digital_human_id: id };
  await data(client.PUT("/v1/update-digital-human/{digital_human_id}", { params: { path }, body: { intent: "Book a table." } }));
  same((await data(client.GET("/v1/digital-humans", { params: { query: { page_size: 5 } } }))).total_count, 1);
  const added = await data(client.POST("/v1/create-simulation", { body: { agent_id: String(agent), name: "Booking" } }));
  const simulation = { simulation_id: added.simulation_id };
  await data(client.POST("/v1/simulation/{simulation_id}/add-digital-humans", { params: { path: simulation }, body: { digital_human_ids: [id] } }));
  same((await data(client.GET("/v1/simulation/{simulation_id}", { params: { path: simulation } }))).name, "Booking");
  const daily = { frequency: "daily" as const, time: "09:05" };
  const schedule = await data(client.POST("/v1/create-schedule", { body: { simulation_id: String(added.simulation_id), schedule: daily } }));
  await data(client.PUT("/v1/update-schedule/{schedule_id}", { params: { path: { schedule_id: schedule.id } }, body: { enabled: false } }));
  await data(client.POST("/v1/webhooks", { body: { url: "http://127.0.0.1:9/hook", event_types: ["simulation_ended"] } }));
  same((await data(client.GET("/v1/simulation-runs"))).simulation_runs.length, 0);
  same(calls, 18);

  const refused = await client.POST("/v1/add-agent", { body: { name: "" } });
  same([refused.response.status, refused.error !== undefined], [422, true]);
  console.log(calls);
}

void main();
