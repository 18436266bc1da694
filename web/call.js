import { el, words, chip, clock, span, when, section, swap } from "./dom.js";
import { Lanes } from "./lanes.js";
import { Player } from "./player.js";
import { figuresOf, figureList, lengthOf } from "./numbers.js";
import { why } from "./why.js";
import { ladderView } from "./ladder.js";
import { mailsView } from "./mails.js";

/**
 * Where the data of a call come from: a server, or the file that is open.
 * @typedef {{
 *   data: any,
 *   peaks: (zoom: number, from: number, to: number | null) => Promise<any>,
 *   audio: (track: string) => Promise<Blob | null>,
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
/** Most rows of a list that are shown at once. */
const MOST_ROWS = 400;

/** Kinds of events that are shown: their names in the timeline, and in words. */
const KINDS = {
  barge_in: "Interruption", overlap: "Overlap", dead_air: "Dead air", probe: "Probe", dtmf: "Key", hold: "Hold", codec: "Session change",
  late_turn: "Late turn", loss: "Loss", tool_call: "Tool call", other: "Other",
};

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
    this.lanes = new Lanes({ ask: (zoom, from, to) => source.peaks(zoom, from, to), onSeek: (at) => this.player.seek(at) });
    this.player = new Player({ audio: source.audio, tracks: source.tracks, onTime: (at) => this.moved(at) });
    this.parts = { head: el("div", { class: "head" }), actions: el("div"), numbers: el("div"), transcript: el("div"), events: el("div"), why: el("div"), ladder: el("div"), tools: el("div") };
    this.node = el("article", { class: "call" }, this.parts.head, this.parts.actions, this.lanes.node, this.player.node,
      el("div", { class: "columns" }, el("div", {}, this.parts.transcript, this.parts.events, this.parts.why), el("div", {}, this.parts.numbers)),
      this.parts.ladder, this.parts.tools);
    /** @type {any[]} */
    this.rows = [];
  }

  /** Shows everything that there is, and draws the lanes. */
  async start() {
    this.show();
    await this.outline();
    const turn = new URLSearchParams(location.hash.slice(1)).get("turn");
    if (turn !== null) this.playTurn(Number(turn));
  }

  async outline() {
    const zoom = this.lanes.duration > FINE_MS ? 0 : 1;
    const outline = await this.source.peaks(zoom, 0, null).catch(() => null);
    if (!outline) return;
    if (outline.durationMs > this.lanes.duration) this.resize(outline.durationMs);
    this.lanes.setWhole(outline);
  }

  /** @param {number} ms */
  resize(ms) {
    this.lanes.setDuration(ms);
    this.player.duration = Math.max(this.player.duration, ms);
  }

  /**
   * Shows the data as they are now. What can be done with the call, and its signalling, stay while they are the same.
   * @param {boolean} [isSame] whether it is the call that was shown, a little later
   */
  show(isSame = false) {
    const { result } = this.data;
    this.resize(Math.max(lengthOf(this.data), 1000));
    swap(this.parts.head, this.head(result));
    const figures = figuresOf(this.data);
    this.figures = figures;
    const live = (/** @type {any} */ figure) => this.play(figure);
    swap(this.parts.numbers, section("Numbers", ...(figures.length ? figureList(figures, live) : [el("p", { class: "empty" }, "There is nothing to measure yet.")])));
    // A thread is read; there is nothing to hear.
    const mails = this.data.mails && this.data.mails.mails;
    this.lanes.node.hidden = this.player.node.hidden = Boolean(mails);
    if (!mails) swap(this.parts.transcript, this.transcript(isSame));
    else if (!isSame || this.shownMails !== mails) swap(this.parts.transcript, mailsView(mails));
    this.shownMails = mails;
    this.events();
    swap(this.parts.why, why(result));
    if (!isSame || this.shownLadder !== this.data.ladder) {
      this.shownLadder = this.data.ladder;
      swap(this.parts.ladder, ladderView(this.data.ladder, (at) => this.player.seek(at), this.source.ladder));
    }
    if (!isSame) swap(this.parts.actions, ...(this.source.actions ? this.source.actions() : []));
    if (!isSame) swap(this.parts.tools, ...(this.source.tools ? this.source.tools(this) : []));
  }

  /** @param {any} result */
  head(result) {
    const about = (result.metadata && result.metadata.behaviour) || {};
    return el("div", {}, el("h1", {}, (this.data.mails ? "Thread " : "Call ") + result.id), el("p", { class: "chips" }, chip(result.status), result.verdict || result.outcome ? chip(result.verdict ? result.verdict.word : result.outcome) : null,
      " ", when(result.start_time), " ", span(result.duration_ms), " ",
      el("span", { class: "soft" }, [result.metadata && result.metadata.codec, result.metadata && result.metadata.transport, about.language].filter(Boolean).join(", "))),
    this.data.caller || this.data.agent ? el("p", {}, words(this.data.caller || "Digital Human", 120), " \u2192 ", words(this.data.agent || "agent", 120)) : null);
  }

  /** @param {{ from: number, to: number }} figure */
  play(figure) {
    this.lanes.light({ from: figure.from, to: figure.to });
    void this.player.playFrom(figure.from - LEAD_MS);
  }

  /**
   * Plays the latency of the agent's answer with this number, from 0.
   * @param {number} number
   */
  playTurn(number) {
    const figure = (this.figures || []).filter((one) => one.kind === "latency")[number];
    if (figure) this.play(figure);
  }

  /** @param {number} at */
  moved(at) {
    this.lanes.setPosition(at);
    // Of those that are heard at once the one that began last.
    let row = null;
    for (const one of this.rows) if (at >= one.from && at < one.to && (!row || one.from >= row.from)) row = one;
    if (row === this.active) return;
    if (this.active) this.active.node.classList.remove("now");
    if (row) row.node.classList.add("now");
    this.active = row;
  }

  /** @param {boolean} goesOn the newest rows are shown then */
  transcript(goesOn) {
    const all = (this.data.transcript && this.data.transcript.entries) || this.spoken();
    if (!all.length) return section("Transcript", el("p", { class: "empty" }, goesOn ? "Nothing was said yet." : "Nothing was said."));
    const entries = goesOn ? all.slice(-MOST_ROWS) : all;
    this.active = null;
    this.rows = entries.slice(0, MOST_ROWS).map((/** @type {any} */ entry) => this.row(entry));
    const list = el("ol", { class: "transcript", role: "list" }, this.rows.map((row) => row.node));
    const rest = entries.slice(MOST_ROWS);
    const more = rest.length ? el("button", { type: "button", class: "more", onclick: () => {
      const rows = rest.map((/** @type {any} */ entry) => this.row(entry));
      this.rows.push(...rows);
      list.append(...rows.map((/** @type {any} */ row) => row.node));
      more.remove();
    } }, rest.length + " more") : null;
    return section("Transcript", list, more);
  }

  /** Entries of the turns, while there is no transcript. */
  spoken() {
    const turns = (this.data.turns && this.data.turns.turns) || [];
    return turns.map((/** @type {any} */ turn) => ({ speaker: turn.speaker, utterance: turn.text, text_missing: turn.text_missing, interrupted: turn.interrupted,
      start_offset_ms: turn.from_sample / 16, end_offset_ms: turn.to_sample / 16 }));
  }

  /** @param {any} entry */
  row(entry) {
    const who = entry.speaker === "AGENT" ? "Agent" : "Digital Human";
    const missing = entry.text_missing ? el("em", {}, "(words not understood: " + (/** @type {any} */ (MISSING)[entry.text_missing] || entry.text_missing) + ")") : null;
    const node = el("li", { class: entry.speaker === "AGENT" ? "agent" : "dh" },
      el("button", { type: "button", class: "at", onclick: () => this.player.seek(entry.start_offset_ms) }, clock(entry.start_offset_ms)),
      el("span", { class: "who" }, who), el("span", { class: "said" }, entry.utterance ? words(entry.utterance) : missing ? null : "\u2026", " ", missing,
        entry.interrupted ? el("span", { class: "cut" }, " \u2014 interrupted") : null));
    return { node, from: entry.start_offset_ms, to: Math.max(entry.end_offset_ms, entry.start_offset_ms + 200) };
  }

  /** Events of the call by kind: marks between the lanes, and a list. */
  events() {
    const all = marksOf(this.data, this.figures || []);
    const kinds = Object.keys(KINDS).filter((kind) => all.some((mark) => mark.kind === kind));
    const list = el("ol", { class: "events" });
    const fill = () => {
      const shown = all.filter((mark) => !this.hidden.has(mark.kind));
      this.lanes.setMarks(shown);
      list.replaceChildren(...shown.slice(0, MOST_ROWS).map((mark) => {
        const stretch = { from: mark.at, to: Math.max(mark.end || 0, mark.at + MOMENT_MS) };
        return el("li", { data: { kind: mark.kind } }, el("button", { type: "button", class: "figure", data: { ...stretch, kind: mark.kind }, onclick: () => this.play(stretch) },
          el("span", { class: "dot k-" + mark.kind }), el("span", { class: "at" }, clock(mark.at)), " ", words(mark.text, 120)));
      }), ...(shown.length > MOST_ROWS ? [el("li", {}, (shown.length - MOST_ROWS) + " more are in the download")] : []));
    };
    const toggles = kinds.map((kind) => {
      const box = el("input", { type: "checkbox", checked: !this.hidden.has(kind), onchange: () => {
        if (box.checked) this.hidden.delete(kind); else this.hidden.add(kind);
        fill();
      } });
      return el("label", {}, box, el("span", { class: "dot k-" + kind }), /** @type {any} */ (KINDS)[kind]);
    });
    fill();
    const body = all.length ? [el("p", { class: "toggles" }, toggles), list] : [el("p", { class: "empty" }, "Nothing of note happened.")];
    swap(this.parts.events, section("Events", ...body));
  }
}

/**
 * Marks of the events lane.
 * @param {any} data
 * @param {any[]} figures
 */
function marksOf(data, figures) {
  const events = (data.timeline && data.timeline.events) || [];
  /** @type {{ at: number, end?: number, kind: string, side: string, text: string }[]} */
  const marks = [];
  for (const { event, side, offset_ms: at, data: more } of events) {
    const add = (/** @type {string} */ kind, /** @type {string} */ text, /** @type {number} */ end = at) => marks.push({ at, end, kind, side, text });
    if (event === "barge_in") {
      add("barge_in", "Interruption by " + (more.by === "agent" ? "the agent" : "the Digital Human"), at + (more.stop_ms ?? more.overlap_ms));
      add("overlap", "Both speak for " + more.overlap_ms + " ms", at + more.overlap_ms);
    } else if (event === "probe") add("probe", "Probe: " + String(more.kind).replace(/_/g, " "));
    else if (event === "dtmf_sent" || event === "dtmf_received") add("dtmf", "Key " + more.digits + (event === "dtmf_sent" ? " sent" : " received"), at + (more.duration_ms || 100));
    else if (event === "hold" || event === "unhold") add("hold", event === "hold" ? "Put on hold" : "Taken back");
    else if (event === "session.answered") add("codec", "A change of the session was answered: " + more.code);
    else if (event === "late_turn") add("late_turn", "The Digital Human was " + more.late_ms + " ms late");
    else if (event === "rx_underrun" || event === "rx_overflow") add("loss", event === "rx_underrun" ? "Sound did not come" : "Packets came at once");
    else if (event === "tool_call") add("tool_call", "Tool call " + more.name);
    else if (["transfer", "transferred", "reprompt", "silence_tool", "answering_machine", "line_tone", "suspected_echo_event", "fallback_speaker", "scripted_response", "agent_error", "mark", "language.taken"].includes(event)) add("other", event.replace(/[_.]/g, " "));
  }
  for (const figure of figures) {
    if (figure.kind === "dead_air") marks.push({ at: figure.from, end: figure.to, kind: "dead_air", side: "dh", text: "Nobody speaks for " + figure.value });
    if (figure.kind === "loss") marks.push({ at: figure.from, end: figure.to, kind: "loss", side: "agent", text: figure.value + " packets lost" });
  }
  return marks.sort((one, other) => one.at - other.at);
}
