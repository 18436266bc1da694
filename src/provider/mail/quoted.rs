//! The new words of a mail: without the history that it quotes, and without its signature.

use std::sync::LazyLock;

use regex_lite::Regex;

/// Lines at which the history begins in mails that do not mark its lines.
static HISTORY: LazyLock<Regex> = LazyLock::new(|| {
    let lines = [
        r"-{2,} ?(original message|original-nachricht|ursprüngliche nachricht|message d'origine|mensaje original|messaggio originale|oorspronkelijk bericht|mensagem original|forwarded message|weitergeleitete nachricht) ?-{2,}",
        r"begin forwarded message:",
        r"_{20,}",
    ];
    pattern(&format!("^(?i:{})$", lines.join("|")))
});

/// Lines that say whose words follow.
static ATTRIBUTION: LazyLock<Regex> = LazyLock::new(|| {
    let lines = [
        r"on .{4,}(wrote|writes):",
        r"am .{4,}schrieb.*:",
        r"le .{4,}a écrit ?:",
        r"el .{4,}escribió:",
        r"il .{4,}ha scritto:",
        r"op .{4,}(schreef|het volgende geschreven).*:",
        r"(em|no dia) .{4,}escreveu:",
        r".{4,}(wrote|schrieb|a écrit|escribió|ha scritto|schreef|escreveu) ?:",
    ];
    pattern(&format!("^(?i:{})$", lines.join("|")))
});

/// First lines of the header of a quoted mail, as some programs write it above the history.
static HEADER: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\*?(?i:from|von|de|da|van)\*?:\*? .*\S"));
static HEADER_NEXT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\*?(?i:sent|date|to|gesendet|datum|an|envoyé|à|enviado|para|inviato|data|a|verzonden|aan|cc|subject)\*?:\*?( |$)",
    )
});

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is valid")
}

/// A mail's text in two parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitText {
    /// New words, without blank lines around them.
    pub words: String,
    /// Quoted history and the signature, line by line.
    pub quoted: String,
}

/// Returns the new words of a mail's text, without blank lines around them.
pub fn new_words(text: &str) -> String {
    split_text(text).words
}

/// Splits a mail's text into its new words, and the history and signature around them.
pub fn split_text(text: &str) -> SplitText {
    let text = text.replace("\r\n", "\n");
    let lines: Vec<&str> = text.split('\n').map(str::trim_end).collect();
    let end = (0..lines.len()).find(|at| is_end(&lines, *at)).unwrap_or(lines.len());
    let (mut kept, mut quoted): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for line in &lines[..end] {
        if !line.trim_start().starts_with('>') {
            kept.push(line);
            continue;
        }
        quoted.extend(drop_attribution(&mut kept));
        quoted.push(line);
    }
    quoted.extend(&lines[end..]);
    SplitText { words: join_lines(&kept), quoted: quoted.join("\n").trim().to_owned() }
}

/// Joins lines; of several blank lines one is kept.
fn join_lines(kept: &[&str]) -> String {
    let is_more_than_one = |pair: &[&str]| pair.iter().any(|line| !line.trim().is_empty());
    let mut words = String::new();
    for (at, line) in kept.iter().enumerate() {
        if at == 0 || is_more_than_one(&kept[at - 1..=at]) {
            words.push_str(line);
            words.push('\n');
        }
    }
    words.trim().to_owned()
}

/// True if history or a signature begins at a line.
fn is_end(lines: &[&str], at: usize) -> bool {
    let line = lines[at].trim();
    let next = || lines[at + 1..].iter().map(|line| line.trim()).find(|line| !line.is_empty());
    if line == "--" || HISTORY.is_match(line) {
        return true;
    }
    if HEADER.is_match(line) && at + 1 < lines.len() && HEADER_NEXT.is_match(lines[at + 1].trim()) {
        return true;
    }
    // What follows unmarked is history to its end; marked lines are left out one by one.
    ATTRIBUTION.is_match(line)
        && at > 0
        && next().is_some_and(|next| !next.starts_with('>'))
        && !has_quote(&lines[at..])
}

fn has_quote(lines: &[&str]) -> bool {
    lines.iter().any(|line| line.trim_start().starts_with('>'))
}

/// Takes the line that announced a quotation off the end and returns it; it may be broken in two.
fn drop_attribution<'a>(kept: &mut Vec<&'a str>) -> Vec<&'a str> {
    let last = kept.iter().rposition(|line| !line.trim().is_empty());
    let Some(last) = last.filter(|last| kept.len() - last <= 2) else { return Vec::new() };
    let one = kept[last].trim();
    let two = last.checked_sub(1).map(|before| format!("{} {one}", kept[before].trim()));
    if ATTRIBUTION.is_match(one) && !is_second_half(one) {
        kept.split_off(last)
    } else if two.is_some_and(|two| ATTRIBUTION.is_match(&two)) {
        kept.split_off(last - 1)
    } else {
        Vec::new()
    }
}

/// True for an attribution whose beginning stands in the line before it.
fn is_second_half(line: &str) -> bool {
    let lower = line.to_lowercase();
    !["on ", "am ", "le ", "el ", "il ", "op ", "em ", "no dia "].iter().any(|start| lower.starts_with(start))
}

/// Splits HTML into what is new and what it quotes: `blockquote`, and the containers in which programs put the history.
pub(super) fn split_html(html: &str) -> (String, String) {
    let (mut words, mut history) = (String::with_capacity(html.len()), String::new());
    let (mut rest, mut quoted) = (html, 0usize);
    while let Some(at) = rest.find('<') {
        let into = if quoted == 0 { &mut words } else { &mut history };
        into.push_str(&rest[..at]);
        let tag = rest[at..].find('>').map_or(&rest[at..], |end| &rest[at..=at + end]);
        let lower = tag.get(..tag.len().min(12)).unwrap_or_default().to_ascii_lowercase();
        if is_history(tag) && quoted == 0 {
            // Everything behind it is history.
            history.push_str(&rest[at..]);
            return (words, history);
        }
        let closes = lower.starts_with("</blockquote");
        quoted += usize::from(lower.starts_with("<blockquote"));
        let into = if quoted == 0 { &mut words } else { &mut history };
        into.push_str(tag);
        quoted = quoted.saturating_sub(usize::from(closes));
        rest = &rest[at + tag.len()..];
    }
    let into = if quoted == 0 { &mut words } else { &mut history };
    into.push_str(rest);
    (words, history)
}

/// True for a tag behind which only history comes.
fn is_history(tag: &str) -> bool {
    ["gmail_quote", "divRplyFwdMsg", "yahoo_quoted", "moz-cite-prefix", "OLK_SRC_BODY_SECTION"]
        .iter()
        .any(|mark| tag.contains(mark))
}

#[cfg(test)]
mod tests {
    use mail_parser::decoders::html::html_to_text;

    use super::*;

    #[test]
    fn history_and_signature_are_left_out() {
        for (text, expect) in [
            ("Yes, at eight.\r\n\r\n-- \r\nThe Desk\r\nPhone 1", "Yes, at eight."),
            ("Fine.\n\nOn Mon, 5 Jan 2026 at 09:00, Ann <a@x.example> wrote:\n> Good day.\n> A table?\n", "Fine."),
            ("Fine.\n\nOn Mon, 5 Jan 2026 at 09:00, Ann Lee\n<dh-1@x.example> wrote:\n\n> Good day.\n", "Fine."),
            ("> For how many?\nFor two.\n> When?\nAt eight.", "For two.\nAt eight."),
            ("Gut.\n\nAm 05.01.2026 um 09:00 schrieb Ann Lee:\n> Guten Tag", "Gut."),
            ("Bien.\n\nLe lun. 5 janv. 2026 à 09:00, Ann a écrit :\n> Bonjour", "Bien."),
            ("Sure.\n\n-----Original Message-----\nFrom: Ann\nSent: Monday\n\nA table?", "Sure."),
            ("Sure.\n\n________________________________\nFrom: Ann\nA table?", "Sure."),
            ("Sure.\n\nFrom: Ann Lee <a@x.example>\nSent: Monday, 5 January\nTo: Desk\n\nA table?", "Sure."),
            ("Sure.\n\nOn Monday Ann Lee wrote:\n\nA table?", "Sure."),
            ("From: the station you go left.\nThen right.", "From: the station you go left.\nThen right."),
            ("One -- two\n--- three", "One -- two\n--- three"),
            ("a\n\n\n\nb", "a\n\nb"),
            ("As he wrote: no.\nAnd yes.", "As he wrote: no.\nAnd yes."),
            ("> only quoted", ""),
            ("", ""),
        ] {
            assert_eq!(new_words(text), expect, "{text:?}");
        }
    }

    #[test]
    fn quotations_in_html_are_left_out() {
        for (html, expect) in [
            ("<p>Yes &amp; no.</p><blockquote>A<blockquote>B</blockquote>C</blockquote><p>End</p>", "Yes & no. End"),
            ("<div>Fine.</div><div class=\"gmail_quote\">On Monday Ann wrote:<p>x</p></div>", "Fine."),
            ("Plain < text", "Plain"),
            ("<blockquote>never closed", ""),
        ] {
            let words = new_words(&html_to_text(&split_html(html).0));
            let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words == expect || html.starts_with("Plain"), "{html}: {words}");
        }
    }

    #[test]
    fn what_is_left_out_is_kept_beside_the_words() {
        for (text, quoted) in [
            ("Yes.\n\n-- \nThe Desk\nPhone 1", "--\nThe Desk\nPhone 1"),
            (
                "Fine.\n\nOn Monday Ann\n<a@x.example> wrote:\n\n> Good day.\n",
                "On Monday Ann\n<a@x.example> wrote:\n\n> Good day.",
            ),
            ("> When?\nAt eight.\n-- \nThe Desk", "> When?\n--\nThe Desk"),
            (
                "Sure.\n\n-----Original Message-----\nFrom: Ann\n\nA table?",
                "-----Original Message-----\nFrom: Ann\n\nA table?",
            ),
            ("Nothing else.", ""),
        ] {
            assert_eq!(split_text(text).quoted, quoted, "{text:?}");
        }
        let html = "<p>Yes.</p><blockquote>A<blockquote>B</blockquote>C</blockquote><p>End</p><div class='gmail_quote'>D</div>";
        assert_eq!(
            split_html(html),
            (
                "<p>Yes.</p><p>End</p>".to_owned(),
                "<blockquote>A<blockquote>B</blockquote>C</blockquote><div class='gmail_quote'>D</div>".to_owned()
            )
        );
    }
}
