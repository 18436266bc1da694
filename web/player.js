import { el, clock } from "./dom.js";

/** What can be heard, by its name in the API. */
const TRACKS = [["both", "Both"], ["0", "Digital Human"], ["1", "Agent"]];
const SPEEDS = [1, 1.25, 1.5, 2];
/** Length of the first part of a long recording that is asked for, and of those after it, in milliseconds. */
const FIRST_MS = 10000;
const PART_MS = 60000;
/** Time before the end of a part at which the next one is asked for, in milliseconds. */
const AHEAD_MS = 8000;
/** After a stretch that is played, in milliseconds. */
const TAIL_MS = 500;

/**
 * A part of a recording, in milliseconds; `to` is null where it goes to the end.
 * @typedef {{ url: string, from: number, to: number | null }} Part
 */

/** The one player of a call. Sound is fetched when it is first heard; of a long recording only the part that is heard. */
export class Player {
  /**
   * @param {{ audio: (from: number, to: number) => Promise<{ blob: Blob, from: number, to: number | null } | null>, onTime: (ms: number) => void, tracks?: string[], keys?: string }} hooks
   */
  constructor(hooks) {
    this.hooks = hooks;
    this.track = "both";
    this.position = 0;
    this.duration = 0;
    /** @type {Part | null} */
    this.part = null;
    /** @type {Promise<Part | null> | null} */
    this.next = null;
    /** @type {{ at: number, back: number | null } | null} */
    this.stop = null;
    this.audio = /** @type {HTMLAudioElement} */ (el("audio", { preload: "auto" }));
    this.button = el("button", { type: "button", class: "play", onclick: () => void this.toggle() }, "Play");
    // A timer is not read out while it runs; where it stands is told when it stops.
    this.time = el("span", { class: "time", role: "timer", "aria-label": "Position" }, "0:00.0");
    this.note = el("span", { class: "note", role: "status" });
    this.told = el("span", { class: "hidden", role: "status" });
    const tracks = TRACKS.filter(([track]) => !hooks.tracks || hooks.tracks.includes(track));
    const solos = tracks.map(([track, name]) => el("label", {},
      el("input", { type: "radio", name: "track", value: track, checked: track === "both", onchange: () => this.choose(track) }), name));
    this.speed = el("select", { "aria-label": "Speed", onchange: () => { this.audio.playbackRate = Number(this.speed.value); } },
      SPEEDS.map((speed) => el("option", { value: String(speed) }, speed + "\u00d7")));
    this.node = el("div", { class: "player" }, this.button, this.time,
      solos.length ? el("fieldset", { class: "solo" }, el("legend", { class: "hidden" }, "Heard"), solos) : null, this.speed, this.note, this.told, el("small", { class: "keys" }, "Keys: space plays, arrows 1 s, J and L 10 s, K pauses" + (hooks.keys || "")), this.audio);
    this.audio.addEventListener("play", () => this.shown());
    this.audio.addEventListener("pause", () => this.shown());
    this.audio.addEventListener("ended", () => void this.goOn());
    this.audio.addEventListener("timeupdate", () => this.passed());
    // While it plays the position follows each frame; the element's own events are 250 ms apart.
    const follow = () => {
      if (this.isClosed) return;
      if (!this.node.isConnected && this.wasShown) return this.close();
      this.wasShown = this.wasShown || this.node.isConnected;
      this.passed();
      requestAnimationFrame(follow);
    };
    requestAnimationFrame(follow);
  }

  isPlaying() {
    return Boolean(this.audio.src) && !this.audio.paused && !this.audio.ended;
  }

  /** Follows the sound: tells its position, ends or repeats a stretch, asks for the next part in time. */
  passed() {
    if (!this.part || !this.isPlaying()) return;
    this.tell(this.part.from + this.audio.currentTime * 1000);
    if (this.stop && this.position >= this.stop.at) {
      if (this.stop.back === null) {
        this.stop = null;
        this.audio.pause();
      } else {
        this.move(this.stop.back);
      }
    }
    const { to } = this.part;
    if (to !== null && to < this.duration && !this.next && to - this.position < AHEAD_MS * this.audio.playbackRate) this.next = this.ask(to, to + PART_MS);
  }

  /** Plays the part after one that has ended. */
  async goOn() {
    if (this.stop && this.stop.back !== null) {
      this.tell(this.stop.back);
      return void await this.play();
    }
    const to = this.part && this.part.to;
    if (!to || to >= this.duration - 50) return this.shown();
    this.tell(to);
    await this.play();
  }

  /** @param {number} ms length as far as it is known */
  grow(ms) {
    this.duration = Math.max(this.duration, ms);
    this.tell(this.position);
  }

  /** @param {number} position */
  tell(position) {
    this.position = position;
    this.time.textContent = clock(position) + (this.duration ? " / " + clock(this.duration) : "");
    this.hooks.onTime(position);
  }

  shown() {
    const plays = this.isPlaying();
    this.button.textContent = plays ? "Pause" : "Play";
    this.told.textContent = plays ? "" : "Paused at " + clock(this.position);
  }

  /**
   * @param {number} from
   * @param {number} to
   * @returns {Promise<Part | null>}
   */
  async ask(from, to) {
    const found = await this.hooks.audio(Math.floor(from), Math.ceil(Math.min(to, this.duration || to))).catch((/** @type {Error} */ error) => { this.note.textContent = error.message; return null; });
    return found && { url: URL.createObjectURL(found.blob), from: found.from, to: found.to };
  }

  /**
   * Loads the part with this position; false where there is none.
   * @param {number} at
   * @returns {Promise<boolean>}
   */
  async load(at) {
    const has = (/** @type {Part | null} */ part) => part && at >= part.from - 1 && (part.to === null || at < part.to - 20 || part.to >= this.duration - 50);
    if (has(this.part)) return !this.audio.error;
    const asked = this.asked = {};
    const coming = this.next;
    this.next = null;
    let part = coming && await coming;
    if (!has(part)) {
      if (part) URL.revokeObjectURL(part.url);
      this.note.textContent = "Loading the recording";
      part = await this.ask(at, at + FIRST_MS);
      if (this.note.textContent === "Loading the recording") this.note.textContent = part ? "" : "There is no recording";
    }
    if (!part) return false;
    // Somebody has asked for another place meanwhile.
    if (this.asked !== asked) { URL.revokeObjectURL(part.url); return false; }
    if (this.part) URL.revokeObjectURL(this.part.url);
    this.part = part;
    this.audio.src = part.url;
    await new Promise((done) => {
      this.audio.onloadedmetadata = done;
      this.audio.onerror = done;
    });
    this.audio.playbackRate = Number(this.speed.value);
    return this.asked === asked && !this.audio.error;
  }

  /** Forgets what was loaded: the recording has grown. */
  forget() {
    if (this.part) URL.revokeObjectURL(this.part.url);
    if (this.next) void this.next.then((part) => { if (part) URL.revokeObjectURL(part.url); });
    this.part = this.next = null;
    this.asked = {};
    this.audio.removeAttribute("src");
  }

  close() {
    this.isClosed = true;
    this.audio.pause();
    this.forget();
    if (this.context) void this.context.close();
    this.context = undefined;
  }

  async toggle() {
    if (this.isPlaying()) return this.pause();
    await this.play();
  }

  /** Pauses; a stretch that was played or repeated is over. */
  pause() {
    this.stop = null;
    // What is being loaded is not played any more.
    this.wanted = {};
    this.audio.pause();
  }

  async play() {
    const from = this.duration && this.position >= this.duration - 20 ? 0 : this.position;
    const wanted = this.wanted = {};
    if (!(await this.load(from)) || !this.part || this.wanted !== wanted) return false;
    const at = (from - this.part.from) / 1000;
    if (Math.abs(this.audio.currentTime - at) > 0.001) this.audio.currentTime = Math.max(0, at);
    if (this.context) await this.context.resume();
    await this.audio.play().catch((/** @type {Error} */ error) => { if (error.name !== "AbortError") this.note.textContent = error.message; });
    return true;
  }

  /**
   * Goes to a position; what plays goes on there.
   * @param {number} ms
   */
  move(ms) {
    const to = Math.max(0, this.duration ? Math.min(ms, this.duration) : ms);
    const plays = this.isPlaying();
    this.tell(to);
    if (this.part && to >= this.part.from && (this.part.to === null || to < this.part.to)) this.audio.currentTime = (to - this.part.from) / 1000;
    else if (plays) { this.audio.pause(); void this.play(); }
  }

  /**
   * The same where somebody asks for it: a stretch that was played or repeated is over.
   * @param {number} ms
   */
  seek(ms) {
    this.stop = null;
    this.move(ms);
  }

  /**
   * Plays a stretch, from `lead` before it to half a second behind it.
   * @param {{ from: number, to: number }} stretch
   * @param {number} lead milliseconds
   * @param {boolean} again whether it is repeated until somebody pauses
   */
  async playStretch(stretch, lead, again) {
    this.pause();
    const from = Math.max(0, stretch.from - lead);
    this.move(from);
    this.node.dataset.from = String(this.position);
    this.stop = { at: stretch.to + TAIL_MS, back: again ? from : null };
    const plays = await this.play();
    if (plays) this.note.textContent = again ? "Repeated until it is paused" : "";
  }

  /**
   * Lets both sides be heard, or one of them on both ears, without a break.
   * @param {string} track
   */
  choose(track) {
    this.track = track;
    if (!this.context) {
      if (track === "both") return;
      this.context = new AudioContext();
      const [split, join] = [this.context.createChannelSplitter(2), this.context.createChannelMerger(2)];
      this.context.createMediaElementSource(this.audio).connect(split);
      this.ways = [0, 1].flatMap((side) => [0, 1].map((ear) => {
        const gain = /** @type {AudioContext} */ (this.context).createGain();
        split.connect(gain, side);
        gain.connect(join, 0, ear);
        return { gain, side, ear };
      }));
      join.connect(this.context.destination);
    }
    void this.context.resume();
    (this.ways || []).forEach(({ gain, side, ear }) => { gain.gain.value = track === "both" ? Number(side === ear) : Number(String(side) === track); });
  }

  /**
   * Keys of the whole view; true where one was taken.
   * @param {KeyboardEvent} event
   */
  key(event) {
    const step = event.shiftKey ? 10000 : 1000;
    /** @type {Record<string, () => void>} */
    const keys = {
      " ": () => void this.toggle(), k: () => void this.toggle(), ArrowLeft: () => this.seek(this.position - step),
      ArrowRight: () => this.seek(this.position + step), j: () => this.seek(this.position - 10000), l: () => this.seek(this.position + 10000),
    };
    const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act || event.ctrlKey || event.altKey || event.metaKey) return false;
    act();
    return true;
  }
}
