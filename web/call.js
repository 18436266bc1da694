import { el, words, clock, ms, span, when, section, swap, once, renew } from "./dom.js";
import { about } from "./about.js";
import { KINDS, Lanes } from "./lanes.js";
import { Player } from "./player.js";
import { figuresOf, lengthOf, overlapsOf } from "./numbers.js";
import { headlines, numbersOf } from "./headline.js";
import { why } from "./why.js";
import { adviceOn, chip, codeWords, ownerWords, waitWords, wordOf } from "./told.js";
import { ladderView } from "./ladder.js";
import { mailsView } from "./mails.js";

/**
 * Where the data of a call come from: a server, or the file that is open.
 * @typedef {{
 *   data: any,
 *   peaks: (zoom: number, from: number, to: number | null) => Promise<any>,
 *   audio: (from: number, to: number) => Promise<{ blob: Blob, from: number, to: number | null } | null>,
 *   tracks?: string[],
 *   ladder?: () => Promise<any>,
 *   actions?: () => any[],
 *   tools?: (view: CallView) => any[],
 * }} Source
 */

/** Before a stretch that is played, in milliseconds. */
const LEAD_MS = 1000;
/** Longest call whose outline is asked for in steps of 100 ms; longer ones begin with steps of 1 s. */
const FINE_MS = 600000;
/** Stretch of an event that has no length, in milliseconds. */
const MOMENT_MS = 200;
/** Most time between the beginning of a turn and of its words, in milliseconds. */
const ONE_TURN_MS = 500;
/** Most rows of a list that are shown at once. */
const MOST_ROWS = 400;
/** States in which nothing can be heard or seen yet. */
export const EARLY = ["INITIALIZING", "QUEUED", "READY", "DISPATCHED"];
/** States in which a call is over and not judged yet, or goes on. */
const GOING_ON = ["RUNNING", "CONVERSATION_ENDED", "EVALUATING"];

/** Why a turn has no words. */
const MISSING = {
  no_recognizer: "there is no recognizer", recognizer_late: "the recognizer was too late", recognizer_busy: "the recognizer was busy",
  unclear: "it was not clear enough", unsupported_language: "the language is not supported",
};

/** One call: lanes, player, numbers, transcript, events, reasons, signalling. */
export class CallView {
  /** @param {Source} source */
  constructor(source) {
    this.source = source;
    this.data = source.data;
    this.hidden = new Set();
    this.all = { isOpen: false };
    this.lanes = new Lanes({ ask: (zoom, from, to) => source.peaks(zoom, from, to), onSeek: (at) => this.player.seek(at), onSelect: (stretch) => this.measure(stretch) });
    this.player = new Player({ audio: source.audio, tracks: source.tracks, keys: ", N and P other calls", onTime: (at) => this.moved(at) });
    this.stage = el("div", { class: "stage" }, this.lanes.node, this.player.node);
    const part = () => /** @type {HTMLElement} */ (el("div"));
    this.parts = { head: el("div", { class: "head" }), actions: part(), numbers: part(), about: part(), transcript: part(), events: part(), why: part(), ladder: part(), tools: part() };
    this.node = el("article", { class: "call" }, this.parts.head, this.parts.actions, this.stage,
      el("div", { class: "columns" }, el("div", {}, this.parts.transcript, this.parts.events, this.parts.why), el("div", {}, this.parts.numbers, this.parts.about)),
      this.parts.ladder, this.parts.tools);
    /** @type {any[]} */
    this.rows = [];
    /** @type {Map<string, any>} */
    this.known = new Map();
    /** @type {{ key: string, count: number }} */
    this.played = { key: "", count: 0 };
  }

  /** Lets go of what lives longer than its view. */
  close() {
    this.player.close();
    this.lanes.close();
  }

  /** Shows everything that there is, and draws the lanes. */
  async start() {
    this.show();
    await this.outline();
    const turn = new URLSearchParams(location.hash.slice(1)).get("turn");
    if (turn !== null) this.playTurn(Number(turn));
  }

  /** True where there is, or will be, something to hear. */
  hasSound() {
    const { result, mails, isWritten } = this.data;
    if (isWritten || (mails && mails.mails) || EARLY.includes(result.status)) return false;
    return Boolean(result.audio_url) || GOING_ON.includes(result.status);
  }

  /** @param {boolean} [goesOn] only what is new is asked for then */
  async outline(goesOn = false) {
    if (!this.hasSound()) return;
    const zoom = this.lanes.duration > FINE_MS ? 0 : 1;
    const step = [1000, 100][zoom];
    const old = goesOn && this.lanes.whole && this.lanes.whole.stepMs === step ? this.lanes.whole.levels : new Int8Array();
    // The last step was not over.
    const from = Math.max(0, old.length / 4 - 1) * step;
    let outline = await this.source.peaks(zoom, from, null).catch(() => null);
    if (!outline) return;
    if (from && outline.fromMs === from) {
      const levels = new Int8Array((from / step) * 4 + outline.levels.length);
      levels.set(old.subarray(0, (from / step) * 4));
      levels.set(outline.levels, (from / step) * 4);
      outline = { ...outline, fromMs: 0, levels };
    }
    if (outline.durationMs > this.lanes.duration) this.resize(outline.durationMs);
    this.lanes.setWhole(outline);
  }

  /** @param {number} ms */
  resize(ms) {
    this.lanes.setDuration(ms);
    this.player.grow(ms);
  }

  /**
   * Shows the data as they are now. What can be done with the call, and its signalling, stay while they are the same.
   * @param {boolean} [isSame] whether it is the call that was shown, a little later
   */
  show(isSame = false) {
    const { result, caller, agent } = this.data;
    this.resize(Math.max(lengthOf(this.data), 1000));
    once(this.parts.head, [result, caller, agent], () => this.head(result));
    const figures = figuresOf(this.data);
    this.figures = figures;
    const isHeard = this.hasSound();
    this.stage.hidden = !isHeard;
    once(this.parts.numbers, [figures, isHeard], () => section("Numbers", ...(figures.length ? numbersOf(headlines(this.data, figures), figures, isHeard ? (figure) => this.play(figure.spans, keyOf(figure)) : null, this.all) :
      [el("p", { class: "empty" }, "There is nothing to measure" + (EARLY.includes(result.status) || GOING_ON.includes(result.status) ? " yet." : "."))])));
    once(this.parts.about, [result, this.data.human], () => about(this.data));
    // A thread is read; there is nothing to hear.
    const mails = this.data.mails && this.data.mails.mails;
    if (!mails) this.transcript(isSame);
    else if (!isSame || this.shownMails !== mails) swap(this.parts.transcript, mailsView(mails));
    this.shownMails = mails;
    this.events(isHeard);
    once(this.parts.why, [result, isHeard], () => why(result, isHeard ? (at) => this.play([{ from: at, to: at + MOMENT_MS }], "why" + at) : null));
    if (!isSame || this.shownLadder !== this.data.ladder) {
      this.shownLadder = this.data.ladder;
      swap(this.parts.ladder, ladderView(this.data.ladder, isHeard ? (at) => this.player.seek(at) : null, this.source.ladder));
    }
    once(this.parts.actions, result.status, () => el("div", {}, this.source.actions ? this.source.actions() : []));
    if (!isSame) swap(this.parts.tools, ...(this.source.tools ? this.source.tools(this) : []));
  }

  /** @param {any} result */
  head(result) {
    const of = result.metadata || {};
    const word = wordOf(result);
    return el("div", {}, el("h1", {}, (this.data.mails ? "Thread " : "Call ") + result.id),
      this.data.caller || this.data.agent ? el("p", { class: "between" }, words(this.data.caller || "Digital Human", 120), " \u2192 ", words(this.data.agent || "agent", 120)) : null,
      el("p", { class: "chips" }, chip(word), " ", when(result.start_time), " ", span(result.duration_ms), " ",
        el("span", { class: "soft" }, [of.codec, of.transport, of.behaviour && of.behaviour.language].filter(Boolean).join(", "))), reason(result, word));
  }

  /**
   * Lights stretches up and plays one: the next one where the same is asked for again, or the only one over and over.
   * @param {{ from: number, to: number }[]} spans
   * @param {string} key by which the same is known again
   */
  play(spans, key) {
    if (!spans.length) return;
    this.played = { key, count: this.played.key === key ? this.played.count + 1 : 0 };
    const number = this.played.count % spans.length;
    this.lanes.light(spans, number);
    void this.player.playStretch(spans[number], LEAD_MS, spans.length === 1 && this.played.count > 0);
  }

  /**
   * Lights a stretch up that was dragged over, and plays it over and over.
   * @param {{ from: number, to: number }} stretch
   */
  measure(stretch) {
    this.played = { key: "", count: 0 };
    this.lanes.light([stretch]);
    void this.player.playStretch(stretch, 0, true);
  }

  /**
   * Plays the latency of the agent's answer with this number, from 0.
   * @param {number} number
   */
  playTurn(number) {
    const figure = (this.figures || []).filter((one) => one.kind === "latency")[number];
    if (figure) this.play(figure.spans, keyOf(figure));
  }

  /** @param {number} at */
  moved(at) {
    this.lanes.setPosition(at);
    // Of those that are heard at once the one that began last.
    let row = null;
    for (const one of this.rows) if (at >= one.from && at < one.to && (!row || one.from >= row.from)) row = one;
    if (row === this.active) return;
    if (this.active) this.active.node.classList.remove("now");
    this.active = row;
    if (!row) return;
    row.node.classList.add("now");
    const list = row.node.parentElement;
    if (!list || list.scrollHeight <= list.clientHeight) return;
    // The list alone scrolls to its row, and the page stays.
    const top = row.node.offsetTop - list.offsetTop;
    if (top < list.scrollTop || top + row.node.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = top - list.clientHeight / 3;
  }

  /** @param {boolean} goesOn the newest rows are shown then */
  transcript(goesOn) {
    const all = (this.data.transcript && this.data.transcript.entries) || this.spoken();
    const entries = goesOn ? all.slice(-MOST_ROWS) : all;
    const known = new Map();
    const isHeard = this.hasSound();
    const answers = (this.figures || []).filter((figure) => figure.kind === "latency");
    const rowOf = (/** @type {any} */ entry) => {
      const latency = entry.speaker === "AGENT" ? answers.find((figure) => Math.abs(figure.spans[0].to - entry.start_offset_ms) < ONE_TURN_MS) : undefined;
      const key = JSON.stringify([entry, isHeard, latency]);
      known.set(key, this.known.get(key) || this.row(entry, isHeard, latency));
      return known.get(key);
    };
    this.rows = entries.slice(0, MOST_ROWS).map(rowOf);
    this.known = known;
    if (!this.list || !goesOn) {
      this.active = null;
      this.list = el("ol", { class: "transcript", role: "list", tabIndex: 0, "aria-label": "Transcript" });
      const rest = entries.slice(MOST_ROWS);
      const more = rest.length ? el("button", { type: "button", class: "more", onclick: () => {
        const rows = rest.map(rowOf);
        this.rows.push(...rows);
        this.list.append(...rows.map((/** @type {any} */ row) => row.node));
        more.remove();
      } }, rest.length + " more") : null;
      this.nothing = el("p", { class: "empty" });
      swap(this.parts.transcript, section("Transcript", this.nothing, this.list, more));
    }
    const wasAtEnd = this.list.scrollTop + this.list.clientHeight > this.list.scrollHeight - 4;
    renew(this.list, this.rows.map((row) => row.node));
    if (goesOn && wasAtEnd) this.list.scrollTop = this.list.scrollHeight;
    this.list.hidden = !this.rows.length;
    this.nothing.hidden = !this.list.hidden;
    this.nothing.textContent = EARLY.includes(this.data.result.status) || goesOn ? "Nothing was said yet." : "Nothing was said.";
  }

  /** Entries of the turns, while there is no transcript. */
  spoken() {
    const turns = (this.data.turns && this.data.turns.turns) || [];
    return turns.map((/** @type {any} */ turn) => ({ speaker: turn.speaker, utterance: turn.text, text_missing: turn.text_missing, interrupted: turn.interrupted,
      start_offset_ms: turn.from_sample / 16, end_offset_ms: turn.to_sample / 16 }));
  }

  /**
   * @param {any} entry
   * @param {boolean} isHeard
   * @param {import("./numbers.js").Figure | undefined} latency of an answer
   */
  row(entry, isHeard, latency) {
    const who = entry.speaker === "AGENT" ? "Agent" : "Digital Human";
    const missing = entry.text_missing ? el("em", {}, "(words not understood: " + (/** @type {any} */ (MISSING)[entry.text_missing] || entry.text_missing) + ")") : null;
    const seek = () => this.player.seek(entry.start_offset_ms);
    const after = latency ? isHeard ? el("button", { type: "button", class: "after", title: "Latency: " + latency.title, "aria-label": "Latency " + latency.value, onclick: () => this.play(latency.spans, keyOf(latency)) }, latency.value) : el("span", { class: "after" }, latency.value) : null;
    const node = el("li", { class: entry.speaker === "AGENT" ? "agent" : "dh" },
      isHeard ? el("button", { type: "button", class: "at", onclick: seek }, clock(entry.start_offset_ms)) : el("span", { class: "at" }, clock(entry.start_offset_ms)),
      el("span", { class: "who" }, who), el("span", { class: "said" }, entry.utterance ? words(entry.utterance) : missing ? null : "\u2026", " ", missing,
        entry.interrupted ? el("span", { class: "cut" }, " \u2014 interrupted") : null, after));
    // The whole row seeks; words in it can still be marked and its buttons used.
    if (isHeard) node.onclick = (/** @type {MouseEvent} */ event) => { if (!/** @type {Element} */ (event.target).closest("button") && String(getSelection()) === "") seek(); };
    return { node, from: entry.start_offset_ms, to: Math.max(entry.end_offset_ms, entry.start_offset_ms + 200) };
  }

  /**
   * Events of the call by kind: marks between the lanes, and a list.
   * @param {boolean} isHeard
   */
  events(isHeard) {
    const all = marksOf(this.data, this.figures || []);
    this.lanes.setMarks(all.filter((mark) => !this.hidden.has(mark.kind)));
    once(this.parts.events, [all, isHeard], () => {
      const kinds = Object.keys(KINDS).filter((kind) => all.some((mark) => mark.kind === kind));
      const list = el("ol", { class: "events" });
      const fill = () => {
        const shown = all.filter((mark) => !this.hidden.has(mark.kind));
        this.lanes.setMarks(shown);
        list.replaceChildren(...shown.slice(0, MOST_ROWS).map((mark) => {
          const stretch = { from: mark.at, to: Math.max(mark.end || 0, mark.at + MOMENT_MS) };
          const inside = [shapeOf(mark.kind), el("span", { class: "at" }, clock(mark.at)), " ", words(mark.text, 120)];
          return el("li", { data: { kind: mark.kind } }, isHeard ? el("button", { type: "button", class: "figure", data: { ...stretch, lit: stretch.from + "-" + stretch.to, kind: mark.kind }, onclick: () => this.play([stretch], mark.kind + mark.at) }, inside) : el("span", { class: "number" }, inside));
        }), ...(shown.length > MOST_ROWS ? [el("li", {}, (shown.length - MOST_ROWS) + " more are in the download")] : []));
      };
      const toggles = kinds.map((kind) => {
        const box = el("input", { type: "checkbox", checked: !this.hidden.has(kind), onchange: () => {
          if (box.checked) this.hidden.delete(kind); else this.hidden.add(kind);
          fill();
        } });
        return el("label", {}, box, shapeOf(kind), KINDS[kind][0]);
      });
      fill();
      return section("Events", ...(all.length ? [el("p", { class: "toggles" }, toggles), list] : [el("p", { class: "empty" }, "Nothing of note happened.")]));
    });
  }
}

/**
 * The shape of a kind of mark, as the lanes draw it.
 * @param {string} kind
 */
function shapeOf(kind) {
  return el("span", { class: "mark k-" + kind, "aria-hidden": "true" }, KINDS[kind][1]);
}

/**
 * By what a number is known again.
 * @param {import("./numbers.js").Figure} figure
 */
function keyOf({ kind, name, spans }) {
  return [kind, name, spans[0] && spans[0].from].join("|");
}

/**
 * Why a call waits, failed or was not judged, and who has to do what about it; null where there is nothing to say.
 * @param {any} result
 * @param {string} word
 */
function reason(result, word) {
  if (EARLY.includes(result.status)) return el("p", { class: "plate" }, words(waitWords(result)), ".");
  if (!["failed", "unreachable", "not judged"].includes(word)) return null;
  const [about, advice] = result.error_code ? codeWords(result.error_code) : ["", ""];
  const told = (result.verdict && result.verdict.reason) || result.error_message || (result.evaluations && result.evaluations[0] && result.evaluations[0].not_evaluated_reason) || "Nothing was expected of it, and nobody has judged it";
  const point = (/** @type {string} */ text) => (text && !/[.!?]$/.test(text) ? text + ". " : text ? text + " " : "").replace(/^[a-z]/, (first) => first.toUpperCase());
  return el("p", { class: word === "not judged" ? "plate" : "plate bad" }, el("b", {}, point(about)), words(point(told)), point(advice || adviceOn(result.verdict)), result.error_owner ? "To act: " + ownerWords(result.error_owner) + "." : "");
}

/**
 * Marks of the events lane.
 * @param {any} data
 * @param {import("./numbers.js").Figure[]} figures
 */
function marksOf(data, figures) {
  const events = (data.timeline && data.timeline.events) || [];
  /** @type {import("./lanes.js").Mark[]} */
  const marks = overlapsOf(data).map(({ by, from, to, overlap_ms, counted, why: because }) => ({
    at: from, end: to, kind: counted ? "barge_in" : "not_counted", side: by === "AGENT" ? "agent" : "dh",
    text: counted ? "Interruption by " + (by === "AGENT" ? "the agent" : "the Digital Human") + ", both speak for " + ms(overlap_ms) : "Both speak for " + ms(overlap_ms) + ": not counted, " + because,
  }));
  for (const { event, side, offset_ms: at, data: more } of events) {
    const add = (/** @type {string} */ kind, /** @type {string} */ text, /** @type {number} */ end = at) => marks.push({ at, end, kind, side, text });
    if (event === "probe") add("probe", "Probe: " + String(more.kind).replace(/_/g, " "));
    else if (event === "dtmf_sent" || event === "dtmf_received") add("dtmf", "Key " + more.digits + (event === "dtmf_sent" ? " sent" : " received"), at + (more.duration_ms || 100));
    else if (event === "hold" || event === "unhold") add("hold", event === "hold" ? "Put on hold" : "Taken back");
    else if (event === "session.answered") add("codec", "A change of the session was answered: " + more.code);
    else if (event === "late_turn") add("late_turn", "The Digital Human was " + ms(more.late_ms) + " late");
    else if (event === "rx_underrun" || event === "rx_overflow") add("loss", event === "rx_underrun" ? "Sound did not come" : "Packets came at once");
    else if (event === "tool_call") add("tool_call", "Tool call " + more.name);
    else if (["transfer", "transferred", "reprompt", "silence_tool", "answering_machine", "line_tone", "suspected_echo_event", "fallback_speaker", "scripted_response", "agent_error", "mark", "language.taken"].includes(event)) add("other", event.replace(/[_.]/g, " "));
  }
  for (const { name, service, error, start_offset_ms: at, end_offset_ms: end } of (data.spans && data.spans.spans) || []) {
    if (at !== null && end !== null) marks.push({ at: Math.max(0, at), end: Math.max(0, end), kind: "span", side: "agent", text: (service ? service + ": " : "") + name + ", " + ms(end - at) + (error === null ? "" : ", failed") });
  }
  for (const { kind, value, spans: [first] } of figures) {
    if (kind === "dead_air") marks.push({ at: first.from, end: first.to, kind, side: "dh", text: "Nobody speaks for " + value });
    if (kind === "loss") marks.push({ at: first.from, end: first.to, kind, side: "agent", text: value + " packets lost" });
  }
  return marks.sort((one, other) => one.at - other.at);
}
