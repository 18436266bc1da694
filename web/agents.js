import { el, words, when, table, facts, section } from "./dom.js";
import { ask, get, maybe } from "./api.js";
import { sure } from "./forms.js";
import { labelForm, metricForm } from "./marks.js";
import { runTable } from "./runs.js";
import { productionTable } from "./production.js";
import { lineTest } from "./line.js";

/** @param {import("./app.js").Page} page */
export async function agentsPage(page) {
  page.title("Agents");
  const agents = await get("/v1/all-agents");
  const more = el("p", {}, el("a", { class: "button", href: "/agents/new" }, "New agent"));
  if (!agents.length) return page.show(el("h1", {}, "Agents"), el("p", { class: "empty" }, "There is no agent yet. ", el("a", { href: "/call" }, "Call one"), ", or make one."), more);
  page.show(el("h1", {}, "Agents"), more, table("Agents", ["Agent", "Name", "Type", "Mode", "Connection", "Address"], agents.map((/** @type {any} */ agent) => [
    el("a", { href: "/agents/" + agent.id }, String(agent.id)), words(agent.name, 80), agent.type, agent.mode, agent.connection_type || "", words(address(agent), 80)])));
}

/** @param {any} agent */
function address(agent) {
  return agent.sip_uri || agent.phone_number || agent.websocket_url || agent.http_webhook || "";
}

/**
 * A label in its colour, where it has one.
 * @param {any} mark
 */
function labelMark(mark) {
  if (!/^#[0-9a-f]{6}$/i.test(mark.color || "")) return el("span", {}, mark.label_text);
  const dot = el("span", { class: "dot", title: mark.color });
  dot.style.backgroundColor = mark.color;
  return el("span", {}, dot, " ", mark.label_text);
}

/**
 * @param {string} id
 * @param {import("./app.js").Page} page
 */
export async function agentPage(id, page) {
  const [agent, versions, labels, simulations, runs, calls, metrics] = await Promise.all([get("/v1/agents/" + id), maybe("/v1/agents/" + id + "/versions"), maybe("/v1/agents/" + id + "/labels").catch(() => []),
    get("/v1/get-simulations-by-agent/" + id), get("/v1/simulation-runs?limit=20&agent_id=" + id), maybe("/v1/retrieve-call-logs/" + id), maybe("/v1/custom-metrics?agent_id=" + id).catch(() => null)]);
  page.title("Agent " + id);
  const list = Array.isArray(versions) ? versions : (versions && versions.versions) || [];
  const marks = Array.isArray(labels) ? labels : [];
  page.show(el("h1", {}, words(agent.name, 120)), facts(["Id", agent.id], ["About", agent.agent_description && words(agent.agent_description)], ["Type", agent.type], ["Mode", agent.mode],
    ["Connection", agent.connection_type], ["Address", words(address(agent), 120)], ["Private words are taken out", agent.redact_pii ? "yes" : "no"],
    ["Answers are posted to", agent.P11_inbound_token && location.origin + "/v1/agents/" + agent.id + "/inbound-messages?token=" + agent.P11_inbound_token],
    ["Labels", marks.length ? el("span", {}, marks.flatMap((/** @type {any} */ mark, /** @type {number} */ at) => [at ? ", " : "", labelMark(mark)])) : null]),
  el("p", { class: "downloads" }, el("a", { class: "button", href: "/agents/" + id + "/edit" }, "Change"), el("a", { class: "button", href: "/agents/new?copy=" + id }, "Copy"), el("a", { class: "button", href: "/simulations/new?agent=" + id }, "New scenario"),
    agent.sip_uri ? el("a", { class: "button", href: "/call?address=" + encodeURIComponent(agent.sip_uri) }, "Call now") : null, sure("Delete", () => ask("DELETE", "/v1/agent/" + id).then(() => page.go("/agents")), page)),
  section("Line", lineTest(id, page)),
  section("Versions", list.length ? table("Versions", ["Version", "Labels", "Message", "Prompt"], list.map((/** @type {any} */ one) => [one.version, (one.labels || []).join(", "), words(one.commit_message, 120), words(one.prompt_text, 200)])) : el("p", { class: "empty" }, "There is no version.")),
  el("div", { class: "needs-write" }, section("Labels", labelForm(id, () => agentPage(id, page)))),
  section("Metrics", metricForm(id, metrics, () => agentPage(id, page), page)),
  section("Simulations", simulations.simulations.length ? table("Simulations", ["Simulation", "Name", "Made"], simulations.simulations.map((/** @type {any} */ one) => [
    el("a", { href: "/simulations/" + one.id }, String(one.id)), words(one.name, 80), when(one.created_at)])) : el("p", { class: "empty" }, "There is no simulation.")),
  section("Runs", runs.simulation_runs.length ? runTable(runs.simulation_runs) : el("p", { class: "empty" }, "There is no run.")),
  section("Production calls", calls && calls.call_logs.length ? productionTable(calls.call_logs) : el("p", { class: "empty" }, "No call with a real person was sent here.")));
}
