import { el, words, ms, section } from "./dom.js";

/** Most entries that are shown at once. */
const MOST = 300;

/**
 * The signalling of a call; a click on a message shows it whole.
 * @param {any} ladder
 * @param {((ms: number) => void) | null} seek null where there is nothing to hear
 * @param {() => Promise<any>} [all] brings the figures of the network too, which are many
 */
export function ladderView(ladder, seek, all) {
  let entries = (ladder && ladder.entries) || [];
  if (!entries.length) return section("Signalling", el("p", { class: "empty" }, "There is no signalling to show."));
  const shown = { message: true, rtcp: false, digit: true };
  const list = el("ol", { class: "ladder" });
  const fill = () => {
    const wanted = entries.filter((/** @type {any} */ entry) => /** @type {any} */ (shown)[entry.kind]);
    list.replaceChildren(...wanted.slice(0, MOST).map((/** @type {any} */ entry, /** @type {number} */ at) => rung(entry, at ? wanted[at - 1].at_ms : null, seek)));
    if (wanted.length > MOST) list.append(el("li", {}, (wanted.length - MOST) + " more are in the download"));
  };
  const toggle = (/** @type {string} */ kind, /** @type {string} */ name) => {
    const box = el("input", { type: "checkbox", checked: /** @type {any} */ (shown)[kind], onchange: async () => {
      /** @type {any} */ (shown)[kind] = box.checked;
      if (kind === "rtcp" && all) {
        const whole = await all().catch(() => null);
        if (whole) [entries, all] = [whole.entries, undefined];
      }
      fill();
    } });
    return el("label", {}, box, name);
  };
  fill();
  return section("Signalling", el("p", { class: "toggles" }, toggle("message", "Messages"), toggle("rtcp", "Network figures"), toggle("digit", "Keys")), list);
}

/**
 * @param {any} entry
 * @param {number | null} before time of the entry above, in milliseconds
 * @param {((ms: number) => void) | null} seek
 */
function rung(entry, before, seek) {
  const arrow = entry.direction === "sent" ? "\u2192" : "\u2190";
  const line = el("span", { class: "line" }, el("span", { class: "hidden" }, entry.direction + " "), el("span", { "aria-hidden": "true" }, arrow + " "), words(entry.start_line, 160));
  const times = [ms(entry.at_ms), before === null ? "" : el("small", {}, " +" + ms(entry.at_ms - before))];
  const time = seek ? el("button", { type: "button", class: "at", onclick: () => seek(entry.at_ms) }, times) : el("span", { class: "at" }, times);
  const body = entry.message
    ? el("details", {}, el("summary", {}, line, " ", el("small", {}, entry.protocol + " " + (entry.peer || ""))), el("pre", { tabIndex: 0 }, entry.message))
    : el("span", {}, line, " ", el("small", {}, entry.protocol));
  return el("li", { class: entry.direction, data: { kind: entry.kind } }, time, body);
}
