import { el, words, section, table, facts } from "./dom.js";
import { get } from "./api.js";
import { countsOf, tally } from "./told.js";
import { QUESTIONS, questions } from "./questions.js";

/**
 * How often people and the judge agree, over the calls that people reviewed.
 * @param {any[]} results
 */
function agreement(results) {
  const parts = QUESTIONS.map(([, question, member, part]) => {
    const both = results.map((one) => (one.evaluations || [])[0]).filter((one) => one && one[member] !== null && one[member] !== undefined && one["human_" + (part === "goal" ? "goal_success" : part)] !== null && one["human_" + (part === "goal" ? "goal_success" : part)] !== undefined);
    const same = both.filter((one) => one[member] === one["human_" + (part === "goal" ? "goal_success" : part)]).length;
    return /** @type {[string, any]} */ ([question, both.length ? same + " of " + both.length + " as the judge" : null]);
  });
  return parts.some(([, text]) => text) ? facts(...parts) : el("p", { class: "empty" }, "Nobody has answered where the judge did too.");
}

/**
 * Runs whose calls can be reviewed; with one chosen, its calls one after the other.
 * @param {import("./app.js").Page} page
 */
export async function reviewPage(page) {
  const query = new URLSearchParams(location.search);
  const run = (query.get("run") || "").replace(/[^0-9]/g, "");
  page.title("Review");
  if (!run) {
    const { simulation_runs: runs } = await get("/v1/simulation-runs?status=COMPLETED&limit=50");
    return page.show(el("h1", {}, "Review"), runs.length ? table("Runs that can be reviewed", ["Run", "Agent", "Scenario", "Calls", "Results"], runs.map((/** @type {any} */ one) => [
      el("a", { href: "/review?run=" + one.id }, String(one.id)), words(one.agent_name ?? one.agent_id, 60), words(one.simulation_name ?? one.simulation_id, 60), one.total_tests, tally(countsOf(one))])) : el("p", { class: "empty" }, "No run is over yet."), el("p", {}, el("a", { href: "/judges" }, "Report cards of judges"), " hold what people said against what the judge said."));
  }
  const whole = await get("/v1/retrieve-simulation-results/" + run);
  const results = whole.simulation_results.filter((/** @type {any} */ one) => (one.evaluations || []).length);
  if (!results.length) return page.show(el("h1", {}, "Review of run " + run), el("p", { class: "empty" }, "No call of this run was evaluated."));
  const wanted = Number(query.get("call"));
  const isOpen = (/** @type {any} */ one) => !one.evaluations[0].reviewer;
  let at = Math.max(0, wanted ? results.findIndex((/** @type {any} */ one) => one.id === wanted) : results.findIndex(isOpen));
  const place = el("div");
  const head = el("div");
  const next = async () => {
    results[at] = (await get("/v1/retrieve-simulation-result/" + results[at].id)).simulation_result;
    const order = [...results.keys()].map((n) => (at + 1 + n) % results.length);
    const found = order.find((n) => isOpen(results[n]));
    if (found === undefined) { await show(at); page.notice("All calls of this run are reviewed."); return; }
    await show(found);
  };
  /** @param {number} n */
  const show = async (n) => {
    at = n;
    const { simulation_result: fresh } = await get("/v1/retrieve-simulation-result/" + results[n].id);
    results[n] = fresh;
    head.replaceChildren(el("p", { class: "downloads" }, "Call " + (n + 1) + " of " + results.length + ", " + results.filter((/** @type {any} */ one) => !isOpen(one)).length + " reviewed ",
      el("button", { type: "button", disabled: n === 0, onclick: () => void show(n - 1) }, "Previous"), el("button", { type: "button", disabled: n === results.length - 1, onclick: () => void show(n + 1) }, "Next")));
    place.replaceChildren(await questions(fresh, next, page), section("Judge and people in this run", agreement(results)));
  };
  page.show(el("h1", {}, "Review of run " + run), head, place);
  await show(at);
}
