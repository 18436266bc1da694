import { el, words, clock, ms, table, section } from "./dom.js";
import { get, maybe, outline, recording } from "./api.js";
import { Lanes } from "./lanes.js";
import { Player } from "./player.js";
import { chip, wordOf } from "./told.js";

/**
 * One call of the two: its lanes, and its sound when it is asked for.
 * @param {string} id
 * @param {string} label
 */
async function side(id, label) {
  const of = "/v1/simulation-result/" + id;
  const { simulation_result: result } = await get("/v1/retrieve-simulation-result/" + id);
  const [turns, human] = await Promise.all([maybe(of + "/turns?words=false"), result.digital_human_id ? maybe("/v1/digital-human/" + result.digital_human_id).catch(() => null) : null]);
  const record = human && (human.digital_human || human);
  return { id, label, result, turns: (turns && turns.turns) || [], caller: record ? record.name : null };
}

/**
 * Two calls under each other on one clock: a click on either moves both, one of them is heard.
 * @param {import("./app.js").Page} page
 */
export async function pairPage(page) {
  const query = new URLSearchParams(location.search);
  const ids = [query.get("a"), query.get("b")].map((id) => (id || "").replace(/[^0-9]/g, ""));
  page.title("Two calls");
  if (!ids[0] || !ids[1]) return page.failed({ status: 404 });
  const sides = await Promise.all([side(ids[0], "Earlier"), side(ids[1], "Later")]);
  const longest = Math.max(1000, ...sides.map((one) => one.result.duration_ms || 0));
  let at = 0;
  let heard = 1;
  let isSeeking = false;
  const place = (/** @type {number} */ to) => {
    at = Math.max(0, Math.min(longest, to));
    lanes.forEach((one) => one.setPosition(at));
  };
  const seek = (/** @type {number} */ to) => {
    place(to);
    // The call that is heard may end before this place.
    isSeeking = true;
    players[heard].seek(at);
    isSeeking = false;
  };
  const lanes = sides.map((one) => {
    const made = new Lanes({ ask: (zoom, from, to) => outline(one.id, zoom, from, to), onSeek: seek });
    made.canvas.setAttribute("aria-label", "Position, " + one.label.toLowerCase() + " call");
    made.setDuration(longest);
    return made;
  });
  // Each call has a player of its own; one of them is heard.
  const players = sides.map((one, n) => {
    const length = one.result.duration_ms || 0;
    const made = new Player({ audio: recording(one.id, () => length), onTime: (to) => { if (n === heard && !isSeeking) place(to); }, tracks: [] });
    made.grow(length);
    page.after(() => { made.close(); lanes[n].close(); });
    return made;
  });
  const shown = () => players.forEach((player, n) => { player.node.hidden = n !== heard; });
  const choice = sides.map((one, n) => el("label", {}, el("input", { type: "radio", name: "heard", checked: n === heard, onchange: () => {
    const plays = players[heard].isPlaying();
    players[heard].pause();
    heard = n;
    shown();
    seek(at);
    if (plays && at < (sides[n].result.duration_ms || 0)) void players[n].play();
  } }), one.label));
  const head = (/** @type {any} */ one) => el("p", { class: "chips" }, el("b", {}, one.label), " ", el("a", { href: "/results/" + one.id }, "call " + one.id), " ", one.caller ? words(one.caller, 60) : "", " ", chip(wordOf(one.result)), " ",
    words(one.result.verdict && one.result.verdict.reason || "", 160));
  shown();
  page.key = (event) => players[heard].key(event);
  const agent = sides.map((one) => one.turns.filter((/** @type {any} */ turn) => turn.speaker === "AGENT"));
  const rows = Array.from({ length: Math.max(agent[0].length, agent[1].length) }, (_, n) => {
    const cells = agent.flatMap((list) => {
      const turn = list[n];
      const from = turn ? turn.from_sample / 16 : 0;
      return turn ? [el("button", { type: "button", class: "at", onclick: () => seek(from) }, clock(from)), ms(turn.latency_ms), words(turn.text || "", 160)] : ["", "", ""];
    });
    return [n + 1, ...cells];
  });
  page.show(el("h1", {}, "Two calls on one clock"), head(sides[0]), lanes[0].node, head(sides[1]), lanes[1].node,
    el("fieldset", { class: "solo" }, el("legend", {}, "Heard"), choice), ...players.map((player) => player.node),
    section("Answers of the agent", rows.length ? table("Answers of the agent in both calls", ["", "Earlier", "Latency", "Words", "Later", "Latency", "Words"], rows) : el("p", { class: "empty" }, "There is no answer to compare.")));
  sides.forEach((one, n) => { void outline(one.id, longest > 600000 ? 0 : 1, 0, null).then((whole) => lanes[n].setWhole(whole)).catch(() => {}); });
}
