import { el, section } from "./dom.js";
import { get, post } from "./api.js";
import { levers } from "./start.js";
import { given } from "./caller.js";
import { suiteOf } from "./suite.js";

/**
 * A word of a command line, quoted where it has to be.
 * @param {string} text
 */
function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : "'" + text.replace(/'/g, "'\\''") + "'";
}

/**
 * The same call as a command of the program; null where the program alone cannot make it.
 * @param {any} agent
 * @param {any} human
 * @param {any} result
 */
function command(agent, human, result) {
  const to = agent.type === "OUTBOUND" ? null : agent.connection_type === "SIP" ? agent.sip_uri : agent.connection_type === "WEBSOCKET" ? agent.websocket_url : null;
  if (!to) return null;
  const noise = human.background_noise && human.background_noise !== "none" ? ["--noise", human.background_noise + ":" + human.background_noise_volume] : [];
  const dialect = agent.websocket_dialect ? ["--dialect", agent.websocket_dialect] : [];
  return ["ringer", "call", to, ...dialect, "--intent", human.intent || "", ...noise, "--seed", String(result.seed)].map(quoted).join(" ");
}

/**
 * What asks the engine for the same call.
 * @param {any} result
 * @param {any} run
 */
function order(result, run) {
  return { simulation_id: String(result.simulation_id), digital_human_ids: [result.digital_human_id], ...(run && run.seed !== undefined ? { seed: run.seed } : {}) };
}

/**
 * The call again: with its seed, or with one lever changed; and as a text to copy.
 * @param {any} data
 * @param {import("./app.js").Page} page
 */
export function againView(data, page) {
  const { result, human } = data;
  if (!human || !result.simulation_id || result.journey_step !== null) return "";
  // A run may have many results: its seed is asked for when it is needed.
  const asked = async () => order(result, (await get("/v1/retrieve-simulation-results/" + result.simulation_run_id)).simulation_run);
  const go = (/** @type {any} */ body) => post("/v1/queue-simulation-run", body).then((made) => page.go("/results/" + made.simulation_result_ids[0]));
  const button = (/** @type {string} */ text, /** @type {() => Promise<any>} */ act) => {
    const node = el("button", { type: "button", onclick: () => { node.disabled = true; act().catch((error) => { node.disabled = false; page.refused(error); }); } }, text);
    return node;
  };
  const more = el("details", { class: "more-fields again", ontoggle: async () => {
    if (more.childElementCount > 1) return;
    try { more.append(...await choices(data, { asked, go, button }, page)); } catch (error) { page.refused(/** @type {Error} */ (error)); }
  } }, el("summary", {}, "With one lever changed, or as text"));
  return section("Again", el("p", { class: "acts needs-write" }, button("Call again with this seed", () => asked().then(go))), more);
}

/**
 * Levers to change, and texts to copy.
 * @param {any} data
 * @param {{ asked: () => Promise<any>, go: (body: any) => Promise<any>, button: (text: string, act: () => Promise<any>) => any }} acts
 * @param {import("./app.js").Page} page
 */
async function choices({ result, human }, { asked, go, button }, page) {
  const [agent, simulation, of] = await Promise.all([get("/v1/agents/" + result.agent_id), get("/v1/simulation/" + result.simulation_id), get("/v1/behaviour-levels")]);
  const all = levers(of);
  const lever = el("select", { "aria-label": "Lever" }, all.map(([name, label]) => el("option", { value: name }, label)));
  const level = el("select", { "aria-label": "Level" });
  const fill = () => {
    const [, , levels, normal] = /** @type {any} */ (all.find(([name]) => name === lever.value));
    const now = human[lever.value] || normal;
    level.replaceChildren(...levels.filter((/** @type {any} */ [one]) => one !== now).map((/** @type {any} */ [one, about]) => el("option", { value: one }, one.replace(/_/g, " ") + (about ? " (" + about + ")" : ""))));
  };
  lever.onchange = fill;
  fill();
  // The simulation of the call stays as it is: its next run has the same callers.
  const changed = async () => {
    const what = ", " + lever.options[lever.selectedIndex].text.toLowerCase() + " " + level.value.replace(/_/g, " ");
    const { max_call_duration, max_call_duration_units } = simulation.settings || {};
    const kept = Object.fromEntries(Object.entries({ max_call_duration, max_call_duration_units }).filter(([, value]) => value));
    const made = await post("/v1/create-simulation", { agent_id: String(result.agent_id), name: (simulation.name || "Simulation") + what, ...kept });
    await post("/v1/create-digital-human", { digital_human: { ...given(human), svc_as_code_id: null, name: (human.name || "caller") + what, [lever.value]: level.value }, simulation_ids: [made.simulation_id] });
    await go({ simulation_id: String(made.simulation_id), seed: (await asked()).seed });
  };
  const line = command(agent, human, result);
  const texts = /** @type {[string, () => any][]} */ ([["ringer call", () => line], ["curl", async () => "curl -X POST " + location.origin + "/v1/queue-simulation-run -H \"X-API-Key: $RINGER_KEY\" -H 'Content-Type: application/json' -d " + quoted(JSON.stringify(await asked()))], ["suite (YAML)", () => suiteOf(agent, simulation, [human])]]);
  const shown = el("pre", { tabIndex: 0, hidden: true });
  const copies = texts.filter(([name]) => name !== "ringer call" || line).map(([name, make]) => el("button", { type: "button", data: { copy: name }, onclick: async () => {
    const text = await Promise.resolve(make()).catch(page.refused);
    shown.hidden = false;
    shown.textContent = text || "";
    // A page that is not served over TLS may have no clipboard: the text can be marked then.
    await navigator.clipboard?.writeText(text || "").then(() => page.notice("Copied."), () => {});
  } }, "As " + name));
  return [el("p", { class: "acts needs-write" }, el("label", {}, "One lever changed: ", lever), level, button("Call with it changed", changed)), el("p", { class: "acts" }, "Copy:", copies), shown];
}
