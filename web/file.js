import { el, words, bytesOf, usesKey } from "./dom.js";
import { CallView } from "./call.js";

/** Shows the call that is in this file. Nothing is asked of a server. */
async function showFile() {
  const part = (/** @type {string} */ id) => { const node = document.getElementById(id); return (node && node.textContent) || ""; };
  const data = JSON.parse(part("data"));
  const main = document.getElementById("main");
  if (!main) return;
  const outline = data.peaks && { stepMs: data.peaks.step_ms, fromMs: data.peaks.from_ms, durationMs: data.peaks.duration_ms,
    levels: new Int8Array(bytesOf(data.peaks.levels).buffer) };
  const sound = part("audio");
  const view = new CallView({
    data, tracks: ["both"],
    peaks: async () => outline,
    audio: async () => (sound ? new Blob([bytesOf(sound)], { type: "audio/ogg" }) : null),
  });
  const out = data.left_out || [];
  main.replaceChildren(out.length ? el("p", { class: "warn" }, words("Left out of this file, because it would be too large: " + out.join(", "))) : "", view.node);
  document.title = "Call " + data.result.id;
  document.addEventListener("keydown", (event) => {
    const at = /** @type {Element} */ (event.target);
    if (!usesKey(at, event.key) && view.player.key(event)) event.preventDefault();
  });
  await view.start();
}

if (location.protocol === "file:" || document.getElementById("data")) void showFile();
