// Elements, formats and small helpers. Text is always set as text, never as markup.

/**
 * Makes an element. `class` sets its class, `data` its data attributes, names with a dash attributes, all else properties.
 * @param {string} name
 * @param {Record<string, any>} [props]
 * @param {...any} children
 * @returns {any}
 */
export function el(name, props = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null) continue;
    if (key === "class") node.className = value;
    else if (key === "data") Object.assign(node.dataset, value);
    else if (key.includes("-") || key === "role" || key === "for") node.setAttribute(key, String(value));
    else /** @type {any} */ (node)[key] = value;
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Most characters of a text that are shown at once. */
const SHOWN_CHARS = 400;

/**
 * A user's text: isolated, so that its direction and length disturb nothing; the rest of a long one behind a click.
 * @param {any} value
 * @param {number} [most]
 */
export function words(value, most = SHOWN_CHARS) {
  const text = String(value ?? "");
  if (text.length <= most) return el("bdi", { class: "words" }, text);
  const rest = el("button", { type: "button", class: "more" }, "show all");
  const shown = el("bdi", { class: "words" }, text.slice(0, most) + "\u2026");
  rest.onclick = () => { shown.textContent = text; rest.remove(); };
  return el("span", {}, shown, " ", rest);
}

/** @param {number | null | undefined} ms */
export function ms(ms) {
  return ms === null || ms === undefined ? "" : Math.round(ms).toLocaleString("en") + " ms";
}

/** @param {number | null | undefined} seconds */
export function asMs(seconds) {
  return seconds === null || seconds === undefined ? "" : ms(seconds * 1000);
}

/**
 * A position in a call: 1:02:03.4.
 * @param {number} at milliseconds
 */
export function clock(at) {
  const tenths = Math.floor(Math.abs(at) / 100);
  const sign = at < 0 && tenths > 0 ? "\u2212" : "";
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  const [hours, minutes, seconds] = [Math.floor(tenths / 36000), Math.floor(tenths / 600) % 60, Math.floor(tenths / 10) % 60];
  return sign + (hours ? hours + ":" + two(minutes) : String(minutes)) + ":" + two(seconds) + "." + (tenths % 10);
}

/** @param {number | null | undefined} ms */
export function span(ms) {
  if (ms === null || ms === undefined) return "";
  const seconds = Math.round(ms / 1000);
  return seconds < 60 ? seconds + " s" : Math.floor(seconds / 60) + " min " + (seconds % 60) + " s";
}

/**
 * A time as the clock of this machine shows it, with its zone.
 * @param {string | null | undefined} at
 */
export function when(at) {
  return at ? new Date(at).toLocaleString("en", { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZoneName: "short" }) : "";
}

/**
 * A table whose rows are given as cells.
 * @param {string} label
 * @param {string[]} head
 * @param {any[][]} rows
 */
export function table(label, head, rows) {
  return el("div", { class: "scroll", tabIndex: 0, role: "group", "aria-label": label },
    el("table", {},
      el("caption", { class: "hidden" }, label),
      el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell) => el("td", {}, cell)))))));
}

/**
 * @param {string} title
 * @param {...any} children
 */
export function section(title, ...children) {
  const id = "s-" + title.toLowerCase().replace(/[^a-z]+/g, "-");
  return el("section", { "aria-labelledby": id }, el("h2", { id }, title), ...children);
}

/** @param {...[string, any]} pairs */
export function facts(...pairs) {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "" && !(Array.isArray(value) && !value.length));
  return el("dl", { class: "facts" }, shown.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

/**
 * Bytes of a text in base64.
 * @param {string} text
 */
export function bytesOf(text) {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

/** A table whose rows are drawn anew only where what they show has changed. */
export class Rows {
  /**
   * @param {string} label
   * @param {string[]} head
   */
  constructor(label, head) {
    this.node = table(label, head, []);
    this.body = this.node.querySelector("tbody");
    /** @type {Map<string, HTMLElement>} */
    this.known = new Map();
  }

  /**
   * @param {any[]} list
   * @param {(one: any) => any[]} cells
   */
  show(list, cells) {
    const fresh = new Map();
    for (const one of list) {
      const same = JSON.stringify(one);
      fresh.set(same, this.known.get(same) || el("tr", {}, cells(one).map((cell) => el("td", {}, cell))));
    }
    this.known = fresh;
    renew(this.body, [...fresh.values()]);
  }
}

/**
 * Gives a box these children. Those that it has already stay where they are; the control in focus is found again.
 * @param {HTMLElement} box
 * @param {any[]} nodes
 */
export function renew(box, nodes) {
  const at = document.activeElement;
  const used = at && at !== box && box.contains(at) ? at : null;
  const wanted = new Set(nodes);
  for (const old of [...box.childNodes]) if (!wanted.has(old)) old.remove();
  nodes.forEach((node, n) => { if (box.childNodes[n] !== node) box.insertBefore(node, box.childNodes[n] || null); });
  if (used && !used.isConnected) refocus(box, used);
}

/**
 * Shows something else in a box where its value is another one than before.
 * @param {HTMLElement} box
 * @param {any} value
 * @param {() => any} make
 */
export function once(box, value, make) {
  const same = JSON.stringify(value) ?? "";
  if (shownIn.get(box) !== same) swap(box, make());
  shownIn.set(box, same);
}

/** @type {WeakMap<HTMLElement, string>} */
const shownIn = new WeakMap();

let isDown = false;
for (const [name, is] of /** @type {[string, boolean][]} */ ([["pointerdown", true], ["pointerup", false], ["pointercancel", false]])) {
  addEventListener(name, () => { isDown = is; }, true);
}

/** True while a button of the mouse or a finger is down: what it is on must stay until the click has come. */
export function isPressed() {
  return isDown;
}

/** Parts that scroll within the page. */
const SCROLLING = ".scroll, .transcript, .events, .ladder";

/**
 * Shows something else in a box. The same control keeps the focus, lists keep their place, and one at its end stays there.
 * @param {HTMLElement} box
 * @param {...any} nodes
 */
export function swap(box, ...nodes) {
  const at = document.activeElement;
  const used = at && at !== box && box.contains(at) ? at : null;
  const places = [...box.querySelectorAll(SCROLLING)].map((list) => ({
    left: list.scrollLeft, top: list.scrollTop, isAtEnd: list.scrollHeight > list.clientHeight && list.scrollTop + list.clientHeight > list.scrollHeight - 4,
  }));
  box.replaceChildren(...nodes.filter(Boolean));
  [...box.querySelectorAll(SCROLLING)].forEach((list, n) => {
    const place = places[n];
    if (!place) return;
    list.scrollLeft = place.left;
    list.scrollTop = place.isAtEnd ? list.scrollHeight : place.top;
  });
  if (used) refocus(box, used);
}

/**
 * @param {HTMLElement} box
 * @param {Element} used control that was in focus
 */
function refocus(box, used) {
  const again = [...box.querySelectorAll(used.tagName)].find((node) => nameOf(node) === nameOf(used));
  if (again) /** @type {HTMLElement} */ (again).focus({ preventScroll: true });
}

/**
 * By what a control is known again.
 * @param {Element} node
 */
function nameOf(node) {
  const label = node.getAttribute("aria-label") || (node.closest("label") || node).textContent;
  return [label, node.getAttribute("href"), /** @type {HTMLElement} */ (node).dataset.from].join("|");
}

/**
 * True where the control in focus uses a key itself.
 * @param {Element} at
 * @param {string} key
 */
export function usesKey(at, key) {
  const isArrow = key.startsWith("Arrow");
  const field = at.closest("input, select, textarea");
  if (field && /** @type {any} */ (field).type !== "radio" && /** @type {any} */ (field).type !== "checkbox") return true;
  if (key === " " || key === "Enter") return Boolean(field || at.closest("button, summary, a"));
  return isArrow && Boolean(field || at.closest(".scroll, pre"));
}
