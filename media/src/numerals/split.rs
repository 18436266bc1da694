//! Parts of a text: runs of digits, words, and what lies between them.

use std::ops::Range;

use super::fold::{digit, is_mark};

/// Kind of a part.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Digits,
    Letters,
    Gap,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) place: Range<usize>,
    pub(super) kind: Kind,
}

/// Returns the parts of a text, in order and without a rest.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for (at, c) in text.char_indices() {
        let kind = match c {
            _ if digit(c).is_some() => Kind::Digits,
            _ if c.is_alphanumeric() || is_mark(c) => Kind::Letters,
            _ => Kind::Gap,
        };
        let end = at + c.len_utf8();
        match pieces.last_mut() {
            Some(last) if last.kind == kind => last.place.end = end,
            _ => pieces.push(Piece { place: at..end, kind }),
        }
    }
    pieces
}
