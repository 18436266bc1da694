import { el, words } from "./dom.js";
import { ask } from "./api.js";

/**
 * Buttons that let a caller be heard before it calls.
 * @param {() => any} human
 * @param {import("./app.js").Page} page
 */
export function hearing(human, page) {
  const text = el("input", { id: "f-text", maxLength: 500, placeholder: "the beginning of the intent" });
  const codec = el("select", { id: "f-codec" }, ["PCMU", "PCMA", "G722", "L16", "OPUS"].map((name) => el("option", {}, name)));
  const about = el("p", { role: "status" });
  const player = el("audio", { controls: true, hidden: true });
  let url = "";
  page.after(() => { player.pause(); URL.revokeObjectURL(url); });
  const parts = /** @type {[string, string][]} */ ([["clean", "The voice alone"], ["sent", "As the agent hears it"], ["noise", "The noise alone"]]);
  const buttons = parts.map(([part, label]) => el("button", { type: "button", data: { part }, onclick: async () => {
    buttons.forEach((one) => { one.disabled = true; });
    about.textContent = "The voice is being made.";
    try {
      const response = await ask("POST", "/v1/preview", { body: { digital_human: human(), codec: codec.value, part, ...(text.value.trim() ? { text: text.value.trim() } : {}) } });
      const figure = (/** @type {string} */ name) => response.headers.get(name);
      const blob = await response.blob();
      URL.revokeObjectURL(url);
      url = URL.createObjectURL(blob);
      player.src = url;
      player.hidden = false;
      const told = (figure("x-warnings") || "").split(",").filter(Boolean).map((one) => decodeURIComponent(one.replace(/\+/g, " ")));
      const sentence = [figure("x-voice") && "Voice " + figure("x-voice"), figure("x-level-dbov") && "level " + figure("x-level-dbov") + " dBov", figure("x-snr-db") ? "speech " + figure("x-snr-db") + " dB above the noise" : "no noise",
        figure("x-cut") === "true" && "cut after 10 s"].filter(Boolean).join(", ");
      about.replaceChildren(words([label + ": " + sentence, ...told].join(". ") + "."));
      await player.play().catch(() => {});
    } catch (error) {
      about.replaceChildren(words(/** @type {Error} */ (error).message));
    }
    buttons.forEach((one) => { one.disabled = false; });
  } }, label));
  return el("section", { class: "hearing needs-write", "aria-labelledby": "s-hear" }, el("h2", { id: "s-hear" }, "Hear the caller"), el("div", { class: "field" }, el("label", { for: "f-text" }, "Words"), text),
    el("div", { class: "field" }, el("label", { for: "f-codec" }, "Codec"), codec), el("p", { class: "toggles" }, buttons), player, about);
}
