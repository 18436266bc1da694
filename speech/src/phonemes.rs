//! Phonemes of a text by libespeak-ng, opened at run time. The library has one state for the whole process: one text at
//! a time.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use libloading::Library;
use parking_lot::Mutex;

use crate::Unusable;
use crate::clauses::Clause;

/// File name of the library.
const LIBRARY: &str = "libespeak-ng.so.1";
/// AUDIO_OUTPUT_SYNCHRONOUS: no sound device is opened.
const SYNCHRONOUS: c_int = 2;
/// espeakINITIALIZE_DONT_EXIT: without its data the library would end the process.
const STAY: c_int = 0x8000;
/// Encoding of texts: espeakCHARS_UTF8.
const UTF8: c_int = 1;
/// Letters of the International Phonetic Alphabet.
const IPA: c_int = 2;
/// Largest number of parts of one text.
const PARTS_MAX: usize = 1000;

/// C functions that are in use.
struct Phonemes {
    voice: unsafe extern "C" fn(*const c_char) -> c_int,
    phonemes: unsafe extern "C" fn(*mut *const c_void, c_int, c_int) -> *const c_char,
    /// Name of the voice that is set.
    set: String,
    _held: Library,
}

static OPENED: OnceLock<Result<Mutex<Phonemes>, Unusable>> = OnceLock::new();

fn open() -> Result<Phonemes, Unusable> {
    let missing = |_| Unusable(format!("{LIBRARY} is missing: install the package libespeak-ng1"));
    let other = |cause: libloading::Error| Unusable(format!("{LIBRARY} is of another version: {cause}"));
    // SAFETY: the library's initialisers do nothing beyond what any C library's do; the signatures are those of
    // speak_lib.h since version 1.49; the library is held as long as its functions.
    unsafe {
        let library = Library::new(LIBRARY).map_err(missing)?;
        let begin: unsafe extern "C" fn(c_int, c_int, *const c_char, c_int) -> c_int =
            *library.get(b"espeak_Initialize\0").map_err(other)?;
        let voice = *library.get(b"espeak_SetVoiceByName\0").map_err(other)?;
        let phonemes = *library.get(b"espeak_TextToPhonemes\0").map_err(other)?;
        if begin(SYNCHRONOUS, 0, std::ptr::null(), STAY) <= 0 {
            return Err(Unusable(format!("{LIBRARY} has no data: install the package espeak-ng-data")));
        }
        Ok(Phonemes { voice, phonemes, set: String::new(), _held: library })
    }
}

fn library() -> Result<&'static Mutex<Phonemes>, Unusable> {
    OPENED.get_or_init(|| open().map(Mutex::new)).as_ref().map_err(Clone::clone)
}

/// Opens the library, once in a process.
///
/// # Errors
/// Names what is missing.
pub fn are_installed() -> Result<(), Unusable> {
    library().map(|_| ())
}

/// Returns the phonemes of a clause in the voice of this name. Marks, which the library drops, are put back.
pub fn of(voice: &str, clause: &Clause) -> Result<String, Unusable> {
    let mut library = library()?.lock();
    library.set(voice)?;
    let mut out = String::new();
    for (words, mark) in parts(clause) {
        out.push_str(without_notes(&library.words(words)).trim());
        if let Some(mark) = mark {
            out.push(mark);
            out.push(' ');
        }
    }
    Ok(out.trim_end().to_owned())
}

/// Splits the clause at its commas.
fn parts(clause: &Clause) -> Vec<(&str, Option<char>)> {
    let mut parts: Vec<(&str, Option<char>)> = Vec::new();
    let mut rest = clause.words.as_str();
    while let Some((at, mark)) = rest
        .char_indices()
        .find(|&(at, letter)| ",;:".contains(letter) && rest[at + 1..].starts_with(char::is_whitespace))
    {
        parts.push((&rest[..at], Some(mark)));
        rest = rest[at + 1..].trim_start();
    }
    parts.push((rest, clause.mark));
    parts
}

/// Removes notes of another language, as in `(en)`.
fn without_notes(phonemes: &str) -> String {
    let mut depth = 0;
    let mut kept = String::new();
    for letter in phonemes.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = 0,
            _ if depth == 0 => kept.push(letter),
            _ => {}
        }
    }
    kept
}

impl Phonemes {
    fn set(&mut self, voice: &str) -> Result<(), Unusable> {
        if self.set == voice {
            return Ok(());
        }
        let unknown = || Unusable(format!("{LIBRARY} has no voice {voice:.40}: install the package espeak-ng-data"));
        let name = CString::new(voice).map_err(|_| unknown())?;
        // SAFETY: the library is initialised; the name is a C string that outlives the call.
        if unsafe { (self.voice)(name.as_ptr()) } != 0 {
            self.set.clear();
            return Err(unknown());
        }
        voice.clone_into(&mut self.set);
        Ok(())
    }

    fn words(&self, text: &str) -> String {
        let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
        let mut at = text.as_ptr().cast::<c_void>();
        let mut out = String::new();
        for _ in 0..PARTS_MAX {
            if at.is_null() {
                break;
            }
            // SAFETY: `at` points into `text`, which outlives the call; the answer is the library's own buffer, which
            // nobody else uses while the lock is held, and is copied at once.
            let part = unsafe {
                let part = (self.phonemes)(&mut at, UTF8, IPA);
                if part.is_null() { String::new() } else { CStr::from_ptr(part).to_string_lossy().into_owned() }
            };
            if !out.is_empty() && !part.is_empty() {
                out.push(' ');
            }
            out.push_str(&part);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_phonemes_and_marks_stay() {
        let check = |voice: &str, words: &str, mark: char, expect: &str| {
            let clause = Clause { words: words.to_owned(), mark: Some(mark) };
            assert_eq!(of(voice, &clause).as_deref(), Ok(expect), "{words}");
        };
        check("en-us", "Hello, you", '?', "həlˈoʊ, juː?");
        check("de", "schön", '.', "ʃˈøːn.");
        let clause = Clause { words: "x".to_owned(), mark: None };
        let why = of("no-such-voice", &clause).expect_err("there is none");
        assert!(why.0.contains("has no voice no-such-voice"), "{why}");
        assert_eq!(without_notes("(en)bˈʊk(de) x"), "bˈʊk x");
    }
}
