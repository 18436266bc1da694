import { el, words } from "./dom.js";
import { SENTENCES, sentence } from "./told.js";

/** @param {number | null | undefined} value */
const has = (value) => value !== null && value !== undefined;

/**
 * True where a language model has to judge.
 * @param {any} one
 */
export function needsModel(one) {
  return Boolean(one.meaning);
}

/** Kinds of sentences: label, and what is asked for: field, type, words before it. */
const KINDS = /** @type {Record<string, [string, [string, string, string][]]>} */ ({
  metric: ["a number is within", [["metric", "metric", ""], ["at_most", "number", "at most"], ["at_least", "number", "at least"]]],
  heard: ["the agent says", [["heard", "text", ""]]],
  not_heard: ["the agent never says", [["not_heard", "text", ""]]],
  ended_by: ["the call is ended by", [["ended_by", "side", ""], ["within_s", "number", "within seconds"]]],
  tool: ["a tool is called", [["tool", "text", "named"], ["args", "json", "with (JSON)"]]],
  meaning: ["by meaning", [["meaning", "text", ""]]],
  dtmf_received: ["the agent keys", [["dtmf_received", "text", ""]]],
});

/**
 * A list of expectations that is edited by sentences.
 * @param {any[]} given
 * @param {() => void} changed
 */
export function expectations(given, changed) {
  const list = given.slice();
  const rows = el("ul", { class: "sentences" });
  const fill = () => {
    rows.replaceChildren(...list.map((one, at) => el("li", {}, words(sentence(one), 200), " ", el("button", { type: "button", class: "more", "aria-label": "Remove: " + sentence(one).slice(0, 80), onclick: () => {
      list.splice(at, 1);
      fill();
      changed();
    } }, "remove"))));
    if (!list.length) rows.append(el("li", { class: "empty" }, "Nothing is expected yet."));
  };
  const kind = el("select", { "aria-label": "Kind of expectation" }, Object.entries(KINDS).map(([name, [label]]) => el("option", { value: name }, label)));
  const parts = el("span", { class: "parts" });
  const problem = el("span", { class: "error", role: "alert" });
  const show = () => {
    parts.replaceChildren(...KINDS[kind.value][1].flatMap(([name, type, label]) => {
      const about = { name, "aria-label": label || KINDS[kind.value][0] };
      const control = type === "side" ? el("select", about, el("option", { value: "agent" }, "the agent"), el("option", { value: "user" }, "the caller")) :
        el("input", { ...about, type: type === "number" ? "number" : "text", step: "any", min: type === "number" ? "0" : undefined, ...(type === "metric" ? { value: SENTENCES[0][0] } : {}) });
      if (type === "metric") control.setAttribute("list", "metric-names");
      return [label ? label + " " : "", control];
    }));
  };
  kind.onchange = show;
  show();
  const add = () => {
    /** @type {Record<string, any>} */
    const made = {};
    try {
      parts.querySelectorAll("input, select").forEach((/** @type {any} */ control) => {
        const type = (KINDS[kind.value][1].find(([name]) => name === control.name) || [])[1];
        const text = control.value.trim();
        if (text) made[control.name] = type === "number" ? Number(text) : type === "json" ? JSON.parse(text) : text;
      });
    } catch { problem.textContent = "This is no JSON."; return; }
    const first = KINDS[kind.value][1][0][0];
    if (!made[first]) { problem.textContent = "Something is missing."; return; }
    if (made.metric && !has(made.at_most) && !has(made.at_least)) { problem.textContent = "A number needs a bound."; return; }
    problem.textContent = "";
    list.push(made);
    show();
    fill();
    changed();
  };
  fill();
  const node = el("div", {}, rows, el("p", { class: "sentence" }, "It is expected that ", kind, " ", parts, " ", el("button", { type: "button", onclick: add }, "Add"), " ", problem),
    el("datalist", { id: "metric-names" }, SENTENCES.map(([name, about]) => el("option", { value: name }, about))));
  return { node, list };
}
