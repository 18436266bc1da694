import { el, clock, ms } from "./dom.js";

/**
 * The outline of a stretch of a recording: four levels (-127 to 127) a step.
 * @typedef {{ stepMs: number, fromMs: number, durationMs: number, levels: Int8Array }} Outline
 * @typedef {{ from: number, to: number }} Stretch
 * @typedef {{ at: number, end?: number, kind: string, side: string, text: string }} Mark
 */

/** Height of the events between the lanes, in CSS pixels; that of a lane is set by the style. */
const MARKS_PX = 26;
const RULER_PX = 18;
/** Height of a row of spans of the agent, below its lane, and the most rows. */
const ROW_PX = 13;
const MOST_SPAN_ROWS = 6;
/** Shortest stretch that fills the lanes, in milliseconds. */
const LEAST_MS = 1000;
/** Most pixels between a mark and the pointer that is told its name. */
const NEAR_PX = 8;
/** Least way of the pointer that drags, in pixels. */
const DRAG_PX = 5;
/** Narrowest span that has room for words, in pixels. */
const LEAST_TEXT_PX = 30;
/** Kinds of events: their names, and the shape of their marks. */
export const KINDS = /** @type {Record<string, [string, string]>} */ ({
  barge_in: ["Interruption", "\u25b2"], not_counted: ["Overlap, not counted", "\u25b3"], dead_air: ["Dead air", "\u25ad"], probe: ["Probe", "\u25cf"], dtmf: ["Key", "\u25c6"], hold: ["Hold", "\u2016"],
  codec: ["Session change", "\u271a"], late_turn: ["Late turn", "\u25e3"], loss: ["Loss", "\u2715"], tool_call: ["Tool call", "\u2605"], span: ["Agent span", "\u25ac"], other: ["Other event", "\u25cb"],
});

/** Two lanes (Digital Human above, agent below) with the events between them, drawn from outlines. */
export class Lanes {
  /**
   * @param {{ ask: (zoom: number, from: number, to: number) => Promise<Outline | null>, onSeek: (ms: number) => void, onSelect?: (stretch: Stretch) => void }} hooks
   */
  constructor(hooks) {
    this.hooks = hooks;
    this.duration = 1000;
    this.view = { from: 0, to: 1000 };
    this.position = 0;
    /** @type {Stretch[]} */
    this.lit = [];
    this.lane = 74;
    /** @type {Mark[]} */
    this.marks = [];
    /** Row of each span of the agent. @type {Map<Mark, number>} */
    this.rows = new Map();
    /** @type {Outline | null} */
    this.whole = null;
    /** @type {Outline | null} */
    this.fine = null;
    this.asking = "";
    this.canvas = /** @type {HTMLCanvasElement} */ (el("canvas", {
      class: "lanes", tabIndex: 0, role: "slider", "aria-label": "Position in the call", "aria-valuemin": 0, "aria-valuenow": 0, "aria-valuemax": 1000,
    }));
    const button = (/** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ onclick) =>
      el("button", { type: "button", "aria-label": label, title: label, onclick }, text);
    this.measured = el("output", { class: "measured" });
    this.node = el("div", { class: "lanebox" }, this.measured,
      el("div", { class: "lanenames", "aria-hidden": "true" }, el("span", {}, "Digital Human"), el("span", {}, "Agent")),
      this.canvas,
      el("div", { class: "zooms" },
        button("+", "Show a shorter stretch", () => this.zoom(0.5)), button("\u2212", "Show a longer stretch", () => this.zoom(2)),
        button("All", "Show the whole call", () => this.show(0, this.duration))));
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      if (event.ctrlKey) this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.at(event));
      else this.move((event.deltaY / 400) * (this.view.to - this.view.from));
    }, { passive: false });
    this.canvas.addEventListener("pointermove", (event) => { this.canvas.title = this.nameAt(event); });
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    this.over = new AbortController();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw(), { signal: this.over.signal });
  }

  /** Lets go of what lives longer than its view. */
  close() {
    this.over.abort();
  }

  /** @param {MouseEvent} event */
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    return this.view.from + share * (this.view.to - this.view.from);
  }

  /**
   * A click seeks; a stretch that is dragged over is measured.
   * @param {PointerEvent} event
   */
  press(event) {
    if (event.button !== 0) return;
    const inside = (/** @type {PointerEvent} */ one) => Math.min(this.duration, Math.max(0, this.at(one)));
    const begin = inside(event);
    const over = new AbortController();
    /** @type {Stretch | null} */
    let stretch = null;
    addEventListener("pointermove", (moved) => {
      if (!this.hooks.onSelect || (!stretch && Math.abs(moved.clientX - event.clientX) < DRAG_PX)) return;
      const end = inside(moved);
      stretch = { from: Math.min(begin, end), to: Math.max(begin, end) };
      this.lit = [stretch];
      this.measured.textContent = ms(stretch.to - stretch.from) + " from " + clock(stretch.from);
      this.draw();
    }, { signal: over.signal });
    addEventListener("pointercancel", () => over.abort(), { signal: over.signal });
    addEventListener("pointerup", () => {
      over.abort();
      if (stretch && this.hooks.onSelect) this.hooks.onSelect(stretch);
    }, { signal: over.signal });
    this.hooks.onSeek(begin);
  }

  /**
   * @param {number} factor
   * @param {number} [around]
   */
  zoom(factor, around = this.position) {
    const length = Math.min(this.duration, Math.max(LEAST_MS, (this.view.to - this.view.from) * factor));
    const share = (around - this.view.from) / (this.view.to - this.view.from);
    const from = around - Math.min(1, Math.max(0, share)) * length;
    this.show(from, from + length);
  }

  /** @param {number} by milliseconds */
  move(by) {
    this.show(this.view.from + by, this.view.to + by);
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  show(from, to) {
    const length = Math.min(Math.max(LEAST_MS, to - from), Math.max(LEAST_MS, this.duration));
    const begin = Math.max(0, Math.min(from, this.duration - length));
    this.view = { from: begin, to: begin + length };
    this.draw();
    void this.refine();
  }

  /** @param {number} duration */
  setDuration(duration) {
    const wasWhole = this.view.from === 0 && this.view.to >= this.duration;
    this.duration = Math.max(LEAST_MS, duration);
    this.canvas.setAttribute("aria-valuemax", String(Math.round(this.duration)));
    if (wasWhole || this.view.to > this.duration) this.view = { from: 0, to: this.duration };
  }

  /** @param {Outline} outline of the whole call */
  setWhole(outline) {
    this.whole = outline;
    this.fine = null;
    this.draw();
  }

  /** Asks for shorter steps where those that are there are longer than a pixel. */
  async refine() {
    const { from, to } = this.view;
    const width = this.canvas.clientWidth || 600;
    const perPixel = (to - from) / width;
    const zoom = perPixel < 30 ? 2 : perPixel < 300 ? 1 : 0;
    const step = [1000, 100, 10][zoom];
    const covers = (/** @type {Outline | null} */ one) => one && one.stepMs <= step && one.fromMs <= from &&
      one.fromMs + (one.levels.length / 4) * one.stepMs >= Math.min(to, one.durationMs) - one.stepMs;
    if (covers(this.whole) || covers(this.fine)) return;
    const key = zoom + ":" + Math.round(from) + ":" + Math.round(to);
    if (this.asking === key) return;
    this.asking = key;
    const margin = (to - from) / 2;
    const fine = await this.hooks.ask(zoom, Math.max(0, Math.floor(from - margin)), Math.ceil(to + margin)).catch(() => null);
    if (fine && this.asking === key) {
      this.fine = fine;
      this.draw();
    }
    if (this.asking === key) this.asking = "";
  }

  /**
   * Name of the mark under the pointer.
   * @param {PointerEvent} event
   */
  nameAt(event) {
    const at = this.at(event);
    const near = ((this.view.to - this.view.from) / (this.canvas.clientWidth || 1)) * NEAR_PX;
    const found = this.marks.filter((mark) => at >= mark.at - near && at <= Math.max(mark.end || 0, mark.at) + near);
    return found.map((mark) => mark.text).join("; ");
  }

  /**
   * Lights stretches up; the one with this number is brought into view.
   * @param {Stretch[]} lit
   * @param {number} [number]
   */
  light(lit, number = 0) {
    this.measured.textContent = lit[number] ? ms(lit[number].to - lit[number].from) + " from " + clock(lit[number].from) : "";
    this.lit = lit;
    this.canvas.dataset.lit = lit.map(({ from, to }) => from + "-" + to).join(",");
    const one = lit[number];
    if (one && (one.from < this.view.from || one.to > this.view.to)) {
      const length = Math.max(this.view.to - this.view.from, (one.to - one.from) * 1.5);
      this.show((one.from + one.to - length) / 2, (one.from + one.to + length) / 2);
    } else {
      this.draw();
    }
  }

  /** @param {number} position */
  setPosition(position) {
    this.position = position;
    this.canvas.setAttribute("aria-valuenow", String(Math.round(position)));
    this.canvas.setAttribute("aria-valuetext", clock(position) + " of " + clock(this.duration));
    const length = this.view.to - this.view.from;
    if (length < this.duration && (position > this.view.to || position < this.view.from)) {
      this.show(position - length * 0.1, position + length * 0.9);
    } else {
      this.draw();
    }
  }

  /** @param {Mark[]} marks */
  setMarks(marks) {
    this.marks = marks;
    this.rows = rowsOf(marks.filter((mark) => mark.kind === "span"));
    this.canvas.dataset.spans = String(this.rows.size);
    this.draw();
  }

  draw() {
    if (this.drawing) return;
    this.drawing = requestAnimationFrame(() => { this.drawing = 0; this.paint(); });
  }

  paint() {
    const width = this.canvas.clientWidth;
    if (!width) return;
    const style = getComputedStyle(this.canvas);
    this.lane = parseInt(style.getPropertyValue("--lane"), 10) || this.lane;
    const lane = this.lane;
    const below = RULER_PX + lane * 2 + MARKS_PX;
    const height = below + Math.max(-1, ...this.rows.values()) * ROW_PX + ROW_PX;
    const scale = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.height = height + "px";
    const pen = this.canvas.getContext("2d");
    if (!pen) return;
    pen.scale(scale, scale);
    const color = (/** @type {string} */ name) => style.getPropertyValue("--" + name).trim();
    const x = (/** @type {number} */ at) => ((at - this.view.from) / (this.view.to - this.view.from)) * width;
    pen.fillStyle = color("soft");
    pen.fillRect(0, RULER_PX, width, lane);
    pen.fillRect(0, RULER_PX + lane + MARKS_PX, width, lane);
    pen.fillStyle = color("lit");
    for (const { from, to } of this.lit) pen.fillRect(x(from), RULER_PX, Math.max(2, x(to) - x(from)), height - RULER_PX);
    this.ruler(pen, width, color, x);
    [color("dh"), color("agent")].forEach((ink, side) => {
      const middle = RULER_PX + lane / 2 + side * (lane + MARKS_PX);
      pen.fillStyle = ink;
      this.wave(pen, width, side, middle);
    });
    pen.font = "11px system-ui, sans-serif";
    for (const [mark, row] of this.rows) {
      const [at, end] = [Math.max(0, x(mark.at)), Math.min(width, x(mark.end || mark.at))];
      if (end < 0 || at > width) continue;
      pen.fillStyle = color("k-span");
      pen.fillRect(at, below + row * ROW_PX + 2, Math.max(2, end - at), ROW_PX - 2);
      if (end - at < LEAST_TEXT_PX) continue;
      pen.save();
      pen.beginPath();
      pen.rect(at, below, end - at - 3, height - below);
      pen.clip();
      pen.fillStyle = color("on-accent");
      pen.fillText(mark.text, at + 3, below + (row + 1) * ROW_PX - 2);
      pen.restore();
    }
    for (const mark of this.marks) {
      if (mark.kind === "span") continue;
      const at = x(mark.at);
      const end = mark.end ? x(mark.end) : at;
      if (end < -2 || at > width + 2) continue;
      pen.fillStyle = color("k-" + mark.kind) || color("ink");
      const top = RULER_PX + lane + (mark.side === "agent" ? MARKS_PX / 2 : 0);
      pen.fillRect(at, top + MARKS_PX / 2 - 3, Math.max(2, end - at), 2);
      pen.fillText((KINDS[mark.kind] || KINDS.other)[1], at - 1, top + MARKS_PX / 2 - 4);
    }
    pen.fillStyle = color("accent");
    pen.fillRect(x(this.position) - 1, 0, 2, height);
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {number} width
   * @param {(name: string) => string} color
   * @param {(at: number) => number} x
   */
  ruler(pen, width, color, x) {
    const wanted = ((this.view.to - this.view.from) / width) * 80;
    const steps = [100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000, 300000, 600000, 1800000];
    const step = steps.find((one) => one >= wanted) || 3600000;
    pen.fillStyle = color("faint");
    pen.font = "11px system-ui, sans-serif";
    for (let at = Math.ceil(this.view.from / step) * step; at <= this.view.to; at += step) {
      pen.fillRect(Math.round(x(at)), RULER_PX - 5, 1, 5);
      pen.fillText(clock(at), Math.round(x(at)) + 3, 11);
    }
  }

  /**
   * One lane: for each pixel the least and the greatest level of its steps.
   * @param {CanvasRenderingContext2D} pen
   * @param {number} width
   * @param {number} side
   * @param {number} middle
   */
  wave(pen, width, side, middle) {
    const fine = this.fine;
    const isFine = fine && fine.fromMs <= this.view.from && fine.fromMs + (fine.levels.length / 4) * fine.stepMs >= this.view.to - fine.stepMs;
    const one = isFine ? fine : this.whole;
    if (!one) return;
    const steps = one.levels.length / 4;
    const perPixel = (this.view.to - this.view.from) / width;
    const half = this.lane / 2 - 2;
    for (let px = 0; px < width; px += 1) {
      const from = Math.floor((this.view.from + px * perPixel - one.fromMs) / one.stepMs);
      const to = Math.max(from + 1, Math.floor((this.view.from + (px + 1) * perPixel - one.fromMs) / one.stepMs));
      let [low, high, any] = [127, -127, false];
      for (let at = Math.max(0, from); at < Math.min(to, steps); at += 1) {
        low = Math.min(low, one.levels[at * 4 + side * 2]);
        high = Math.max(high, one.levels[at * 4 + side * 2 + 1]);
        any = true;
      }
      if (!any) continue;
      // Speech is mostly far below full scale: the square root shows it, and keeps the order of levels.
      const up = Math.sqrt(Math.max(0, high) / 127) * half;
      const down = Math.sqrt(Math.max(0, -low) / 127) * half;
      pen.fillRect(px, middle - up, 1, Math.max(1, up + down));
    }
  }
}

/**
 * Rows for spans, such that those of one time are below each other; those that find no row of their own share the last.
 * @param {Mark[]} spans by start
 * @returns {Map<Mark, number>}
 */
function rowsOf(spans) {
  const ends = /** @type {number[]} */ ([]);
  const rows = new Map();
  for (const span of spans) {
    const free = ends.findIndex((end) => end <= span.at);
    const row = Math.min(MOST_SPAN_ROWS - 1, free < 0 ? ends.length : free);
    ends[row] = Math.max(ends[row] || 0, span.end || span.at);
    rows.set(span, row);
  }
  return rows;
}
