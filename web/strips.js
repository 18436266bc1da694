import { el, words, ms, renew } from "./dom.js";
import { outline } from "./api.js";
import { chip, groupOf, wordOf } from "./told.js";

/** Calls whose outlines are asked for at once. */
const AT_ONCE = 3;
/** After this a strip of a call that goes on is drawn anew, in milliseconds. */
const AGAIN_MS = 2000;
/** Longest call whose outline is asked for in steps of 100 ms. */
const FINE_MS = 120000;
/** What is looked at first. */
const ORDER = ["going on", "failed", "unreachable", "not judged", "cancelled", "passed"];

/**
 * A result's longest answer in milliseconds; 0 where none was measured.
 * @param {any} one
 */
function slowest(one) {
  return 1000 * Math.max(0, ...(one.latency || []));
}

/** All calls of a run as small pairs of lanes: those that go on, then those that failed, then the slowest. */
export class Strips {
  /** @param {AbortSignal} signal ends drawing */
  constructor(signal) {
    this.signal = signal;
    this.node = el("ul", { class: "strips", "aria-label": "Calls" });
    /** @type {Map<number, { node: any, canvas: any, same: string, one: any, isDrawn: boolean, asked: number }>} */
    this.known = new Map();
    /** @type {Set<number>} */
    this.visible = new Set();
    this.busy = 0;
    this.eye = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const id = Number(/** @type {HTMLElement} */ (entry.target).dataset.id);
        if (entry.isIntersecting) this.visible.add(id); else this.visible.delete(id);
      }
      this.fill();
    }, { rootMargin: "200px" });
    const timer = setInterval(() => { if (!document.hidden) this.fill(); }, AGAIN_MS);
    signal.addEventListener("abort", () => { clearInterval(timer); this.eye.disconnect(); });
  }

  /** @param {any[]} list */
  show(list) {
    const place = (/** @type {any} */ one) => { const at = ORDER.indexOf(groupOf(one)); return at < 0 ? ORDER.length : at; };
    const sorted = list.slice().sort((one, other) => place(one) - place(other) || slowest(other) - slowest(one) || one.id - other.id);
    renew(this.node, sorted.map((one) => this.strip(one)));
    this.fill();
  }

  /** @param {any} one */
  strip(one) {
    const same = JSON.stringify([one.status, one.verdict, one.latency, one.digital_human_name]);
    const old = this.known.get(one.id);
    if (old && old.same === same) { old.one = one; return old.node; }
    const canvas = old ? old.canvas : el("canvas", { width: 200, height: 32, "aria-hidden": "true" });
    const worst = slowest(one);
    const link = el("a", { href: "/results/" + one.id }, el("span", { class: "top" }, "Call " + one.id + " ", words(one.digital_human_name ?? "", 40)), canvas, el("span", { class: "chips" }, chip(wordOf(one)), worst ? " longest " + ms(worst) : ""));
    const node = el("li", { data: { id: one.id } }, link);
    if (old) { this.eye.unobserve(old.node); this.visible.delete(one.id); }
    this.known.set(one.id, { node, canvas, same, one, isDrawn: false, asked: old && old.one.status === one.status ? old.asked : 0 });
    this.eye.observe(node);
    return node;
  }

  /** Asks for the outlines of strips that can be seen and are not drawn, or go on. */
  fill() {
    if (this.signal.aborted) return;
    const now = performance.now();
    for (const id of this.visible) {
      if (this.busy >= AT_ONCE) return;
      const strip = this.known.get(id);
      if (!strip || strip.isDrawn || now - strip.asked < AGAIN_MS || !(strip.one.duration_ms || strip.one.status === "RUNNING")) continue;
      strip.asked = now;
      this.busy += 1;
      void this.draw(id, strip).finally(() => { this.busy -= 1; this.fill(); });
    }
  }

  /**
   * @param {number} id
   * @param {any} strip
   */
  async draw(id, strip) {
    const goesOn = strip.one.status === "RUNNING";
    const fine = (strip.one.duration_ms || 0) <= FINE_MS ? 1 : 0;
    const found = await outline(id, fine, 0, null).catch(() => null);
    if (this.signal.aborted) return;
    strip.isDrawn = !goesOn;
    if (!found) return;
    const pen = strip.canvas.getContext("2d");
    const style = getComputedStyle(strip.canvas);
    const { width, height } = strip.canvas;
    pen.clearRect(0, 0, width, height);
    const steps = found.levels.length / 4;
    ["dh", "agent"].forEach((name, side) => {
      pen.fillStyle = style.getPropertyValue("--" + name).trim();
      const middle = (height / 4) * (1 + 2 * side);
      for (let x = 0; x < width; x += 1) {
        let level = 0;
        for (let at = Math.floor((x / width) * steps); at < Math.max(Math.floor((x / width) * steps) + 1, ((x + 1) / width) * steps) && at < steps; at += 1) level = Math.max(level, Math.abs(found.levels[at * 4 + side * 2]), found.levels[at * 4 + side * 2 + 1]);
        const high = Math.max(0.5, Math.sqrt(level / 127) * (height / 4));
        pen.fillRect(x, middle - high, 1, 2 * high);
      }
    });
  }
}
