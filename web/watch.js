import { el, words, when, section, table } from "./dom.js";
import { chip, ownerWords } from "./told.js";
import { ask, get, maybe, post } from "./api.js";
import { form, sure } from "./forms.js";
import { productionTable } from "./production.js";

/** Length of the strip, in days. */
const DAYS = 90;

/**
 * A check in words.
 * @param {any} check
 */
function inWords(check) {
  const set = check.config || {};
  const after = set.alert_after_failures > 1 ? ", told after " + set.alert_after_failures + " failures" : "";
  const text = /** @type {Record<string, string>} */ ({ agent_responds: "the agent answers and speaks", agent_malfunction: "it says no phrase of a broken agent", latency: "it answers within " + (set.latency_threshold_ms ?? 0) + " ms",
    custom_metric: "a metric is " + String(set.operator || "").replace(/_/g, " ") + " " + (set.value ?? ""), digital_human: "caller " + set.digital_human_id + " reaches its goal" })[check.checkType] || check.checkType;
  return text + after + (check.enabled === false ? " (off)" : "");
}

/**
 * The verdicts of the last days (UTC), a bar each day.
 * @param {any[]} checked days with a verdict
 */
function strip(checked) {
  const by = new Map(checked.map((one) => [one.day, one]));
  const days = Array.from({ length: DAYS }, (_, n) => new Date(Date.now() - (DAYS - 1 - n) * 86400000).toISOString().slice(0, 10)).map((day) => by.get(day) || { day, up: 0, down: 0 });
  const down = days.filter((day) => day.down).length;
  const seen = days.filter((day) => day.up || day.down).length;
  return el("div", { class: "strip", role: "img", "aria-label": "The last " + DAYS + " days: checked on " + seen + ", down on " + down }, days.map((day) => el("span", { class: day.down ? "down" : day.up ? "up" : "none", title: day.day + (day.up + day.down ? ": " + day.up + " up, " + day.down + " down" : ": not checked") })));
}

/** @param {import("./app.js").Page} page */
export async function watchPage(page) {
  page.title("Watch");
  const [monitors, issues, agents] = await Promise.all([get("/v1/uptime/monitors?page_size=100"), get("/v1/issues?limit=100"), get("/v1/all-agents")]);
  const logs = (await Promise.all(agents.slice(0, 20).map((/** @type {any} */ agent) => maybe("/v1/retrieve-call-logs/" + agent.id).catch(() => null)))).flatMap((one) => (one && one.call_logs) || []);
  const names = new Map(agents.map((/** @type {any} */ agent) => [agent.id, agent.name]));
  const again = () => watchPage(page);
  page.show(el("h1", {}, "Watch"),
    section("Monitors", monitors.monitors.length ? el("div", {}, monitors.monitors.map((/** @type {any} */ one) => monitor(one, names, again, page))) : el("p", { class: "empty" }, "Nothing is watched yet: a monitor calls an agent again and again."), el("details", { class: "more-fields" }, el("summary", {}, "New monitor"), newMonitor(agents, again))),
    section("Issues", issues.length ? table("Issues", ["What", "Who has to act", "State", "First", "Last", "Calls", ""], issues.map((/** @type {any} */ one) => issue(one, again, page))) : el("p", { class: "empty" }, "There is no issue.")),
    section("Production calls", logs.length ? productionTable(logs) : el("p", { class: "empty" }, "No call with a real person was sent here.")));
}

/**
 * @param {any} one
 * @param {Map<number, string>} names
 * @param {() => Promise<void>} done
 * @param {import("./app.js").Page} page
 */
function monitor(one, names, done, page) {
  const change = (/** @type {any} */ body) => ask("PUT", "/v1/uptime/monitors/" + one.id, { body }).then(done).catch(page.refused);
  const told = (one.notifications.channels || []).map((/** @type {any} */ channel) => channel.type + " " + channel.target).join(", ");
  const now = el("button", { type: "button", onclick: () => post("/v1/queue-simulation-run", { simulation_id: String(one.simulation_id) }).then((run) => page.go("/runs/" + run.simulation_run_id)).catch(page.refused) }, "Try now");
  return el("article", { class: "monitor" }, el("h3", {}, words(names.get(one.agent_id) || "agent " + one.agent_id, 80)), el("p", { class: "chips" }, chip(one.enabled ? one.status : "paused"),
    one.uptime_percentage === null ? "" : one.uptime_percentage.toFixed(2) + " % in 30 days", "every " + one.frequency, one.next_check_at ? "next " + when(one.next_check_at) : ""),
  strip(one.days), el("ul", {}, one.checks.map((/** @type {any} */ check) => el("li", {}, inWords(check)))), one.open_incident ? el("p", { class: "warn" }, words("Down since " + when(one.open_incident.opened_at) + ": " + one.open_incident.reason)) : "",
  el("p", {}, told ? words("Told: " + told, 200) : "Nobody is told."), el("p", { class: "downloads needs-write" }, now, el("button", { type: "button", onclick: () => change({ enabled: !one.enabled }) }, one.enabled ? "Pause" : "Go on"),
    sure("Delete", () => ask("DELETE", "/v1/uptime/monitors/" + one.id).then(done), page)));
}

/**
 * @param {any[]} agents
 * @param {() => Promise<void>} done
 */
function newMonitor(agents, done) {
  const labelled = (/** @type {string} */ id, /** @type {string} */ label, /** @type {any} */ control) => { control.id = id; return el("div", { class: "field" }, el("label", { for: id }, label), control); };
  const agent = el("select", {}, agents.map((one) => el("option", { value: String(one.id) }, String(one.name).slice(0, 80))));
  const every = el("select", {}, ["5m", "10m", "30m", "1h", "6h", "1d"].map((one) => el("option", { selected: one === "10m" }, one)));
  const latency = el("input", { type: "number", min: "1", placeholder: "not checked" });
  const failures = el("input", { type: "number", min: "1", value: "1" });
  const kind = el("select", {}, [["", "nobody"], ["email", "by e-mail"], ["webhook", "by webhook"], ["slack", "by Slack webhook"], ["pager", "by pager"]].map(([value, text]) => el("option", { value }, text)));
  const target = el("input", { placeholder: "address" });
  const make = async () => {
    const config = { alert_after_failures: Number(failures.value) || 1 };
    const checks = [{ checkType: "agent_responds", config }, { checkType: "agent_malfunction", config }, ...(latency.value ? [{ checkType: "latency", config: { ...config, latency_threshold_ms: Number(latency.value) } }] : [])];
    await post("/v1/uptime/monitors", { agent_id: Number(agent.value), frequency: every.value, checks, ...(kind.value ? { notifications: { channels: [{ type: kind.value, target: target.value.trim() }] } } : {}) });
    await done();
  };
  if (!agents.length) return el("p", { class: "empty" }, "There is no agent yet.");
  return form("Watch the agent", make, labelled("f-watched", "Agent", agent), labelled("f-every", "Every", every), el("p", {}, "It is checked that the agent answers and speaks, and says no phrase of a broken agent."), labelled("f-latency", "and answers within milliseconds", latency),
    labelled("f-failures", "Told after failures in a row", failures), labelled("f-told", "Who is told", kind), labelled("f-target", "Address", target));
}

/**
 * @param {any} one
 * @param {() => Promise<void>} done
 * @param {import("./app.js").Page} page
 */
function issue(one, done, page) {
  const state = el("select", { class: "needs-write", "aria-label": "State of " + String(one.title).slice(0, 60), onchange: () => ask("PATCH", "/v1/issues/" + one.id, { body: { status: state.value } }).then(done).catch(page.refused) },
    ["open", "in_progress", "resolved", "ignored"].map((value) => el("option", { value, selected: value === one.status }, /** @type {Record<string, string>} */ ({ in_progress: "in progress", resolved: "fixed" })[value] || value)));
  const calls = el("span", {}, el("button", { type: "button", class: "more", onclick: async () => {
    const found = await get("/v1/issues/" + one.id).catch((error) => { page.refused(error); return null; });
    if (found) calls.replaceChildren(...found.occurrences.slice(-20).map((/** @type {any} */ place) => el("span", {}, place.simulation_result_id ? el("a", { href: "/results/" + place.simulation_result_id }, "call " + place.simulation_result_id) : place.call_log_id ? el("a", { href: "/calls/" + place.call_log_id }, "call") : "", " ")));
  } }, "show"));
  return [el("span", {}, words(one.title, 120), " ", words(one.description || "", 160)), el("span", {}, ownerWords(one.error_source), " ", chip(one.type === "deterministic" ? "error" : "pattern")), state, when(one.first_seen_at), when(one.last_seen_at), calls, ""];
}
