//! Values of number words in a row.

use std::ops::Range;

use super::fold::{digit, is_unspaced};
use super::split::{Kind, pieces};
use super::{Form, Number, Numerals, Unit};

/// Greatest value that is put together; more digits are read one by one.
const MOST: u64 = 1_000_000_000_000_000;
/// Least scale of an amount.
const SCALED: u64 = 1000;
/// Fewest readings of digits in kana that are a number: short ones are parts of other words.
const KANA_MIN: usize = 3;

/// Returns the numbers of a text.
pub(super) fn numbers(numerals: &Numerals, text: &str) -> Vec<Number> {
    let mut scan = Scan { numerals, open: None, joint: None, repeat: None, found: Vec::new() };
    for piece in pieces(text) {
        let (part, at) = (&text[piece.place.clone()], piece.place.start);
        match piece.kind {
            Kind::Digits => {
                scan.close();
                let digits = part.chars().filter_map(digit).map(|digit| char::from(b'0' + digit)).collect();
                scan.found.push(Number { place: piece.place, digits, form: Form::Digits, is_scaled: false });
            }
            // A comma ends a value; a blank and a dash do not.
            Kind::Gap if part.chars().all(|c| matches!(c, ' ' | '-' | '\u{a0}' | '‐' | '‑')) && part.len() <= 3 => {
            }
            Kind::Gap => scan.close(),
            Kind::Letters if numerals.is_unspaced(part) => scan.take_unspaced(part, at),
            Kind::Letters => match numerals.units(part) {
                Some(units) => {
                    // The ending of a word, as that of a month, ends its number.
                    let is_ended = units.last().is_some_and(|(_, place)| place.end < part.len());
                    units.into_iter().for_each(|(unit, place)| scan.take(unit, shift(place, at)));
                    if is_ended {
                        scan.close();
                    }
                }
                None => scan.close(),
            },
        }
    }
    scan.close();
    scan.found
}

/// Returns the value that number words have together; `None`: they are several numbers or none.
pub(super) fn value_of(units: &[(Unit, Range<usize>)]) -> Option<u64> {
    let nobody = Numerals::of("de")?;
    let mut scan = Scan { numerals: nobody, open: None, joint: None, repeat: None, found: Vec::new() };
    units.iter().for_each(|(unit, place)| scan.take(*unit, place.clone()));
    scan.close();
    match &scan.found[..] {
        [number] => number.digits.parse().ok(),
        _ => None,
    }
}

fn shift(place: Range<usize>, by: usize) -> Range<usize> {
    place.start + by..place.end + by
}

/// A value that further words may change.
struct Sum {
    value: u64,
    /// Value below which others add.
    grain: u64,
    place: Range<usize>,
    form: Form,
    is_scaled: bool,
    /// Digits in place of the value, where it repeats.
    digits: Option<String>,
}

struct Scan<'n> {
    numerals: &'n Numerals,
    open: Option<Sum>,
    /// A joining word after the open value.
    joint: Option<Range<usize>>,
    repeat: Option<(usize, Range<usize>)>,
    found: Vec<Number>,
}

impl Scan<'_> {
    fn close(&mut self) {
        (self.joint, self.repeat) = (None, None);
        if let Some(sum) = self.open.take() {
            let Sum { value, place, form, is_scaled, digits, .. } = sum;
            let digits = digits.unwrap_or_else(|| value.to_string());
            self.found.push(Number { place, digits, form, is_scaled });
        }
    }

    fn begin(&mut self, value: u64, grain: u64, place: Range<usize>, form: Form) {
        let (repeat, from) = match self.repeat.take() {
            Some((times, before)) if value < 10 => (Some(times), before.start),
            _ => (None, place.start),
        };
        self.close();
        let digits = repeat.map(|times| value.to_string().repeat(times));
        let place = from..place.end;
        let is_scaled = form == Form::Scale && value >= SCALED;
        self.open = Some(Sum { value, grain, place, form, is_scaled, digits });
    }

    fn take(&mut self, unit: Unit, place: Range<usize>) {
        match unit {
            Unit::Add { value, grain, is_weak } => self.add(value, grain, is_weak, place),
            Unit::Times(scale) => self.times(scale, place),
            Unit::Join => match self.open {
                Some(_) => self.joint = Some(place),
                None => self.close(),
            },
            Unit::Gap if self.open.as_ref().is_some_and(|sum| sum.grain >= 100) => self.joint = Some(place),
            Unit::Gap => self.begin(0, 1, place, Form::Words),
            Unit::Teen => match &mut self.open {
                Some(sum) if (1..10).contains(&(sum.value % 100)) && sum.digits.is_none() => {
                    (sum.value, sum.grain, sum.place.end) = (sum.value + 10, 1, place.end);
                }
                _ => self.begin(10, 1, place, Form::Words),
            },
            Unit::Repeat(times) => {
                self.close();
                self.repeat = Some((times, place));
            }
            Unit::Ordinal(value) => {
                self.close();
                let digits = value.to_string();
                self.found.push(Number { place, digits, form: Form::Ordinal, is_scaled: false });
            }
        }
    }

    fn add(&mut self, value: u64, grain: u64, is_weak: bool, place: Range<usize>) {
        let manner = self.numerals.manner;
        let joined = self.joint.is_some();
        if let Some(sum) = self.open.as_mut().filter(|sum| sum.digits.is_none() && sum.value < MOST) {
            let unit = sum.value % 100;
            let adds = value > 0 && value < sum.grain;
            let turned = joined && manner.units_first && (1..10).contains(&unit) && grain == 10 && value < 100;
            let eighty = !joined && manner.is_vigesimal && unit == 4 && value == 20;
            if adds || turned || eighty {
                sum.value = if eighty { sum.value - 4 + 80 } else { sum.value + value };
                let grain = if turned { 1 } else { grain };
                (sum.grain, sum.place.end) = (if eighty { 20 } else { grain }, place.end);
                if sum.form == Form::Scale || (sum.form == Form::Weak && !is_weak) {
                    sum.form = Form::Words;
                }
                self.joint = None;
                return;
            }
        }
        self.begin(value, grain, place, if is_weak { Form::Weak } else { Form::Words });
    }

    fn times(&mut self, scale: u64, place: Range<usize>) {
        let bare = self.numerals.manner.bare;
        if let Some(sum) = self.open.as_mut().filter(|sum| sum.digits.is_none() && sum.value < MOST / scale) {
            let low = sum.value % scale;
            let multiplies = low > 0 && self.joint.is_none();
            let adds = low == 0 && scale < sum.grain && scale <= bare;
            if multiplies || adds {
                sum.value = sum.value - low + low.max(1) * scale;
                (sum.grain, sum.place.end) = (scale, place.end);
                sum.is_scaled |= scale >= SCALED;
                sum.form = if sum.form == Form::Scale { Form::Scale } else { Form::Words };
                self.joint = None;
                return;
            }
        }
        if scale <= bare {
            self.begin(scale, scale, place, Form::Scale);
        } else {
            self.close();
        }
    }

    /// Takes a run of letters without blanks. Digits in kana count where there are several.
    fn take_unspaced(&mut self, part: &str, at: usize) {
        let units = self.numerals.split_unspaced(part);
        let is_kana = |place: &Range<usize>| part[place.clone()].starts_with(|c| matches!(c, '\u{3040}'..='\u{30ff}'));
        let mut end = 0;
        let mut first = 0;
        while first < units.len() {
            let mut next = first + 1;
            while next < units.len() && units[next].1.start == units[next - 1].1.end {
                next += 1;
            }
            let row = &units[first..next];
            let kana = row.iter().filter(|(_, place)| is_kana(place)).count();
            if kana == 0 || kana >= KANA_MIN {
                if row[0].1.start > end {
                    self.close();
                }
                row.iter().for_each(|(unit, place)| self.take(*unit, shift(place.clone(), at)));
                end = row[row.len() - 1].1.end;
            }
            first = next;
        }
        if end < part.len() && part[end..].contains(|c: char| is_unspaced(c) || c.is_alphanumeric()) {
            self.close();
        }
    }
}
