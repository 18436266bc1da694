import { el, words, usesKey } from "./dom.js";
import { showRun, viewOfFile } from "./runfile.js";

/** Shows the call or the run that is in this file. Nothing is asked of a server. */
async function showFile() {
  const part = (/** @type {string} */ id) => { const node = document.getElementById(id); return (node && node.textContent) || ""; };
  const data = JSON.parse(part("data"));
  const main = document.getElementById("main");
  if (!main) return;
  const keys = (/** @type {(event: KeyboardEvent) => boolean} */ use) => document.addEventListener("keydown", (event) => {
    const at = /** @type {Element} */ (event.target);
    if (!usesKey(at, event.key) && use(event)) event.preventDefault();
  });
  if (data.calls) return keys(showRun(data, main).key);
  const view = viewOfFile(data, part("audio"));
  const out = data.left_out || [];
  main.replaceChildren(out.length ? el("p", { class: "warn" }, words("Left out of this file, because it would be too large: " + out.join(", "))) : "", view.node);
  document.title = "Call " + data.result.id;
  keys((event) => view.player.key(event));
  await view.start();
}

if (location.protocol === "file:" || document.getElementById("data")) void showFile();
