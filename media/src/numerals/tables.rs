//! Number words by language: `VALUE WORD WORD;` with the values that `unit_of` reads. Words of a value in another
//! gender, case or spelling stand beside it.

mod asian;
mod european;
mod indic;

use super::Manner;

/// The number words of one language.
pub(super) struct Table {
    pub(super) language: &'static str,
    pub(super) manner: Manner,
    pub(super) words: &'static [&'static str],
}

/// Manner of most languages: words stand apart, and any scale may begin a number.
const APART: Manner = Manner {
    is_glued: false,
    is_unspaced: false,
    units_first: false,
    is_vigesimal: false,
    bare: u64::MAX,
    endings: &[],
    ordinals: &[],
    prefix: "\0",
};

/// Tables of all languages.
pub(super) static TABLES: [&Table; 15] = [
    &european::EN,
    &european::ES,
    &european::PT,
    &asian::JA,
    &european::TR,
    &indic::HI,
    &indic::AR,
    &european::RU,
    &asian::ZH,
    &indic::ML,
    &european::FR,
    &asian::YUE,
    &asian::VI,
    &european::DE,
    &asian::KO,
];
