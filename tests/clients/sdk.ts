// Eighteen calls with the client that @hey-api/openapi-ts makes of the document: URL KEY.

import { client } from "./sdk/client.gen";
import * as sdk from "./sdk/index";

const [url, key] = process.argv.slice(2) as [string, string];
client.setConfig({ baseUrl: url, auth: key });
let calls = 0;

/** The data of a call that has to succeed. */
async function data<T>(call: Promise<{ data?: T; error?: unknown }>): Promise<T> {
  calls += 1;
  const answer = await call;
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

function same(found: unknown, expected: unknown): void {
  if (JSON.stringify(found) !== JSON.stringify(expected)) throw new Error(`${JSON.stringify(found)} is not ${JSON.stringify(expected)}`);
}

async function main(): Promise<void> {
  same((await data(sdk.ping())).message, "pong");
  const agent = (await data(sdk.addAgent({ body: { name: "Desk", goals: ["book"] } }))).agent_id;
  const read = await data(sdk.getAgent({ path: { agent_id: agent } }));
  same([read.name, read.type, read.goals.length], ["Desk", "INBOUND", 1]);
  await data(sdk.updateAgent({ body: { agent_id: String(agent), name: "Front desk" } }));
  same((await data(sdk.listAgents()))[0]?.name, "Front desk");
  const folder = (await data(sdk.createFolder({ body: { name: "Desks" } }))).id;
  await data(sdk.moveAgent({ body: { agent_id: agent, folder_id: folder } }));
  same((await data(sdk.listFolders())).map((one) => one.name), ["Desks"]);
  const human = await data(sdk.createDigitalHuman({ body: { digital_human: { name: "Maria", intent: "Book." } } }));
  const id = human.digital_human.id;
  await data(sdk.updateDigitalHuman({ path: { digital_human_id: id }, body: { intent: "Book a table." } }));
  same((await data(sdk.listDigitalHumans({ query: { page_size: 5 } }))).total_count, 1);
  const { simulation_id } = await data(sdk.createSimulation({ body: { agent_id: String(agent), name: "Booking" } }));
  await data(sdk.addDigitalHumansToSimulation({ path: { simulation_id }, body: { digital_human_ids: [id] } }));
  same((await data(sdk.getSimulation({ path: { simulation_id } }))).name, "Booking");
  const daily = { frequency: "daily" as const, time: "09:05" };
  const schedule = await data(sdk.createSchedule({ body: { simulation_id: String(simulation_id), schedule: daily } }));
  await data(sdk.updateSchedule({ path: { schedule_id: schedule.id }, body: { enabled: false } }));
  await data(sdk.createWebhook({ body: { url: "http://127.0.0.1:9/hook", event_types: ["simulation_ended"] } }));
  same((await data(sdk.listSimulationRuns())).simulation_runs.length, 0);
  same(calls, 18);

  const refused = await sdk.addAgent({ body: { name: "" } });
  same([refused.response?.status, refused.error !== undefined], [422, true]);
  console.log(calls);
}

void main();
