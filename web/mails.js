import { el, words, when, section } from "./dom.js";

/** What became of a mail that is no message of the conversation. */
const APART = {
  automatic: "Written by a program, and no message", rejected: "From a sender who is not allowed", failed: "A mail could not be delivered",
  delayed: "A mail is not delivered yet", late: "Came after the end", unsent: "Not taken by the relay",
};

/** Most characters of a mail that are shown at once. */
const LETTER_CHARS = 4000;

/**
 * A thread as a conversation: each mail with its words, what it quotes behind a click, and the names of its files.
 * @param {any[]} mails oldest first
 */
export function mailsView(mails) {
  if (!mails.length) return section("Mails", el("p", { class: "empty" }, "Nobody has written yet."));
  return section("Mails", el("ol", { class: "mails", role: "list" }, mails.map(letter)));
}

/** @param {any} mail */
function letter(mail) {
  const apart = /** @type {any} */ (APART)[mail.kind];
  const side = mail.direction === "sent" ? "dh" : "agent";
  const files = mail.attachments.map((/** @type {any} */ file) => el("li", {}, words(file.name || "(no name)", 120), " ",
    el("small", {}, words(file.kind, 80), ", " + file.bytes.toLocaleString("en") + " bytes")));
  return el("li", { class: apart ? side + " apart" : side, data: { kind: mail.kind } },
    el("p", { class: "subject" }, el("strong", {}, words(mail.subject || "(no subject)", 200)), " ", el("time", { dateTime: mail.at }, when(mail.at))),
    el("p", { class: "soft" }, words(mail.from || "(not known)", 120), " \u2192 ", words(mail.to, 120)),
    apart ? el("p", { class: "note" }, apart, mail.why ? [": ", words(mail.why, 200)] : "") : null,
    el("div", { class: "said" }, mail.text ? words(mail.text, LETTER_CHARS) : el("em", { class: "soft" }, "(no words)")),
    mail.quoted ? el("details", {}, el("summary", {}, "Quoted text and signature"), el("pre", { tabIndex: 0 }, mail.quoted)) : null,
    files.length ? el("ul", { class: "files", "aria-label": "Attached files" }, files) : null);
}
