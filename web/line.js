import { el, ms, table, words } from "./dom.js";
import { chip, codeWords } from "./told.js";
import { post } from "./api.js";

/** The steps of a test in words. */
const STEPS = /** @type {Record<string, string>} */ ({
  settings: "The settings are complete", session: "The platform makes a session", resolved: "The address is found",
  connected: "The agent is connected to", answered: "The agent answers", first_sound: "The agent makes a sound",
});

/**
 * A code in words with what to do.
 * @param {string | null} code
 */
function codeInWords(code) {
  const [about, advice] = code ? codeWords(code) : ["", ""];
  return [about, advice].filter(Boolean).join(". ");
}

/** @param {{ ok: boolean, steps: any[] }} tested */
function outcome(tested) {
  const last = tested.steps[tested.steps.length - 1];
  const failed = (STEPS[last.name] || last.name).toLowerCase();
  const isIdle = tested.ok && last.name === "settings";
  const verdict = isIdle ? "Nothing was dialled: " + (last.message || "this kind cannot be tested") + "." : tested.ok ? "The line holds." : "The line fails at: " + failed + ". " + codeInWords(last.code);
  return el("div", {}, el("p", {}, verdict), table("Steps of the test", ["Step", "Holds", "Time", "Code", "About"], tested.steps.map((step) => [
    STEPS[step.name] || step.name, chip(step.ok ? "yes" : "no"), ms(step.ms), step.ok ? "" : codeInWords(step.code), words(step.message, 200)])));
}

/**
 * A button that tests a line, and its steps. Nothing of the call is kept.
 * @param {() => Promise<any>} ask
 * @param {string} text
 * @param {import("./app.js").Page} page
 */
export function lineCheck(ask, text, page) {
  const steps = el("div", { "aria-live": "polite" });
  const button = el("button", { type: "button", class: "line-test" }, text);
  button.onclick = async () => {
    button.disabled = true;
    steps.replaceChildren(el("p", {}, "The agent is being called."));
    await ask().then((tested) => steps.replaceChildren(tested ? outcome(tested) : ""), (error) => { steps.replaceChildren(); page.refused(error); });
    button.disabled = false;
  };
  return el("div", {}, el("p", {}, button), steps);
}

/**
 * The same for an agent that is stored.
 * @param {string} id
 * @param {import("./app.js").Page} page
 */
export function lineTest(id, page) {
  return lineCheck(() => post("/v1/agents/" + id + "/test-connection"), "Test the line", page);
}
