//! Reasoning that a model writes among its words, between tags: it is taken out, however the pieces are cut. A block of
//! reasoning begins at the front or at the beginning of a line; a tag inside a sentence is a word like others.

/// Pairs of tags around reasoning.
const TAGS: [[&str; 2]; 5] = [
    ["<think>", "</think>"],
    ["<thinking>", "</thinking>"],
    ["<reasoning>", "</reasoning>"],
    ["<thought>", "</thought>"],
    ["[THINK]", "[/THINK]"],
];
/// Signs before a tag that is only mentioned.
const QUOTES: [char; 7] = ['"', '\'', '`', '“', '‘', '«', '\\'];
const OPENS: usize = 0;
const CLOSES: usize = 1;
/// Longest tag in bytes.
const TAG_BYTES: usize = 12;
/// Longest text in bytes that is held back; what is longer is passed on as it is.
const HELD_MAX: usize = 1 << 20;

/// Way in which a model marks its reasoning.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Manner {
    /// Not known yet: a text may turn out to be reasoning at the tag that closes it.
    #[default]
    Unknown,
    /// Reasoning stands between both tags, apart from the words, or there is none.
    Plain,
    /// Only the end is marked: the opening tag is part of what the server shows to the model.
    Unopened,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum State {
    /// The first word has not come yet.
    Front,
    /// The text so far is reasoning if a closing tag ends it.
    Unsure,
    /// Between the tags of this number; behind words when not at the front.
    Inside { tag: usize, front: bool },
    /// Inside the words of the answer.
    Words,
}

/// Takes the reasoning out of one answer.
#[derive(Debug)]
pub(super) struct Thinking {
    manner: Manner,
    state: State,
    held: String,
    /// Ends of the pieces in `held` while it is unsure what they are.
    cuts: Vec<usize>,
    /// Bytes of `held` in which no tag begins.
    scanned: usize,
    /// True if reasoning was taken out at the front.
    closed: bool,
    /// True if only blanks have come since the last line feed.
    at_line_start: bool,
    /// True if words were passed on before it was sure that they are no reasoning.
    released: bool,
    /// End of the words that were passed on, and true if an opening tag is among them.
    passed: String,
    opened: bool,
}

impl Thinking {
    /// Returns the state for an answer of a model that marks its reasoning in this way.
    pub(super) fn new(manner: Manner) -> Thinking {
        Thinking {
            manner,
            state: State::Front,
            held: String::new(),
            cuts: Vec::new(),
            scanned: 0,
            closed: false,
            at_line_start: false,
            released: false,
            passed: String::new(),
            opened: false,
        }
    }

    /// Returns the way in which the model marks its reasoning, as far as this answer has shown.
    pub(super) fn manner(&self) -> Manner {
        self.manner
    }

    /// Notes that the server keeps reasoning apart: what comes as words are words.
    pub(super) fn is_apart(&mut self) {
        if self.manner == Manner::Unknown {
            self.manner = Manner::Plain;
        }
    }

    /// True while words are held back that may be reasoning.
    pub(super) fn is_unsure(&self) -> bool {
        self.state == State::Unsure && self.manner == Manner::Unknown
    }

    /// Passes on what is held back, and holds nothing back any longer: it has taken too long.
    pub(super) fn release(&mut self) -> Vec<String> {
        if !self.is_unsure() {
            return Vec::new();
        }
        let mut words = pieces(&std::mem::take(&mut self.held), &std::mem::take(&mut self.cuts));
        (self.state, self.scanned, self.released) = (State::Words, 0, true);
        words.retain(|words| !words.is_empty());
        words
    }

    /// Takes the next piece of an answer, gives the words that are sure to be said.
    pub(super) fn take(&mut self, piece: &str) -> Vec<String> {
        self.held.push_str(piece);
        if matches!(self.state, State::Front | State::Unsure) {
            self.cuts.push(self.held.len());
        }
        let mut words = Vec::new();
        while self.step(&mut words) {}
        words.retain(|words| !words.is_empty());
        words.iter().for_each(|words| self.note_passed(words));
        words
    }

    /// Remembers what was passed on: a tag that closes what it opened, or stands in quotation marks, is a word.
    fn note_passed(&mut self, words: &str) {
        self.passed.push_str(words);
        self.opened |= TAGS.iter().any(|tag| find(&self.passed, tag[OPENS], 0).is_some());
        let from = self.passed.floor_char_boundary(self.passed.len().saturating_sub(TAG_BYTES));
        self.passed.drain(..from);
    }

    /// Returns the words that were held back. `whole`: the answer has come to its own end, and was not cut off.
    pub(super) fn end(&mut self, whole: bool) -> Vec<String> {
        let mut words = Vec::new();
        if self.state == State::Words && self.released && whole {
            self.is_apart();
        }
        match self.state {
            State::Unsure if whole || self.manner == Manner::Unknown => {
                if whole {
                    // One answer without a tag does not yet undo what an earlier one has shown.
                    self.manner = if self.manner == Manner::Unopened { Manner::Unknown } else { Manner::Plain };
                }
                if TAGS.iter().any(|tag| find(&self.held, tag[OPENS], 0).is_some()) {
                    self.state = State::Words;
                    while self.step(&mut words) {}
                    words.push(std::mem::take(&mut self.held));
                } else {
                    words = pieces(&self.held, &self.cuts);
                }
            }
            State::Front if !whole => {}
            State::Unsure | State::Inside { front: true, .. } => {}
            // A block that nothing closes was no block.
            State::Front | State::Words | State::Inside { front: false, .. } => {
                words.push(std::mem::take(&mut self.held));
            }
        }
        self.held.clear();
        words.retain(|words| !words.is_empty());
        words
    }

    /// Goes one step on; false when there is nothing to do before the next piece.
    fn step(&mut self, words: &mut Vec<String>) -> bool {
        match self.state {
            State::Front => self.front(),
            State::Unsure => self.unsure(),
            State::Inside { tag, front } => self.inside(tag, front),
            State::Words => self.words(words),
        }
    }

    fn front(&mut self) -> bool {
        let rest = self.held.trim_start();
        let from = self.held.len() - rest.len();
        if rest.is_empty() {
            return false;
        }
        let (opens, closes) = (tag_at(rest, OPENS), tag_at(rest, CLOSES));
        match (opens, closes) {
            (Tag::Whole(tag), _) => {
                self.cut_to(from + TAGS[tag][OPENS].len());
                self.is_apart();
                self.state = State::Inside { tag, front: true };
                true
            }
            (_, Tag::Whole(tag)) => {
                self.close(from + TAGS[tag][CLOSES].len());
                true
            }
            (Tag::Part, _) | (_, Tag::Part) => false,
            (Tag::None, Tag::None) => {
                if self.closed {
                    self.cut_to(from);
                }
                if is_data(self.held.trim_start()) {
                    self.is_apart();
                }
                let is_sure = self.closed || self.manner == Manner::Plain || is_data(self.held.trim_start());
                // A tag may still tell that these words were reasoning, also of a model that has shown none before.
                self.released = is_sure && !self.closed && !is_data(self.held.trim_start());
                self.state = if is_sure { State::Words } else { State::Unsure };
                true
            }
        }
    }

    /// Looks for a closing tag that no opening tag precedes; returns true if the state has changed.
    fn unsure(&mut self) -> bool {
        if self.close_unopened() {
            return true;
        }
        self.scanned = self.held.len();
        if self.held.len() > HELD_MAX {
            (self.state, self.scanned) = (State::Words, 0);
            return true;
        }
        false
    }

    fn close_unopened(&mut self) -> bool {
        let from = self.scanned.saturating_sub(TAG_BYTES);
        let found = TAGS.iter().filter_map(|tag| Some((find_unopened(&self.held, tag, from)?, tag[CLOSES])));
        let is_word = |at: usize| self.opened || (at == 0 && self.passed.ends_with(QUOTES));
        let found = found.min().filter(|(at, _)| !is_word(*at));
        if let Some((at, tag)) = found {
            self.close(at + tag.len());
        }
        found.is_some()
    }

    fn close(&mut self, to: usize) {
        self.cut_to(to);
        (self.manner, self.closed, self.released, self.state) = (Manner::Unopened, true, false, State::Front);
    }

    fn inside(&mut self, tag: usize, front: bool) -> bool {
        let close = TAGS[tag][CLOSES];
        let from = self.scanned.saturating_sub(TAG_BYTES);
        if let Some(at) = find(&self.held, close, from) {
            self.cut_to(at + close.len());
            (self.state, self.closed) = if front { (State::Front, true) } else { (State::Words, self.closed) };
            return true;
        }
        if front || self.held.len() > HELD_MAX {
            self.state = State::Inside { tag, front: true };
            let tail = self.held.floor_char_boundary(self.held.len().saturating_sub(TAG_BYTES));
            self.cut_to(tail);
        } else {
            self.scanned = self.held.len();
        }
        false
    }

    fn words(&mut self, words: &mut Vec<String>) -> bool {
        if self.released {
            if self.close_unopened() {
                return true;
            }
            let tail = self.held.rfind(['<', '[']).filter(|&at| matches!(tag_at(&self.held[at..], CLOSES), Tag::Part));
            words.extend(tail.map(|tail| self.held[..tail].to_owned()));
            if let Some(tail) = tail {
                let begun = self.held[..tail].rsplit_once('\n').map(|(_, begun)| begun.trim().is_empty());
                self.at_line_start = begun.unwrap_or(self.at_line_start && self.held[..tail].trim().is_empty());
                self.cut_to(tail);
                return false;
            }
        }
        let mut at = 0;
        loop {
            if self.at_line_start {
                let rest = self.held[at..].trim_start();
                let from = self.held.len() - rest.len();
                match if rest.is_empty() { Tag::None } else { tag_at(rest, OPENS) } {
                    Tag::None => self.at_line_start = rest.is_empty(),
                    tag => {
                        words.push(self.held[..from].to_owned());
                        self.cut_to(from);
                        let Tag::Whole(tag) = tag else { return false };
                        self.state = State::Inside { tag, front: false };
                        return true;
                    }
                }
                at = from;
            }
            match self.held[at..].find('\n') {
                Some(found) => (at, self.at_line_start) = (at + found + 1, true),
                None => break,
            }
        }
        words.push(std::mem::take(&mut self.held));
        false
    }

    /// Drops what is held before `to`.
    fn cut_to(&mut self, to: usize) {
        self.held.drain(..to);
        self.cuts.clear();
        self.cuts.push(self.held.len());
        self.scanned = 0;
    }
}

/// Returns a whole answer without its reasoning.
pub(crate) fn without(text: String) -> String {
    if !TAGS.iter().any(|tag| find(&text, tag[CLOSES], 0).is_some() || find(&text, tag[OPENS], 0).is_some()) {
        return text;
    }
    let mut thinking = Thinking::new(Manner::Unknown);
    let mut words = thinking.take(&text);
    words.extend(thinking.end(true));
    words.concat()
}

/// Returns `text` cut at these places.
fn pieces(text: &str, cuts: &[usize]) -> Vec<String> {
    let mut from = 0;
    let mut pieces: Vec<String> =
        cuts.iter().map(|&to| text[std::mem::replace(&mut from, to)..to].to_owned()).collect();
    pieces.push(text[from..].to_owned());
    pieces
}

/// True for the beginning of JSON or of a fence: no model reasons so.
fn is_data(text: &str) -> bool {
    text.starts_with(['{', '[']) || text.starts_with("```")
}

enum Tag {
    Whole(usize),
    /// The text so far may become a tag.
    Part,
    None,
}

/// Returns the tag that a text begins with, in any case of letters.
fn tag_at(text: &str, side: usize) -> Tag {
    let begins = |tag: &str| {
        let length = tag.len().min(text.len());
        text.as_bytes()[..length].eq_ignore_ascii_case(&tag.as_bytes()[..length])
    };
    let mut fits = TAGS.iter().enumerate().filter(|(_, tag)| begins(tag[side])).peekable();
    if fits.peek().is_none() {
        return Tag::None;
    }
    fits.find(|(_, tag)| tag[side].len() <= text.len()).map_or(Tag::Part, |(number, _)| Tag::Whole(number))
}

/// Returns the position of `tag` in `text` from `from` on, in any case of letters.
fn find(text: &str, tag: &str, from: usize) -> Option<usize> {
    let rest = text.as_bytes().get(from..)?;
    rest.windows(tag.len()).position(|window| window.eq_ignore_ascii_case(tag.as_bytes())).map(|at| from + at)
}

/// Returns the position from `from` on of a closing tag that no opening tag precedes. A tag after a quotation mark is
/// only mentioned.
fn find_unopened(text: &str, tag: &[&str; 2], mut from: usize) -> Option<usize> {
    while let Some(at) = find(text, tag[CLOSES], from) {
        let is_quoted = text[..at].ends_with(QUOTES);
        if !is_quoted && find(&text[..at], tag[OPENS], 0).is_none() {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the words of an answer, cut into pieces of every size, and the manner that the model shows by it.
    fn check(manner: Manner, answer: &str, expect: &str, then: Manner) {
        let sizes = [1, 2, 3, 5, 8, answer.len().max(1)];
        for size in sizes {
            let mut thinking = Thinking::new(manner);
            let mut said = String::new();
            let chars: Vec<char> = answer.chars().collect();
            for piece in chars.chunks(size) {
                said.extend(thinking.take(&piece.iter().collect::<String>()));
            }
            said.extend(thinking.end(true));
            assert_eq!((said.as_str(), thinking.manner()), (expect, then), "{manner:?} {answer:?} by {size}");
        }
    }

    #[test]
    fn reasoning_is_not_said() {
        for manner in [Manner::Unknown, Manner::Plain] {
            let check = |answer: &str, expect: &str| check(manner, answer, expect, Manner::Plain);
            check("Hello there.", "Hello there.");
            check("<think>I greet.</think>Hello.", "Hello.");
            check("\n <THINK>\nI greet.\n</Think>\n\nHello.", "Hello.");
            check("<thinking>a <think> b</thinking> Hello.", "Hello.");
            check("<reasoning>a</reasoning>\n<think>b</think>\nHello.", "Hello.");
            check("<think></think>Hello.\nBye.", "Hello.\nBye.");
            check("<think>never closed", "");
            check("Hello.\n<think>\nhm\n</think>\nBye.", "Hello.\n\nBye.");
            check("I <think> so, and I </thank> you.", "I <think> so, and I </thank> you.");
            check("Put <think> and </think> around it.", "Put <think> and </think> around it.");
            check("Write <think then.", "Write <think then.");
            check("Hello.\n<think that is open", "Hello.\n<think that is open");
            check("Hello.\n<think>that is open", "Hello.\n<think>that is open");
            check("<thanks> Hello.", "<thanks> Hello.");
            check("5 < 6\n< 7", "5 < 6\n< 7");
            check("{\"a\":\"</think>\"}", "{\"a\":\"</think>\"}");
            check("```\n{\"a\":\"</think>\"}\n```", "```\n{\"a\":\"</think>\"}\n```");
        }
        check(
            Manner::Unknown,
            "It wrote \"</think>\" and `</think>`.",
            "It wrote \"</think>\" and `</think>`.",
            Manner::Plain,
        );
        check(Manner::Unknown, "<th", "<th", Manner::Unknown);
    }

    #[test]
    fn reasoning_without_its_opening_tag_is_not_said() {
        for manner in [Manner::Unknown, Manner::Unopened] {
            let check = |answer: &str, expect: &str| check(manner, answer, expect, Manner::Unopened);
            check("I should greet.\n</think>\n\nHello.", "Hello.");
            check("I should greet.</think>Hello.", "Hello.");
            check("</think>\nHello.", "Hello.");
            check("I should greet.</thinking> Hello </think> you.", "Hello </think> you.");
        }
        // An answer without any tag is all words, also from such a model.
        check(Manner::Unopened, "Hello.", "Hello.", Manner::Unknown);
    }

    #[test]
    fn a_closing_tag_after_plain_answers_is_not_said() {
        let said = |pieces: &[&str]| {
            let mut thinking = Thinking::new(Manner::Plain);
            let mut said: String = pieces.iter().flat_map(|piece| thinking.take(piece)).collect();
            said.extend(thinking.end(true));
            (said, thinking.manner())
        };
        let reasoned = |words: &str| (words.to_owned(), Manner::Unopened);
        assert_eq!(said(&["I should greet.</think>\nHello."]), reasoned("Hello."));
        // What was said before cannot be taken back.
        assert_eq!(said(&["I should greet.", "</thi", "nk>", "Hello."]), reasoned("I should greet.Hello."));
        let plain = |words: &str| (words.to_owned(), Manner::Plain);
        assert_eq!(said(&["It wrote \"", "</think>", "\"."]), plain("It wrote \"</think>\"."));
        assert_eq!(said(&["Put <thi", "nk> and ", "</think> around."]), plain("Put <think> and </think> around."));
    }

    #[test]
    fn words_are_not_held_back_once_the_manner_is_known() {
        let check = |manner, pieces: &[&str], expect: &[&[&str]]| {
            let mut thinking = Thinking::new(manner);
            for (piece, expect) in pieces.iter().zip(expect) {
                assert_eq!(thinking.take(piece), *expect, "{manner:?} {piece:?} of {pieces:?}");
            }
        };
        check(Manner::Plain, &["Good ", "day.\n", "A"], &[&["Good "], &["day.\n"], &["A"]]);
        check(Manner::Plain, &["<th", "anks> a"], &[&[], &["<thanks> a"]]);
        check(Manner::Unknown, &["<think>a", "</think>", "Good ", "day."], &[&[], &[], &["Good "], &["day."]]);
        check(Manner::Unknown, &["Good ", "day."], &[&[], &[]]);
        check(Manner::Unopened, &["I greet.", "</think> Good ", "day."], &[&[], &["Good "], &["day."]]);
    }

    #[test]
    fn words_that_are_held_back_for_too_long_are_passed_on() {
        let mut thinking = Thinking::new(Manner::Unknown);
        assert!(thinking.take("Good ").is_empty() && thinking.take("day").is_empty() && thinking.is_unsure());
        assert_eq!(thinking.release(), ["Good ", "day"]);
        assert!(!thinking.is_unsure());
        assert_eq!(thinking.take(", sir."), [", sir."]);
        assert_eq!((thinking.end(true).len(), thinking.manner()), (0, Manner::Plain));
        // It was reasoning, as only its end tells: the rest is right, and the next answer.
        let mut thinking = Thinking::new(Manner::Unknown);
        assert!(thinking.take("I should").is_empty());
        assert_eq!(thinking.release(), ["I should"]);
        assert_eq!(thinking.take(" greet.</th"), [" greet."]);
        assert_eq!(thinking.take("ink>\nGood day."), ["Good day."]);
        assert_eq!((thinking.end(true).len(), thinking.manner()), (0, Manner::Unopened));
        // Text that is known to be reasoning is never passed on.
        let mut thinking = Thinking::new(Manner::Unopened);
        assert!(thinking.take("I should").is_empty() && thinking.release().is_empty());
    }

    #[test]
    fn what_is_held_back_keeps_its_pieces_and_is_no_reasoning_when_it_is_cut_off() {
        let check = |manner, pieces: &[&str], whole, expect: &[&str]| {
            let mut thinking = Thinking::new(manner);
            let early: Vec<String> = pieces.iter().flat_map(|piece| thinking.take(piece)).collect();
            assert_eq!((early.len(), thinking.end(whole)), (0, expect.iter().map(|&text| text.to_owned()).collect()));
        };
        check(Manner::Unknown, &["Good ", "day."], true, &["Good ", "day."]);
        check(Manner::Unknown, &["Good ", "day."], false, &["Good ", "day."]);
        check(Manner::Unopened, &["I should ", "greet"], false, &[]);
        check(Manner::Unknown, &["<think>I should ", "greet"], false, &[]);
        check(Manner::Unknown, &["<thi"], false, &[]);
    }

    #[test]
    fn a_whole_answer_is_cleaned_at_once() {
        for (answer, expect) in [
            ("Fine.", "Fine."),
            ("<think>{\"a\":1}</think>{\"a\":2}", "{\"a\":2}"),
            ("Let me see {\"a\":1}.\n</think>\n{\"a\":2}", "{\"a\":2}"),
            ("{\"said\":\"</think>\"}", "{\"said\":\"</think>\"}"),
        ] {
            assert_eq!(without(answer.to_owned()), expect);
        }
    }
}
