//! Spoken words of a model's text, without stage directions and without markup.

use std::ops::Range;

use ringer_media::call::is_unspaced;

use super::whole::Whole;

/// Longest stage direction or emphasis, in bytes.
const SPAN_BYTES_MAX: usize = 200;
/// Brackets around stage directions.
const BRACKETS: [(char, char); 4] = [('(', ')'), ('[', ']'), ('（', '）'), ('【', '】')];
/// Beginnings of link addresses.
const ADDRESSES: [&str; 7] = ["http://", "https://", "mailto:", "tel:", "www.", "/", "#"];
/// Verbs of visible or audible actions, which no caller says of itself in the third person.
const ACTIONS: [&str; 43] = [
    "sigh", "laugh", "chuckle", "giggle", "cough", "sniff", "sniffle", "sneeze", "clear", "pause", "nod", "shrug",
    "smile", "grin", "smirk", "frown", "breathe", "inhale", "exhale", "gasp", "groan", "moan", "mumble", "mutter",
    "murmur", "whisper", "shout", "yell", "cry", "crie", "sob", "hesitate", "hum", "yawn", "gulp", "swallow", "snort",
    "scoff", "wince", "squint", "stammer", "stutter", "blink",
];
/// Verbs that a caller may also say: they are stage directions only where they stand apart.
const MOVES: [&str; 22] = [
    "take", "look", "roll", "lean", "wait", "think", "raise", "lower", "shake", "check", "type", "write", "hold",
    "hang", "put", "pick", "turn", "speak", "sound", "silence", "beat", "breath",
];
/// Sounds, moods and manners that a bracket tells, which nobody says.
const DIRECTIONS: [&str; 56] = [
    "laughter",
    "music",
    "silence",
    "applause",
    "noise",
    "background",
    "static",
    "inaudible",
    "unintelligible",
    "crosstalk",
    "beep",
    "breath",
    "beat",
    "crying",
    "angry",
    "angrily",
    "annoyed",
    "upset",
    "sad",
    "sadly",
    "happy",
    "happily",
    "excited",
    "excitedly",
    "confused",
    "nervous",
    "nervously",
    "frustrated",
    "calm",
    "calmly",
    "cheerful",
    "cheerfully",
    "worried",
    "hesitant",
    "hesitantly",
    "impatient",
    "impatiently",
    "relieved",
    "surprised",
    "tired",
    "thoughtful",
    "thoughtfully",
    "sarcastic",
    "sarcastically",
    "softly",
    "quietly",
    "loudly",
    "slowly",
    "quickly",
    "firmly",
    "coldly",
    "warmly",
    "politely",
    "dryly",
    "flatly",
    "aside",
];
/// Words that are emphasized, and said, where they stand apart.
const STRESSED: [&str; 44] = [
    "yes",
    "no",
    "yeah",
    "yep",
    "nope",
    "ok",
    "okay",
    "please",
    "thanks",
    "thank",
    "sorry",
    "hello",
    "hi",
    "hey",
    "well",
    "really",
    "exactly",
    "absolutely",
    "definitely",
    "right",
    "sure",
    "not",
    "never",
    "always",
    "this",
    "that",
    "it",
    "i",
    "my",
    "your",
    "you",
    "we",
    "what",
    "when",
    "where",
    "why",
    "how",
    "who",
    "correct",
    "true",
    "and",
    "but",
    "all",
    "only",
];

/// Returns the spoken words of a model's text.
///
/// Stage directions are removed: bracketed words without a fact, and actions between asterisks. Of emphasis, headings,
/// lists, links and code only the marks are removed. All other signs stay, as do all values of `whole`.
pub(super) fn spoken(text: &str, whole: &Whole<'_>) -> String {
    let mut said = Vec::new();
    for line in text.lines().filter_map(words_of) {
        let mut page = Page { text: line, places: whole.places(line), whole, said: String::new() };
        page.read_part(0..line.len());
        said.extend(page.said.split_whitespace().map(str::to_owned));
    }
    said.join(" ")
}

/// Returns the end, in bytes, of the span that an opening sign at `at` begins; `None`: it begins none. `Err`: it may
/// still end when more text arrives.
pub(super) fn span_end(text: &str, at: usize) -> Result<Option<usize>, ()> {
    let Some(sign) = text[at..].chars().next() else { return Ok(None) };
    // One letter more, to distinguish a span that is too long from one that has not ended yet.
    let near = text.floor_char_boundary(at + SPAN_BYTES_MAX + 4);
    let line = text[at..near].find('\n').map_or(near, |length| at + length);
    let end = match BRACKETS.iter().find(|(open, _)| *open == sign) {
        Some(&pair) => closing(text, at..line, pair, &[]),
        None if matches!(sign, '*' | '_') => {
            let run = run_of(text, at, line);
            let worded = text[at + run..].chars().next().is_some_and(char::is_alphabetic);
            if !worded || !opens(text, at, run) {
                return Ok(None);
            }
            closer(text, at, run, line, &[]).map(|from| from + run)
        }
        None => return Ok(None),
    };
    match end.filter(|end| end - at <= SPAN_BYTES_MAX) {
        Some(end) => Ok(Some(end)),
        None if line == text.len() && line - at <= SPAN_BYTES_MAX => Err(()),
        None => Ok(None),
    }
}

/// Returns the words of a line without the marks at its start; `None` for a line that is only a mark.
fn words_of(line: &str) -> Option<&str> {
    let mut line = line.trim();
    let is_fence = |info: &str| info.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let is_rule = |sign: char| line.len() >= 3 && line.chars().all(|c| c == sign || c == ' ');
    if line.strip_prefix("```").is_some_and(is_fence) || ['-', '*', '_'].into_iter().any(is_rule) {
        return None;
    }
    loop {
        let Some((mark, rest)) = line.split_once(char::is_whitespace) else { return Some(line) };
        let rest = rest.trim_start();
        let numbered = rest.starts_with(|c: char| c.is_numeric());
        let heading = (1..=6).contains(&mark.len()) && mark.bytes().all(|byte| byte == b'#') && !numbered;
        match mark {
            ">" | "-" | "*" | "•" => line = rest,
            "+" if !numbered => line = rest,
            _ if heading => line = rest,
            _ => return Some(line),
        }
    }
}

/// A line while it is read.
struct Page<'p> {
    text: &'p str,
    /// Ranges of the values, from which nothing is removed.
    places: Vec<Range<usize>>,
    whole: &'p Whole<'p>,
    said: String,
}

impl Page<'_> {
    fn read_part(&mut self, part: Range<usize>) {
        let mut at = part.start;
        while at < part.end {
            at = match self.text[at..].chars().next() {
                _ if self.places.iter().any(|place| place.contains(&at)) => self.keep(at),
                Some('!') if self.text[at + 1..part.end].starts_with('[') => match self.link(at + 1, part.end) {
                    Some(end) => end,
                    None => self.keep(at),
                },
                Some(c) if BRACKETS.iter().any(|(open, _)| *open == c) => self.bracket(at, part.end),
                Some('*' | '_') => self.run(at, part.end),
                Some('`') => at + 1,
                _ => self.keep(at),
            };
        }
    }

    /// Keeps the character at `at`, and returns its end.
    fn keep(&mut self, at: usize) -> usize {
        let Some(c) = self.text[at..].chars().next() else { return self.text.len() };
        self.said.push(c);
        at + c.len_utf8()
    }

    /// Keeps the text of a link, or its address where it has no text. Returns its end; `None` where there is no link.
    fn link(&mut self, at: usize, to: usize) -> Option<usize> {
        let name = closing(self.text, at..to, ('[', ']'), &self.places)?;
        let address = self.text[name..to].strip_prefix('(')?;
        let address = &address[..address.find(')')?];
        if !ADDRESSES.iter().any(|start| address.starts_with(start)) {
            return None;
        }
        let end = name + address.len() + 2;
        match self.text[at + 1..name - 1].trim().is_empty() {
            true => self.said.push_str(address),
            false => self.read_part(at + 1..name - 1),
        }
        Some(end)
    }

    /// Reads brackets: a link, a stage direction, or plain words.
    fn bracket(&mut self, at: usize, to: usize) -> usize {
        if let Some(end) = self.link(at, to) {
            return end;
        }
        let pair = BRACKETS.into_iter().find(|(open, _)| self.text[at..].starts_with(*open)).unwrap_or_default();
        let Some(end) = closing(self.text, at..to, pair, &self.places) else { return self.keep(at) };
        // `ticket(s)` is one word.
        let attached = self.text[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() && !is_unspaced(c));
        let inner = at + pair.0.len_utf8()..end - pair.1.len_utf8();
        let empty = self.text[inner.clone()].trim().is_empty();
        if attached || empty || self.tells(inner.clone()) || !self.is_direction(inner, end) {
            return self.keep(at);
        }
        self.leave_out(end)
    }

    /// True if the words of a bracket are a stage direction: an action, a sound or a mood, or small letters apart from
    /// a sentence. Names and codes, such as `[B]` or `(Ohio)`, are said.
    fn is_direction(&self, inner: Range<usize>, end: usize) -> bool {
        let text = self.text[inner.clone()].trim();
        let words = super::words::plain_words(text);
        let Some(first) = words.first() else { return true };
        if text.contains(is_unspaced) {
            return true;
        }
        let last = words.last().filter(|_| words.len() <= 3).unwrap_or(first);
        let is_move = |word: &String| {
            MOVES.iter().any(|action| is_form(action, word) && (words.len() == 1 || *action != word.as_str()))
        };
        let is_known = |word: &String| {
            ACTIONS.iter().any(|action| is_form(action, word)) || DIRECTIONS.contains(&word.as_str()) || is_move(word)
        };
        let manner =
            words.len() > 2 && matches!(first.as_str(), "in" | "with") && matches!(words[1].as_str(), "a" | "an");
        if is_known(first) || is_known(last) || manner {
            return true;
        }
        let before = self.said.trim_end().chars().next_back();
        let apart = before.is_none_or(|c| matches!(c, '.' | '!' | '?' | '…'));
        let ends = self.text[end..].trim_start().is_empty();
        text.chars().all(|c| !c.is_uppercase()) && (apart && !ends || !self.whole.is_english())
    }

    /// Reads asterisks or underscores: marks of emphasis, marks of an action, or plain signs.
    fn run(&mut self, at: usize, to: usize) -> usize {
        let run = run_of(self.text, at, to);
        let (inner, before) = (at + run, self.text[..at].chars().next_back());
        let close = opens(self.text, at, run).then(|| closer(self.text, at, run, to, &self.places)).flatten();
        if let Some(close) = close.filter(|close| close - at <= SPAN_BYTES_MAX) {
            if run == 1 && self.is_action(inner..close) {
                return self.leave_out(close + run);
            }
            self.read_part(inner..close);
            return close + run;
        }
        // The other end of this emphasis is in another sentence.
        let after = self.text[inner..].chars().next();
        let [before, after] = [before, after].map(|c| c.is_some_and(char::is_alphabetic));
        if run > 1 && self.text[at..].starts_with('*') && (before || after) {
            return inner;
        }
        self.said.push_str(&self.text[at..inner]);
        inner
    }

    /// True if a fact is among these words.
    fn tells(&self, part: Range<usize>) -> bool {
        let overlaps = |place: &Range<usize>| place.start < part.end && part.start < place.end;
        self.places.iter().any(overlaps) || self.whole.tells(&self.text[part], &self.said)
    }

    /// True if the words between single marks are an action, and not an emphasized word.
    fn is_action(&self, part: Range<usize>) -> bool {
        let words: Vec<String> = super::words::plain_words(&self.text[part.clone()]);
        let (Some(first), false) = (words.first(), self.tells(part.clone())) else { return false };
        if self.text[part.clone()].contains(is_unspaced) {
            return true;
        }
        let last = words.last().filter(|_| words.len() <= 3).unwrap_or(first);
        if ACTIONS.iter().any(|action| is_third_person(action, first) || is_third_person(action, last)) {
            return true;
        }
        let before = self.said.trim_end().chars().next_back();
        let after = self.text[part.end..].trim_start_matches(['*', '_']).trim_start().chars().next();
        let is_apart = before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '\'' | '"'))
            && after.is_none_or(|c| !c.is_alphanumeric() || !c.is_lowercase());
        let known = || ACTIONS.iter().chain(&MOVES).any(|action| is_form(action, first) || is_form(action, last));
        // "*in a low voice* Good morning."
        let begins = before.is_none_or(|c| matches!(c, '.' | '!' | '?' | '…'))
            && self.text[part].starts_with(char::is_lowercase)
            && after.is_none_or(|c| c.is_alphabetic());
        is_apart && !STRESSED.contains(&first.as_str()) && (known() || begins)
    }

    /// Skips everything up to `end`, and leaves no blank before the sign that follows.
    fn leave_out(&mut self, end: usize) -> usize {
        let rest = &self.text[end..];
        let next = rest.trim_start();
        let mut letters = next.chars();
        let sign = letters.next().is_some_and(|c| matches!(c, ',' | ';' | ':' | '.' | '!' | '?' | '…' | '，' | '。'));
        // ".5" begins a word.
        if !sign || letters.next().is_some_and(char::is_alphanumeric) {
            return end;
        }
        self.said.truncate(self.said.trim_end().len());
        let signs = if self.said.ends_with(|c: char| c.is_alphanumeric()) { 0 } else { 1 };
        rest.len() - next.len() + end + next.chars().take(signs).map(char::len_utf8).sum::<usize>()
    }
}

/// Returns the end of the bracket at the start of `part`, nested ones counted; brackets inside `places` do not count.
fn closing(text: &str, part: Range<usize>, (open, close): (char, char), places: &[Range<usize>]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text[part.clone()].char_indices().map(|(at, c)| (part.start + at, c)) {
        if places.iter().any(|place| place.contains(&at)) {
            continue;
        }
        if c == open {
            depth += 1;
        } else if c == close {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(at + c.len_utf8());
            }
        }
    }
    None
}

/// Returns the length of the run of equal signs at `at`.
fn run_of(text: &str, at: usize, to: usize) -> usize {
    let sign = text.as_bytes()[at];
    text.as_bytes()[at..to].iter().take_while(|byte| **byte == sign).count()
}

/// True if a run of signs stands before a word, and not inside one.
fn opens(text: &str, at: usize, run: usize) -> bool {
    let outside = |c: char| !c.is_alphanumeric() || is_unspaced(c);
    run <= 3
        && text[..at].chars().next_back().is_none_or(outside)
        && text[at + run..].chars().next().is_some_and(|c| !c.is_whitespace())
}

/// Returns the start of a run of as many equal signs that stands behind a word.
fn closer(text: &str, at: usize, run: usize, to: usize, places: &[Range<usize>]) -> Option<usize> {
    let sign = char::from(text.as_bytes()[at]);
    let outside = |c: char| !c.is_alphanumeric() || is_unspaced(c);
    let mut from = at + run;
    while let Some(found) = text[from..to].find(sign).map(|found| from + found) {
        let length = run_of(text, found, to);
        // A run of three ends two spans at once.
        let closes = (length == run || length == 3)
            && !text[..found].ends_with(char::is_whitespace)
            && text[found + length..].chars().next().is_none_or(outside)
            && !places.iter().any(|place| place.contains(&found));
        if closes {
            return Some(found + length - run);
        }
        from = found + length;
    }
    None
}

fn is_third_person(action: &str, word: &str) -> bool {
    word.strip_prefix(action).is_some_and(|end| end == "s")
}

/// True for any form of an action: `sigh`, `sighs`, `sighing`, `pausing`.
fn is_form(action: &str, word: &str) -> bool {
    let stem = action.strip_suffix('e').unwrap_or(action);
    word.strip_prefix(action).is_some_and(|end| matches!(end, "" | "s"))
        || word.strip_prefix(stem).is_some_and(|end| end.ends_with("ing") && end.len() <= 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: [&str; 5] = ["Maria", "A*B_c*", "[9]X", "12 (rear) Elm St", "red roof"];

    fn check(text: &str, expect: &str) {
        assert_eq!(spoken(text, &Whole::new(VALUES, "en")), expect, "{text}");
    }

    #[test]
    fn facts_are_said_as_they_are() {
        for fact in [
            "(555) 010-4477, ann_lee@example.com, order #A_12",
            "I want 3 * 4.",
            "2*3 is 6, 2**3 is 8.",
            "snake_case, __main, C#, F#-minor and #12",
            "*67 and then *69",
            "*21*5551234# or #31#",
            "# 12 is mine.",
            "+ 1 555 010 4477",
            "unit [B]",
            "It is unit [B], in Springfield (Ohio).",
            "I am with the (NHS) trust.",
            "I want the second one (the blue one) please.",
            "50 (fifty) boxes",
            "five (5) boxes in 30 (thirty days)",
            "My name is Lee (L-E-E).",
            "Write to me (ann.lee@example.com), or (call me at example.com).",
            "The lady (Maria Lee) lives here.",
            "It is the house (the one with the red roof) there.",
            "The code is A*B_c* and [9]X.",
            "I live at 12 (rear) Elm St.",
            "It is about .5 percent , or .NET .",
            "I want ticket(s) for it.",
            "Call me (maybe",
            "Call me maybe) or [not",
            "The footnote* is mine.",
            "5 > 4 and 3 - 2",
            "~/.config/a_b and <tag>",
            "The list [1] and {{name}}.",
            "我有（3）个。",
        ] {
            check(fact, fact);
        }
        check("- 2 adults", "2 adults");
        check("(red roof)", "(red roof)");
    }

    #[test]
    fn stage_directions_are_not_said() {
        check("*sighs* Well (pause), **yes**.", "Well, yes.");
        check("[angry] I want 3 * 4.", "I want 3 * 4.");
        check("(sighs). Yes", "Yes");
        check("(laughs) Fine (sighs (loudly)) thanks.", "Fine thanks.");
        check("I took .5 (pauses) .5 more (sniffs).", "I took .5 .5 more.");
        check("Pay 50 (laughs) now.", "Pay 50 now.");
        check("[pauses for a second] No", "No");
        check("Well (nervous laughter) yes.", "Well yes.");
        check("(in a low voice) Yes [LAUGHS].", "Yes.");
        check("(to herself) Hm, yes.", "Hm, yes.");
        check("I want *coughs* help", "I want help");
        check("I am *clears throat* here", "I am here");
        check("Fine. *in a low voice* Good morning.", "Fine. Good morning.");
        check("*Takes a deep breath* I see.", "I see.");
        check("*long pause* Hello.", "Hello.");
        check("Hm. *sighing*", "Hm.");
        check("*nods*", "");
        check("_sighs_ Yes.", "Yes.");
        check("*seufzt* Ja.", "Ja.");
        check("你好（笑）。", "你好。");
        check("*叹气* 你好。", "你好。");
        check("*sighs* *nods* Yes.", "Yes.");
    }

    #[test]
    fn of_markup_only_the_marks_go() {
        check("I *really* want **two**, ***now***, _please_.", "I really want two, now, please.");
        check("*Really* bad", "Really bad");
        check("*yes*", "yes");
        check("*Yes please* I do.", "Yes please I do.");
        check("I have a *cough* since *Monday*.", "I have a cough since Monday.");
        check("I need *5* of *A12*.", "I need 5 of A12.");
        check("un**believ**able", "unbelievable");
        check("**Yes.", "Yes.");
        check("it**", "it");
        check("**My name is *Maria***", "My name is Maria");
        check("# Hello\n## There", "Hello There");
        check("- one\n* two\n• three\n> four", "one two three four");
        check("```json\nYes.\n```\n---\n`no`", "Yes. no");
        check("See [our site](https://example.com/a_b) or [mail](mailto:a@b.c).", "See our site or mail.");
        check("![a cat](https://x.y/z.png) and [](https://x.y)", "a cat and https://x.y");
        check("[*sighs*](https://x.y)", "");
    }

    #[test]
    fn spans_end_where_they_are_closed() {
        let check = |text: &str, expect| assert_eq!(span_end(text, 0), expect, "{text}");
        check("(one. two) three", Ok(Some(10)));
        check("*one. two* three", Ok(Some(10)));
        check("(one. two", Err(()));
        check("**one. two", Err(()));
        check("(one\ntwo)", Ok(None));
        check("*67. Then", Ok(None));
        check("* one*", Ok(None));
        check("word", Ok(None));
        check(&format!("({}", "one. ".repeat(50)), Ok(None));
    }
}
