import { el, clock } from "./dom.js";

/** The sides that can be heard, by their names in the API. */
const TRACKS = [["both", "Both"], ["0", "Digital Human"], ["1", "Agent"]];
const SPEEDS = [1, 1.25, 1.5, 2];

/** The one player of a call. A recording is fetched when it is first heard. */
export class Player {
  /**
   * @param {{ audio: (track: string) => Promise<Blob | null>, onTime: (ms: number) => void, tracks?: string[] }} hooks
   */
  constructor(hooks) {
    this.hooks = hooks;
    this.track = "both";
    this.position = 0;
    this.duration = 0;
    /** @type {Map<string, string>} */
    this.urls = new Map();
    this.audio = /** @type {HTMLAudioElement} */ (el("audio", { preload: "auto" }));
    this.button = el("button", { type: "button", class: "play", onclick: () => void this.toggle() }, "Play");
    this.time = el("output", { class: "time", "aria-label": "Position" }, "0:00.0");
    this.note = el("span", { class: "note", role: "status" });
    const tracks = TRACKS.filter(([track]) => !hooks.tracks || hooks.tracks.includes(track));
    const solos = tracks.map(([track, name]) => el("label", {},
      el("input", { type: "radio", name: "track", value: track, checked: track === "both", onchange: () => void this.choose(track) }), name));
    this.speed = el("select", { "aria-label": "Speed", onchange: () => { this.audio.playbackRate = Number(this.speed.value); } },
      SPEEDS.map((speed) => el("option", { value: String(speed) }, speed + "\u00d7")));
    this.node = el("div", { class: "player", id: "player" }, this.button, this.time,
      el("fieldset", { class: "solo" }, el("legend", { class: "hidden" }, "Heard"), solos), this.speed, this.note, el("small", { class: "keys" }, "Keys: space plays, arrows 1 s, J and L 10 s, K pauses"), this.audio);
    this.audio.addEventListener("play", () => this.shown());
    this.audio.addEventListener("pause", () => this.shown());
    this.audio.addEventListener("ended", () => this.shown());
    // While it plays the position follows each frame; the element's own events are 250 ms apart.
    const follow = () => {
      if (!this.node.isConnected && this.wasShown) return this.close();
      this.wasShown = this.wasShown || this.node.isConnected;
      if (this.audio.src && !this.audio.paused) this.tell(this.audio.currentTime * 1000);
      requestAnimationFrame(follow);
    };
    requestAnimationFrame(follow);
  }

  /** @param {number} position */
  tell(position) {
    this.position = position;
    this.time.textContent = clock(position) + (this.duration ? " / " + clock(this.duration) : "");
    this.hooks.onTime(position);
  }

  shown() {
    const plays = Boolean(this.audio.src) && !this.audio.paused && !this.audio.ended;
    this.button.textContent = plays ? "Pause" : "Play";
  }

  /**
   * Loads the chosen track; false where there is none.
   * @returns {Promise<boolean>}
   */
  async load() {
    let url = this.urls.get(this.track);
    const track = this.track;
    if (!url) {
      this.note.textContent = "Loading the recording";
      const blob = await this.hooks.audio(track).catch((/** @type {Error} */ error) => { this.note.textContent = error.message; return null; });
      if (!blob) {
        if (this.note.textContent === "Loading the recording") this.note.textContent = "There is no recording";
        return false;
      }
      this.note.textContent = "";
      url = URL.createObjectURL(blob);
      this.urls.set(track, url);
    }
    if (track !== this.track) return this.load();
    if (this.audio.src !== url) {
      this.audio.src = url;
      await new Promise((done) => {
        this.audio.onloadedmetadata = done;
        this.audio.onerror = done;
      });
      this.audio.playbackRate = Number(this.speed.value);
    }
    return !this.audio.error;
  }

  /** Forgets what was loaded: the recording has grown. */
  forget() {
    this.urls.forEach((url) => URL.revokeObjectURL(url));
    this.urls.clear();
    this.audio.removeAttribute("src");
  }

  close() {
    this.audio.pause();
    this.forget();
  }

  async toggle() {
    if (this.audio.src && !this.audio.paused) return this.pause();
    await this.play();
  }

  pause() {
    this.audio.pause();
  }

  async play() {
    const from = this.position;
    if (!(await this.load())) return;
    if (Math.abs(this.audio.currentTime * 1000 - from) > 1) this.audio.currentTime = from / 1000;
    if (this.audio.ended) this.audio.currentTime = 0;
    await this.audio.play().catch((/** @type {Error} */ error) => { this.note.textContent = error.message; });
  }

  /** @param {number} ms */
  seek(ms) {
    const to = Math.max(0, this.duration ? Math.min(ms, this.duration) : ms);
    if (this.audio.src) this.audio.currentTime = to / 1000;
    this.tell(to);
  }

  /** @param {number} ms */
  async playFrom(ms) {
    this.pause();
    this.seek(ms);
    this.node.dataset.from = String(this.position);
    await this.play();
  }

  /** @param {string} track */
  async choose(track) {
    const plays = this.audio.src && !this.audio.paused;
    this.track = track;
    if (plays) {
      this.pause();
      await this.play();
    } else {
      this.audio.removeAttribute("src");
    }
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
