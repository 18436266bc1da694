//! Halves of surrogate pairs in JSON text (RFC 8259 section 8.2): a parser of strict UTF-8 refuses them, and servers
//! that cut text between two of them send them. They are marked before the text is parsed, and joined in the order of
//! the pieces.

use std::borrow::Cow;

use serde_json::Value;

/// Begins a mark; a noncharacter, which no text holds.
const MARK: char = '\u{FDD0}';
/// The second character of a mark, less the number of the half (private use, plane 16).
const BASE: u32 = 0x10_F000;
/// First code of the surrogates.
const FIRST: u32 = 0xD800;
/// Second halves begin here.
const SECOND: u32 = 0xDC00;
/// Surrogates end before this.
const END: u32 = 0xE000;

/// Returns JSON text with each lone half replaced by a mark.
pub(crate) fn mark(json: &str) -> Cow<'_, str> {
    replace(json, |half, out| {
        out.push(MARK);
        out.extend(char::from_u32(BASE + half - FIRST));
    })
}

/// Parses JSON; lone halves become U+FFFD, and so does what is no UTF-8.
///
/// # Errors
/// It is no JSON.
pub(crate) fn read_json(bytes: &[u8]) -> serde_json::Result<Value> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
    serde_json::from_str(&replace(text, |_, out| out.push(char::REPLACEMENT_CHARACTER)))
}

/// Returns JSON text in which `instead` has written something for each lone half.
fn replace(json: &str, instead: impl Fn(u32, &mut String)) -> Cow<'_, str> {
    if !json.contains("\\u") {
        return Cow::Borrowed(json);
    }
    let (mut out, mut kept, mut at) = (String::new(), 0, 0);
    while let Some(found) = json[at..].find('\\') {
        let escape = at + found;
        let Some(half) = half_at(json, escape) else {
            // The character that is escaped may itself be a backslash; it may have several bytes.
            at = json[escape + 1..].chars().next().map_or(json.len(), |next| escape + 1 + next.len_utf8());
            continue;
        };
        let next = half_at(json, escape + 6).filter(|next| *next >= SECOND);
        if half < SECOND && next.is_some() {
            at = escape + 12;
            continue;
        }
        out.push_str(&json[kept..escape]);
        instead(half, &mut out);
        at = escape + 6;
        kept = at;
    }
    if kept == 0 {
        return Cow::Borrowed(json);
    }
    out.push_str(&json[kept..]);
    Cow::Owned(out)
}

/// Returns the half that is escaped here as `\uXXXX`.
fn half_at(json: &str, at: usize) -> Option<u32> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    let number =
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())??;
    (FIRST..END).contains(&number).then_some(number)
}

/// Joins the halves that are marked in the pieces of one text.
#[derive(Debug, Default)]
pub(crate) struct Joiner {
    /// True if a mark has begun.
    marks: bool,
    /// A first half waits for its second.
    first: Option<u32>,
}

impl Joiner {
    /// Returns the next piece without marks. A first half at its end is kept for the next.
    pub(crate) fn take(&mut self, piece: &str) -> String {
        if !self.marks && self.first.is_none() && !piece.contains(MARK) {
            return piece.to_owned();
        }
        let mut out = String::new();
        for c in piece.chars() {
            let code = u32::from(c);
            let half = (BASE..BASE + END - FIRST).contains(&code).then(|| code - BASE + FIRST);
            match (std::mem::take(&mut self.marks), half) {
                (true, Some(half)) => self.half(half, &mut out),
                _ if c == MARK => self.marks = true,
                _ => {
                    out.push_str(&self.end());
                    out.push(c);
                }
            }
        }
        out
    }

    fn half(&mut self, half: u32, out: &mut String) {
        if half < SECOND {
            out.push_str(&self.end());
            self.first = Some(half);
            return;
        }
        let pair = self.first.take().map(|first| 0x1_0000 + ((first - FIRST) << 10) + (half - SECOND));
        out.push(pair.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER));
    }

    /// Returns the replacement character for a half that had no second half; else nothing.
    pub(crate) fn end(&mut self) -> String {
        self.first.take().map(|_| char::REPLACEMENT_CHARACTER.into()).unwrap_or_default()
    }
}

/// Returns a whole text without marks.
pub(crate) fn join(text: &str) -> String {
    let mut joiner = Joiner::default();
    let mut out = joiner.take(text);
    out.push_str(&joiner.end());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_joined_over_pieces_and_a_lone_one_is_replaced() {
        let check = |pieces: &[&str], expect: &str| {
            let mut joiner = Joiner::default();
            let mut text = String::new();
            for piece in pieces {
                let json = format!("\"{piece}\"");
                let read: String = serde_json::from_str(&mark(&json)).expect(piece);
                text.push_str(&joiner.take(&read));
            }
            text.push_str(&joiner.end());
            assert_eq!(text, expect, "{pieces:?}");
        };
        check(&["a", "b"], "ab");
        check(&[r"a\ud83d\ude00b"], "a😀b");
        check(&[r"a\ud83d", r"\ude00b"], "a😀b");
        check(&[r"a\uD83D", "", r"\uDE00"], "a😀");
        check(&[r"a\ud83d", "b"], "a\u{FFFD}b");
        check(&[r"a\ude00", "b"], "a\u{FFFD}b");
        check(&[r"a\ud83d"], "a\u{FFFD}");
        check(&[r"\ud83d\ud83d\ude00"], "\u{FFFD}😀");
        check(&[r"\ude00\ud83d", r"\ude00"], "\u{FFFD}😀");
        check(&[r"\\ud83d é\n"], "\\ud83d é\n");
        check(&[r"\\\ud83d"], "\\\u{FFFD}");
        check(&[r"\u00e9"], "é");
    }

    #[test]
    fn whole_documents_are_read_with_lone_halves() {
        let check = |json: &str, expect: Option<&str>| {
            let read = read_json(json.as_bytes()).ok();
            assert_eq!(read.as_ref().and_then(|value| value["a"].as_str()), expect, "{json}");
        };
        check(r#"{"a":"x\ud83d"}"#, Some("x\u{FFFD}"));
        check(r#"{"a":"\ud83d\ude00"}"#, Some("😀"));
        check("\u{FEFF}{\"a\":\"x\"}", Some("x"));
        check(r#"{"a":"\ud8"}"#, None);
        check(r#"{"a":"\"#, None);
    }
}
