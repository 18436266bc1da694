import { el, words, when, table, facts, section } from "./dom.js";
import { get, maybe, post } from "./api.js";
import { runTable } from "./runs.js";

/** @param {import("./app.js").Page} page */
export async function agentsPage(page) {
  page.title("Agents");
  const agents = await get("/v1/all-agents");
  if (!agents.length) return page.show(el("h1", {}, "Agents"), el("p", { class: "empty" }, "There is no agent yet. ", el("a", { href: "/call" }, "Call one"), "."));
  page.show(el("h1", {}, "Agents"), table("Agents", ["Agent", "Name", "Type", "Mode", "Connection", "Address"], agents.map((/** @type {any} */ agent) => [
    el("a", { href: "/agents/" + agent.id }, String(agent.id)), words(agent.name, 80), agent.type, agent.mode, agent.connection_type || "", words(address(agent), 80)])));
}

/** @param {any} agent */
function address(agent) {
  return agent.sip_uri || agent.phone_number || agent.websocket_url || agent.http_webhook || "";
}

/**
 * @param {string} id
 * @param {import("./app.js").Page} page
 */
export async function agentPage(id, page) {
  const [agent, versions, labels, simulations, runs] = await Promise.all([get("/v1/agents/" + id), maybe("/v1/agents/" + id + "/versions"), maybe("/v1/agents/" + id + "/labels").catch(() => []),
    get("/v1/get-simulations-by-agent/" + id), get("/v1/simulation-runs?limit=20&agent_id=" + id)]);
  page.title("Agent " + id);
  const list = Array.isArray(versions) ? versions : (versions && versions.versions) || [];
  const marks = Array.isArray(labels) ? labels : [];
  page.show(el("h1", {}, words(agent.name, 120)), facts(["Id", agent.id], ["About", agent.agent_description && words(agent.agent_description)], ["Type", agent.type], ["Mode", agent.mode],
    ["Connection", agent.connection_type], ["Address", words(address(agent), 120)], ["Private words are taken out", agent.redact_pii ? "yes" : "no"],
    ["Labels", marks.map((/** @type {any} */ mark) => mark.label_text || mark.label || mark).join(", ")]),
  section("Versions", list.length ? table("Versions", ["Version", "Labels", "Message", "Prompt"], list.map((/** @type {any} */ one) => [one.version, (one.labels || []).join(", "), words(one.commit_message, 120), words(one.prompt_text, 200)])) : el("p", { class: "empty" }, "There is no version.")),
  section("Simulations", simulations.simulations.length ? table("Simulations", ["Simulation", "Name", "Made"], simulations.simulations.map((/** @type {any} */ one) => [
    el("a", { href: "/simulations/" + one.id }, String(one.id)), words(one.name, 80), when(one.created_at)])) : el("p", { class: "empty" }, "There is no simulation.")),
  section("Runs", runs.simulation_runs.length ? runTable(runs.simulation_runs) : el("p", { class: "empty" }, "There is no run.")));
}

/**
 * @param {string} id
 * @param {import("./app.js").Page} page
 */
export async function simulationPage(id, page) {
  const [simulation, humans, runs] = await Promise.all([get("/v1/simulation/" + id), get("/v1/digital-humans-by-simulation/" + id), get("/v1/simulation-runs?limit=20&simulation_id=" + id)]);
  page.title("Simulation " + id);
  const seed = el("input", { name: "seed", inputMode: "numeric", pattern: "[0-9]*", placeholder: "drawn" });
  const send = el("button", { type: "submit" }, "Run");
  const form = el("form", { class: "filters" }, el("label", {}, "Seed", seed), send);
  form.onsubmit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    send.disabled = true;
    const body = { simulation_id: id, ...(seed.value ? { seed: Number(seed.value) } : {}) };
    await post("/v1/queue-simulation-run", body).then((run) => page.go("/runs/" + run.simulation_run_id), page.refused);
    send.disabled = false;
  };
  const set = simulation.settings || {};
  page.show(el("h1", {}, words(simulation.name ?? "Simulation " + id, 120)), facts(["Agent", el("a", { href: "/agents/" + simulation.agent_id }, String(simulation.agent_id))],
    ["Longest call", set.max_call_duration + " " + (set.max_call_duration_units || "")], ["Calls each", set.runs_per_digital_human], ["At once", simulation.max_concurrent]), form,
  section("Digital Humans", humans.digital_humans.length ? table("Digital Humans", ["Id", "Name", "Intent", "Language", "Speed", "Noise", "Line", "Success"], humans.digital_humans.map((/** @type {any} */ one) => [
    one.id, words(one.name, 60), words(one.intent, 160), one.language, one.voice_speed, one.background_noise, one.connection_quality, words(one.success_criteria, 120)])) : el("p", { class: "empty" }, "There is no Digital Human.")),
  section("Runs", runs.simulation_runs.length ? runTable(runs.simulation_runs) : el("p", { class: "empty" }, "There is no run.")));
}
