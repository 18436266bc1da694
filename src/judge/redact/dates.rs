//! Dates in a text: written with digits, with the name of a month, and with the signs and words of languages whose
//! months are numbers.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex_lite::Regex;
use ringer_media::numerals::{Form, Number, digit, fold_word, is_mark};

use super::shadow::Shadow;
use super::words::{WORDS, Words, words};

static WRITTEN: LazyLock<Regex> = LazyLock::new(|| {
    let day = "(?:0?[1-9]|[12][0-9]|3[01])";
    let pattern = format!(
        r"\b(?:\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{1,2}}[-/.]\d{{1,2}}[-/.](?:\d{{4}}|\d{{2}})|{day}\. (?:0?[1-9]|1[0-2])\. (?:\d{{4}}|\d{{2}}))\b"
    );
    Regex::new(&pattern).expect("the pattern is tested")
});
/// Reigns by which Japanese years are counted, and names of the present era.
const ERAS: [&str; 9] = ["昭和", "平成", "令和", "大正", "明治", "公元", "西元", "民國", "民国"];
/// Words that follow a year and belong to it.
const YEAR_WORDS: [&str; 3] = ["года", "году", "год"];
/// Longest text between the parts of a date, in characters.
const LINK_CHARS: usize = 20;
/// Years that a date has.
const YEARS: Range<u64> = 1000..3000;

/// Names of months as they are compared, by language; true for those that are more often other words.
type Months = HashMap<String, bool>;

static MONTHS: LazyLock<HashMap<&'static str, Months>> = LazyLock::new(|| {
    let of = |words: &Words| -> Months {
        let doubtful: Vec<String> =
            words.doubtful.split_whitespace().map(|word| fold_word(words.language, word)).collect();
        let names = words.months.iter().flat_map(|names| names.split_whitespace());
        names.map(|name| fold_word(words.language, name)).map(|name| (name.clone(), doubtful.contains(&name))).collect()
    };
    WORDS.iter().map(|words| (words.language, of(words))).collect()
});

/// Returns the places of dates that are written with digits of any script.
pub(super) fn written_dates(shadow: &Shadow) -> Vec<Range<usize>> {
    shadow.find(&WRITTEN)
}

/// Returns the places of dates in words of a language. `numbers`: those of the text.
pub(super) fn dates(language: &str, text: &str, numbers: &[Number]) -> Vec<Range<usize>> {
    let Some(words) = words(language) else { return Vec::new() };
    let finder = Finder { text, numbers, words };
    match language {
        "zh" | "yue" | "ja" | "ko" => finder.by_signs(),
        "vi" => finder.vietnamese(),
        _ => finder.by_names(),
    }
}

/// Returns the words of a text: letters in a row.
fn letters(text: &str) -> Vec<Range<usize>> {
    let is_letter = |c: char| (c.is_alphanumeric() && digit(c).is_none()) || is_mark(c);
    let mut all: Vec<Range<usize>> = Vec::new();
    for (at, c) in text.char_indices().filter(|(_, c)| is_letter(*c)) {
        match all.last_mut().filter(|last| last.end == at) {
            Some(last) => last.end += c.len_utf8(),
            None => all.push(at..at + c.len_utf8()),
        }
    }
    all
}

struct Finder<'t> {
    text: &'t str,
    numbers: &'t [Number],
    words: &'static Words,
}

impl Finder<'_> {
    /// True if a text may stand between the parts of a date.
    fn links(&self, between: Range<usize>) -> bool {
        let between = &self.text[between];
        let is_sign = |c: char| c.is_whitespace() || "-.,()/'’،".contains(c) || digit(c).is_some();
        let known = |word: Range<usize>| {
            let word = fold_word(self.words.language, &between[word]);
            self.words.links.split_whitespace().any(|link| fold_word(self.words.language, link) == word)
        };
        between.chars().count() <= LINK_CHARS
            && between.chars().all(|c| is_sign(c) || c.is_alphanumeric() || is_mark(c))
            && letters(between).into_iter().all(known)
    }

    /// True if a text before a month begins something new: "two of us, in March".
    fn parts(&self, between: &str) -> bool {
        let begins = |word: Range<usize>| matches!(&*between[word].to_lowercase(), "in" | "en" | "في" | "im");
        between.contains([',', '،']) || letters(between).into_iter().any(begins)
    }

    fn value(number: &Number) -> u64 {
        number.digits.parse().unwrap_or(u64::MAX)
    }

    fn by_names(&self) -> Vec<Range<usize>> {
        let Some(months) = MONTHS.get(self.words.language) else { return Vec::new() };
        let named = |place: Range<usize>| {
            let doubtful = *months.get(&fold_word(self.words.language, &self.text[place.clone()]))?;
            self.around(place, doubtful)
        };
        letters(self.text).into_iter().filter_map(named).collect()
    }

    /// Returns the date around a month's name; `None` where neither a day nor a year is beside it.
    fn around(&self, month: Range<usize>, doubtful: bool) -> Option<Range<usize>> {
        let after = self.after(month.end, doubtful);
        let before = self.before(month.start, doubtful, after.is_some());
        // A number behind the month is a day or a year where a day stands before.
        let after = after.or_else(|| before.and_then(|_| self.row_after(month.end)));
        if before.is_none() && after.is_none() {
            return None;
        }
        let mut start = before.unwrap_or(month.start);
        let lead = self.text[..start].to_ascii_lowercase();
        if self.words.language == "en" && before.is_some() && (lead.ends_with(" the ") || lead == "the ") {
            start -= "the ".len();
        }
        Some(start..after.unwrap_or(month.end))
    }

    /// Returns the start of the day, and of a year, before a month.
    fn before(&self, month: usize, doubtful: bool, has_after: bool) -> Option<usize> {
        let mut start = None;
        let (mut has_day, mut has_year) = (false, false);
        for number in self.numbers.iter().rev().skip_while(|number| number.place.end > month) {
            let end = start.unwrap_or(month);
            let between = number.place.end..end;
            if !self.links(between.clone()) || self.parts(&self.text[between.clone()]) {
                break;
            }
            let value = Self::value(number);
            let is_sure = has_after || number.form == Form::Digits || letters(&self.text[between]).len() == 1;
            let counts = match number.form {
                Form::Scale => false,
                Form::Weak => has_after,
                Form::Digits | Form::Words | Form::Ordinal => is_sure || !doubtful,
            };
            match value {
                1..=31 if counts && !has_day => has_day = true,
                _ if YEARS.contains(&value) && counts && !has_year => has_year = true,
                // Tens of an ordinal in words: twenty-third.
                20 | 30 if has_day && start.is_some() && self.text[number.place.end..end].len() <= 1 => {}
                _ => break,
            }
            start = Some(number.place.start);
        }
        start
    }

    /// Returns the end of the day and the year after a month.
    fn after(&self, month: usize, doubtful: bool) -> Option<usize> {
        let first = self.numbers.iter().find(|number| number.place.start >= month)?;
        let value = Self::value(first);
        let counts = !matches!(first.form, Form::Scale | Form::Weak);
        let is_year = YEARS.contains(&value) || (10..=20).contains(&value) && !self.words.day_follows;
        let is_day = self.words.day_follows && (!doubtful || self.words.language == "en");
        let row = self.row_after(month)?;
        let digits: usize = self
            .numbers
            .iter()
            .filter(|number| number.place.start >= month && number.place.end <= row)
            .map(|number| number.digits.len())
            .sum();
        (counts && (is_day || (is_year && digits >= 4))).then_some(row)
    }

    /// Returns the end of the numbers in a row after a place.
    fn row_after(&self, place: usize) -> Option<usize> {
        let mut end = None;
        for number in self.numbers.iter().skip_while(|number| number.place.start < place) {
            if !self.links(end.unwrap_or(place)..number.place.start) {
                break;
            }
            end = Some(number.place.end);
        }
        let end = end?;
        // The ending of a day: 3rd.
        let rest = &self.text[end..];
        let first = letters(rest).into_iter().next();
        let ending = first.filter(|word| {
            let is_year = YEAR_WORDS.contains(&&rest[word.clone()]) && rest[..word.start] == *" ";
            is_year || (word.start == 0 && self.links(end..end + word.end))
        });
        Some(ending.map_or(end, |word| end + word.end))
    }

    /// Finds dates whose months are numbers with a sign: `1988年3月3日`, `3월 3일`.
    fn by_signs(&self) -> Vec<Range<usize>> {
        let months = self.numbers.iter().filter(|number| (1..=12).contains(&Self::value(number)));
        let named = ["유월", "시월"].iter().flat_map(|name| self.text.match_indices(name));
        let named = named.filter(|(at, _)| !self.text[..*at].ends_with(char::is_alphanumeric));
        let ends = months.filter_map(|number| {
            let end = self.sign_after(number.place.end, &["月", "월"])?;
            Some(number.place.start..end)
        });
        let all = ends.chain(named.map(|(at, name)| at..at + name.len()));
        all.filter_map(|month| self.signed_date(month)).collect()
    }

    /// Returns the end of one of the signs after at most one blank.
    fn sign_after(&self, at: usize, signs: &[&str]) -> Option<usize> {
        let rest = &self.text[at..];
        let blank = rest.len() - rest.strip_prefix(' ').unwrap_or(rest).len();
        let sign = signs.iter().find(|sign| rest[blank..].starts_with(**sign))?;
        Some(at + blank + sign.len())
    }

    fn signed_date(&self, month: Range<usize>) -> Option<Range<usize>> {
        let start = self.year_before(month.start);
        let end = self.day_after(month.end);
        (start.is_some() || end.is_some()).then(|| start.unwrap_or(month.start)..end.unwrap_or(month.end))
    }

    fn year_before(&self, month: usize) -> Option<usize> {
        let before = self.text[..month].trim_end();
        let before = before.strip_suffix(['年', '년'])?;
        let mut start = before.trim_end().strip_suffix('元').unwrap_or(before).trim_end().len();
        let first = start;
        for number in self.numbers.iter().rev().skip_while(|number| number.place.end > first) {
            if !self.text[number.place.end..start].trim().is_empty() {
                break;
            }
            start = number.place.start;
        }
        let lead = self.text[..start].trim_end();
        let era = ERAS.iter().find_map(|era| lead.strip_suffix(era));
        match era {
            Some(rest) => Some(rest.len()),
            None => (start < first).then_some(start),
        }
    }

    fn day_after(&self, month: usize) -> Option<usize> {
        let mut end = month;
        for number in self.numbers.iter().skip_while(|number| number.place.start < month) {
            if !self.text[end..number.place.start].trim().is_empty() {
                return None;
            }
            end = number.place.end;
            if let Some(end) = self.sign_after(end, &["日", "号", "號", "일"]) {
                return Some(end);
            }
            // The Korean word for a day is also the one for one.
            if self.text[number.place.clone()].ends_with('일') && number.place.start > month {
                return Some(end);
            }
        }
        None
    }

    /// Finds `ngày 3 tháng 3 năm 1988`.
    fn vietnamese(&self) -> Vec<Range<usize>> {
        let is_month = |place: &Range<usize>| fold_word("vi", &self.text[place.clone()]) == "tháng";
        let months = letters(self.text).into_iter().filter(is_month);
        months.filter_map(|word| self.after_thang(word)).collect()
    }

    fn after_thang(&self, word: Range<usize>) -> Option<Range<usize>> {
        let rest = self.numbers.iter().skip_while(|number| number.place.start < word.end);
        let mut rest = rest.peekable();
        let month = rest.next_if(|number| {
            self.text[word.end..number.place.start].trim().is_empty() && (1..=12).contains(&Self::value(number))
        })?;
        let mut end = month.place.end;
        let mut year = Vec::new();
        for number in rest {
            if !self.text[end..number.place.start].chars().all(|c| c == ' ' || c == ',') {
                break;
            }
            end = number.place.end;
            year.push(number);
        }
        let is_year = |number: &&Number| fold_word("vi", &self.text[number.place.clone()]).starts_with("năm");
        let has_year = year.first().is_some_and(is_year) && year.len() > 1;
        let end = if has_year { end } else { month.place.end };
        let day = self.numbers.iter().rev().find(|number| number.place.end <= word.start).filter(|number| {
            self.text[number.place.end..word.start].trim().is_empty() && (1..=31).contains(&Self::value(number))
        });
        let start = day.and_then(|day| {
            let lead = self.text[..day.place.start].trim_end().to_lowercase();
            let intro = ["ngày", "mùng", "mồng", "hôm"].iter().find(|intro| lead.ends_with(**intro));
            match intro {
                Some(intro) => Some(lead.len() - intro.len()),
                None => (day.form == Form::Digits).then_some(day.place.start),
            }
        });
        (has_year || start.is_some()).then(|| start.unwrap_or(word.start)..end)
    }
}
