//! Mail addresses in a text: written with `@`, and read out with the names of the signs.

use std::ops::Range;
use std::sync::LazyLock;

use regex_lite::Regex;
use ringer_media::call::is_unspaced;
use ringer_media::numerals::{digit, fold_word};

use super::shadow::Shadow;
use super::words::words;

/// Letters of scripts whose words have blanks between them count as those of an address; others would take in the
/// words before it.
static WRITTEN: LazyLock<Regex> = LazyLock::new(|| {
    let letters =
        r"A-Za-z0-9\u{c0}-\u{24f}\u{400}-\u{52f}\u{620}-\u{669}\u{900}-\u{97f}\u{d00}-\u{d7f}\u{1e00}-\u{1eff}";
    let pattern = format!(r"[{letters}._%+-]+@[{letters}-]+(?:\.[{letters}-]+)+");
    Regex::new(&pattern).expect("the pattern is tested")
});
/// Hosts of mail that recognizers write as such after a spoken `at`.
const HOSTS: [&str; 9] =
    ["gmail", "googlemail", "yahoo", "outlook", "hotmail", "icloud", "proton", "protonmail", "aol"];
/// Endings of Korean words behind an address.
const ENDINGS: [&str; 8] = ["입니다", "이에요", "이고요", "예요", "이요", "으로", "로", "요"];
/// Most words of the first part of a host, as of a firm's name.
const HOST_WORDS: usize = 2;

/// Returns the places of addresses that are written with `@`.
pub(super) fn written_addresses(shadow: &Shadow) -> Vec<Range<usize>> {
    shadow.find(&WRITTEN)
}

/// Returns the places of addresses that are read out in a language.
pub(super) fn spoken_addresses(language: &'static str, text: &str) -> Vec<Range<usize>> {
    let Some(words) = words(language) else { return Vec::new() };
    let places = tokens(language, text);
    let read = |phrases: &'static str| -> Vec<Vec<String>> {
        let phrase = |text: &str| tokens(language, text).into_iter().map(|at| fold_word(language, &text[at])).collect();
        phrases.split(';').map(phrase).collect()
    };
    let forms: Vec<String> = places.iter().map(|place| fold_word(language, &text[place.clone()])).collect();
    let reader =
        Reader { text, language, places, forms, at: read(words.at), dot: read(words.dot), signs: read(words.signs) };
    (1..reader.places.len()).filter_map(|at| reader.address(at)).collect()
}

/// Kind of a letter where words have no blanks between them.
fn kind(c: char) -> u8 {
    match c {
        '\u{30a1}'..='\u{30ff}' => 1,
        _ if is_unspaced(c) => 2,
        '\u{ac00}'..='\u{d7a3}' => 3,
        _ => 0,
    }
}

/// Returns the words of a text without the punctuation around them. In scripts without blanks each letter is one, but
/// katakana and Latin letters stay together, apart at the names of signs.
fn tokens(language: &str, text: &str) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let is_inner = |c: char| c.is_alphanumeric() || ringer_media::numerals::is_mark(c) || "._-+%".contains(c);
    let mut open: Option<(Range<usize>, u8)> = None;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        let (joins, kind) = (is_inner(c), kind(c));
        match &mut open {
            Some((place, last)) if joins && *last == kind && kind != 2 => place.end = end,
            _ => {
                all.extend(open.take().map(|(place, _)| place));
                open = joins.then_some((at..end, kind));
            }
        }
    }
    all.extend(open.map(|(place, _)| place));
    let bare = |place: Range<usize>| {
        let word = &text[place.clone()];
        let trimmed = word.trim_end_matches(['.', '-', '_']);
        place.start..place.start + trimmed.len()
    };
    let words = all.into_iter().map(bare).filter(|place| !place.is_empty());
    if language == "ja" { words.flat_map(|place| apart(text, place)).collect() } else { words.collect() }
}

/// Parts a run of katakana at the names of signs within it.
fn apart(text: &str, place: Range<usize>) -> Vec<Range<usize>> {
    const NAMES: [&str; 6] = ["アットマーク", "アンダーバー", "アンダースコア", "ハイフン", "ドット", "アット"];
    let (mut all, mut from, mut at) = (Vec::new(), place.start, place.start);
    while at < place.end {
        match NAMES.iter().find(|name| text[at..place.end].starts_with(**name)) {
            Some(name) => {
                all.extend([from..at, at..at + name.len()]);
                at += name.len();
                from = at;
            }
            None => at += text[at..].chars().next().map_or(1, char::len_utf8),
        }
    }
    all.push(from..place.end);
    all.retain(|place| !place.is_empty());
    all
}

struct Reader<'t> {
    text: &'t str,
    language: &'static str,
    places: Vec<Range<usize>>,
    /// The words as they are compared.
    forms: Vec<String>,
    at: Vec<Vec<String>>,
    dot: Vec<Vec<String>>,
    signs: Vec<Vec<String>>,
}

impl Reader<'_> {
    /// Returns the number of words of the longest phrase that begins at a word.
    fn begins(&self, phrases: &[Vec<String>], at: usize) -> Option<usize> {
        let fits = |phrase: &&Vec<String>| {
            let here = self.forms.get(at..at + phrase.len());
            here.is_some_and(|here| here == &phrase[..]) && self.is_close(at..at + phrase.len())
        };
        phrases.iter().filter(fits).map(Vec::len).max().filter(|count| *count > 0)
    }

    /// True if no end of a sentence lies between the words of a range.
    fn is_close(&self, range: Range<usize>) -> bool {
        let between = |pair: &[Range<usize>]| {
            !self.text[pair[0].end..pair[1].start].contains(['.', '!', '?', ';', '。', '？', '！', '।'])
        };
        self.places.get(range).is_some_and(|places| places.windows(2).all(between))
    }

    /// True for a word that may be a part of an address.
    fn is_label(&self, at: usize) -> bool {
        let Some(place) = self.places.get(at) else { return false };
        let word = &self.text[place.clone()];
        match self.language {
            "zh" | "yue" => word.is_ascii(),
            "ja" => word.chars().all(|c| c.is_ascii() || kind(c) == 1),
            _ => word.contains(char::is_alphanumeric),
        }
    }

    /// Returns the number of words of a dot and the label behind it.
    fn dot_and_label(&self, at: usize) -> Option<usize> {
        if let Some(count) = self.begins(&self.dot, at) {
            let is_whole = self.is_label(at + count) && self.is_close(at..at + count + 1);
            return is_whole.then_some(count + 1);
        }
        let joined = ["닷", "쩜"].iter().any(|dot| self.forms.get(at).is_some_and(|word| word.starts_with(dot)));
        (self.language == "ko" && joined).then_some(1)
    }

    /// Returns the address whose `@` begins at a word.
    fn address(&self, at: usize) -> Option<Range<usize>> {
        let count = self.begins(&self.at, at)?;
        let end = self.host(at + count)?;
        let start = self.name(at)?;
        if !self.is_close(start..end + 1) {
            return None;
        }
        let mut place = self.places[start].start..self.places[end].end;
        if self.language == "ko" {
            let said = &self.text[place.clone()];
            let bare = ENDINGS.iter().find_map(|ending| said.strip_suffix(ending)).unwrap_or(said);
            place.end = place.start + bare.len();
        }
        Some(place)
    }

    /// Returns the last word of the host that begins at a word.
    fn host(&self, from: usize) -> Option<usize> {
        if !self.is_label(from) {
            return None;
        }
        let words = if self.language == "en" { 1 } else { HOST_WORDS };
        let mut last = (from..from + words).find(|at| self.dot_and_label(at + 1).is_some());
        while let Some(at) = last {
            match self.dot_and_label(at + 1) {
                Some(count) => last = Some(at + count),
                None => return self.is_domain(at).then_some(at),
            }
        }
        // Some recognizers write the host as such.
        let place = self.places.get(from)?;
        let host = self.text[place.clone()].to_lowercase();
        let (name, top) = host.rsplit_once('.')?;
        let is_host = !name.is_empty() && top.len() > 1 && top.chars().all(char::is_alphabetic);
        let is_sure = self.language != "en" || HOSTS.contains(&name);
        (is_host && is_sure).then_some(from)
    }

    /// True if a host may end with this word: at least two letters.
    fn is_domain(&self, at: usize) -> bool {
        let word = &self.text[self.places[at].clone()];
        word.chars().count() > 1 && !word.chars().all(|c| digit(c).is_some())
    }

    /// Returns the first word of the name before `@`.
    fn name(&self, at: usize) -> Option<usize> {
        let mut first = at.checked_sub(1).filter(|first| self.is_label(*first))?;
        let is_single = |at: usize| self.text[self.places[at].clone()].chars().count() == 1;
        loop {
            let signs = [&self.dot, &self.signs];
            let sign = (1..=first)
                .take(3)
                .find(|count| signs.iter().any(|phrases| self.begins(phrases, first - count) == Some(*count)));
            first = match sign {
                Some(count) if first > count && self.is_label(first - count - 1) => first - count - 1,
                _ if first > 0 && is_single(first) && is_single(first - 1) && self.is_label(first - 1) => first - 1,
                _ => return Some(first),
            };
        }
    }
}
