import { el, words, table, facts, section } from "./dom.js";
import { ask, get, maybe, post } from "./api.js";
import { Fields, form, more, schemas, sure } from "./forms.js";
import { expectations, needsModel } from "./expect.js";
import { importing, keep, scheduling } from "./plans.js";
import { suiteOf } from "./suite.js";
import { tickTable } from "./compare.js";
import { drafting } from "./drafts.js";

/** Fields of a simulation by how often they are needed. */
const FIRST = /** @type {(string | [string, string])[]} */ (["name", ["runs_per_digital_human", "Repetitions of each caller"], ["max_concurrent", "Calls at once"], ["max_call_duration", "Longest call"], ["max_call_duration_units", "in"]]);
const ELSEWHERE = ["agent_id", "svc_as_code_id", "prompt_id", "settings", "type", "digital_humans_settings"];

/**
 * The fields of a simulation, flat as they are written.
 * @param {any} simulation
 */
function flat(simulation) {
  return { ...simulation, ...simulation.settings };
}

/**
 * @param {Fields} fields
 * @param {() => Promise<any>} act
 */
async function tried(fields, act) {
  fields.fail({ details: [] });
  try { await act(); } catch (error) {
    const rest = fields.fail(error);
    if (rest) throw new Error(rest);
  }
}

/** @param {import("./app.js").Page} page */
export async function newScenario(page) {
  page.title("New scenario");
  const wanted = new URLSearchParams(location.search).get("agent");
  const [all, agents] = await Promise.all([schemas(), get("/v1/all-agents")]);
  const agent = el("select", { id: "f-agent" }, agents.map((/** @type {any} */ one) => el("option", { value: String(one.id), selected: String(one.id) === wanted }, String(one.name).slice(0, 80))));
  const fields = new Fields(all, "SimulationSpec", {});
  const first = fields.add(FIRST);
  const make = () => tried(fields, async () => {
    const made = await post("/v1/create-simulation", { agent_id: agent.value, ...fields.values() });
    page.go("/simulations/" + made.simulation_id);
  });
  if (!agents.length) return page.show(el("h1", {}, "New scenario"), el("p", { class: "empty" }, "There is no agent yet. ", el("a", { href: "/agents/new" }, "Make one"), "."));
  page.show(el("h1", {}, "New scenario"), form("Create", make, el("div", { class: "field" }, el("label", { for: "f-agent" }, "Agent"), agent), first), section("From a file", importing(() => agent.value, page)));
}

/**
 * What a run of a simulation comes to, before it starts.
 * @param {any} simulation
 * @param {any[]} humans
 */
function cost(simulation, humans) {
  const set = simulation.settings || {};
  const each = set.runs_per_digital_human;
  const calls = humans.reduce((sum, human) => sum + (each || human.num_runs || 1) * Math.max(1, (human.journey_steps || []).length), 0);
  const minutes = set.max_call_duration ? set.max_call_duration / (set.max_call_duration_units === "seconds" ? 60 : 1) : 0;
  const least = simulation.max_concurrent ? Math.ceil(calls / simulation.max_concurrent) : 1;
  if (!calls) return "There is no caller yet.";
  return calls + (calls === 1 ? " call" : " calls") + (minutes ? ", each at most " + minutes + " min: at most " + Math.ceil(calls * minutes) + " min of calls" + (least > 1 ? ", " + Math.ceil(least * minutes) + " min from first to last" : "") : "") + ".";
}

/**
 * What is judged by a model here while there is none, in words.
 * @param {any[]} humans
 * @param {any} health
 */
function unjudged(humans, health) {
  if (!health || health.deps.language_model.status !== "not_configured") return [];
  const many = (/** @type {number} */ count, /** @type {string} */ text) => count ? [count + " " + text] : [];
  return [...many(humans.filter((one) => one.success_criteria).length, "callers have success criteria"), ...many(humans.filter((one) => (one.expectations || []).some(needsModel)).length, "callers have expectations by meaning"),
    ...many(humans.filter((one) => one.interruptions && one.interruptions.type === "contextual").length, "callers cut in by what is said")];
}

/**
 * @param {string} id
 * @param {import("./app.js").Page} page
 */
export async function scenarioPage(id, page) {
  const [all, simulation, linked, runs, schedules, health] = await Promise.all([schemas(), get("/v1/simulation/" + id), get("/v1/digital-humans-by-simulation/" + id), get("/v1/simulation-runs?limit=20&simulation_id=" + id),
    maybe("/v1/schedules").catch(() => null), get("/health/deps").catch(() => null)]);
  const agent = await maybe("/v1/agents/" + simulation.agent_id).catch(() => null);
  const humans = linked.digital_humans;
  page.title("Scenario " + id);
  const again = () => scenarioPage(id, page);
  const lacks = unjudged(humans, health);
  page.show(el("h1", {}, words(simulation.name ?? "Simulation " + id, 120)), facts(["Agent", el("a", { href: "/agents/" + simulation.agent_id }, words(agent ? agent.name : simulation.agent_id, 80))], ["About", simulation.description && words(simulation.description)],
    ["Tags", (simulation.tags || []).join(", ")]),
  el("p", { id: "cost" }, cost(simulation, humans)),
  lacks.length ? el("p", { class: "warn" }, "No language model is set, and so this stays without a verdict: " + lacks.join("; ") + ". [language_model] in ringer.toml sets one.") : null,
  starting(id, humans, page),
  section("Callers", humans.length ? table("Callers", ["Id", "Name", "Intent", "Language", "Speed", "Noise", "Line", "Success"], humans.map((/** @type {any} */ one) => [
    el("a", { href: "/callers/" + one.id + "?simulation=" + id }, String(one.id)), words(one.name, 60), words(one.intent, 160), one.language, one.voice_speed, one.background_noise, one.connection_quality, words(one.success_criteria, 120)])) :
    el("p", { class: "empty" }, "There is no Digital Human."), el("p", { class: "needs-write" }, el("a", { class: "button", href: "/callers/new?simulation=" + id }, "Add a caller")), el("div", { class: "needs-write" }, drafting(id, simulation.agent_id, again, page))),
  el("div", { class: "needs-write" }, section("Expectations of every caller", expected(humans, again, page))),
  section("Settings", more("Repetitions, calls at once, longest call", settingsOf(id, all, simulation, again))),
  section("Schedule", scheduling(id, schedules ? schedules.schedules.filter((/** @type {any} */ one) => String(one.simulation_id) === id) : [], again, page)),
  section("Runs", runs.simulation_runs.length ? tickTable(runs.simulation_runs, page, id) : el("p", { class: "empty" }, "There is no run.")),
  el("p", { class: "downloads" }, el("button", { type: "button", onclick: () => keep(suiteOf(agent || { name: String(simulation.agent_id) }, simulation, humans), "scenario-" + id + ".yaml") }, "Save as a suite (YAML)"),
    sure("Delete the scenario", () => ask("DELETE", "/v1/simulation/" + id).then(() => page.go("/agents/" + simulation.agent_id)), page)));
}

/**
 * @param {string} id
 * @param {any[]} humans
 * @param {import("./app.js").Page} page
 */
function starting(id, humans, page) {
  const seed = el("input", { name: "seed", inputMode: "numeric", pattern: "[0-9]*", placeholder: "drawn" });
  const group = el("select", { name: "community" }, el("option", { value: "" }, "all callers"));
  void get("/v1/communities").then(({ communities }) => {
    group.append(...communities.map((/** @type {any} */ one) => el("option", { value: one.id }, String(one.name).slice(0, 60))));
    if (communities.length) made.firstChild.after(el("label", {}, "Who", group));
  }).catch(() => {});
  const send = el("button", { type: "submit", class: "big", disabled: !humans.length }, "Run");
  const made = el("form", { class: "filters needs-write" }, el("label", {}, "Seed", seed), send);
  made.onsubmit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    send.disabled = true;
    const body = { simulation_id: id, ...(seed.value ? { seed: Number(seed.value) } : {}), ...(group.value ? { community_ids: [group.value] } : {}) };
    await post("/v1/queue-simulation-run", body).then((run) => page.go("/runs/" + run.simulation_run_id), page.refused);
    send.disabled = false;
  };
  return made;
}

/**
 * Expectations that all callers have, changed for all of them at once.
 * @param {any[]} humans
 * @param {() => Promise<void>} done
 * @param {import("./app.js").Page} page
 */
function expected(humans, done, page) {
  if (!humans.length) return el("p", { class: "empty" }, "Add a caller first.");
  const text = (/** @type {any} */ one) => JSON.stringify(Object.fromEntries(Object.entries(one).filter(([, value]) => value !== null)));
  const of = (/** @type {any} */ human) => (human.expectations || []);
  const shared = of(humans[0]).filter((/** @type {any} */ one) => humans.every((human) => of(human).some((/** @type {any} */ other) => text(other) === text(one))));
  const known = new Set(shared.map(text));
  const own = humans.reduce((sum, human) => sum + of(human).filter((/** @type {any} */ one) => !known.has(text(one))).length, 0);
  const save = el("button", { type: "button", disabled: true }, "Save the expectations");
  const { node, list } = expectations(shared, () => { save.disabled = false; });
  save.onclick = async () => {
    save.disabled = true;
    try {
      for (const human of humans) {
        const rest = of(human).filter((/** @type {any} */ one) => !known.has(text(one)));
        await ask("PUT", "/v1/update-digital-human/" + human.id, { body: { expectations: [...list, ...rest] } });
      }
      page.notice("The expectations are saved.");
      await done();
    } catch (error) {
      page.refused(error);
      save.disabled = false;
    }
  };
  return el("div", {}, node, own ? el("p", { class: "note" }, own + " more belong to single callers, and stay.") : "", el("p", {}, save));
}

/**
 * @param {string} id
 * @param {any} all
 * @param {any} simulation
 * @param {() => Promise<void>} done
 */
function settingsOf(id, all, simulation, done) {
  const fields = new Fields(all, "SimulationSpec", flat(simulation));
  const first = fields.add(FIRST);
  const rest = fields.add(Object.keys(fields.properties).filter((name) => !ELSEWHERE.includes(name)));
  return form("Save the settings", () => tried(fields, async () => {
    await ask("PUT", "/v1/simulation/" + id, { body: fields.values() });
    await done();
  }), first, more("More", rest));
}
