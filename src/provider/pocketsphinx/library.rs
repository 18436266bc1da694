//! libpocketsphinx 0.8+5prealpha (`libpocketsphinx.so.3`, `libsphinxbase.so.3`), opened at run time: one safe `Decoder`
//! over the C calls. Not a pool and not a stream: see the parent module.
//!
//! The second pass is off. The same words are wrong (11 of 102), and the final text comes 41 ms instead of 182 ms after
//! the end.
//!
//! Decoders load while nobody asks for one, all but the first when the first call is placed. Five take 2.5 s of a core
//! and 400 MB; a single thread was 3 s late behind their loading.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::sync::Arc;

use libloading::Library as Shared;
use parking_lot::Mutex;
use ringer_media::frame::Sample;

use crate::RecognizedWord;

/// Samples of one analysis frame (`-frate 100`).
const HOP: Sample = 160;
/// The library's default `-logbase`.
const LOG_BASE: f64 = 1.0001;

type Raw = *mut c_void;

/// Held while a decoder is made or freed: that code shares state between threads.
static MAKING: Mutex<()> = Mutex::new(());

/// The C functions in use, valid as long as the two libraries are held.
pub(super) struct Library {
    parse: unsafe extern "C" fn(Raw, *const c_void, i32, *const *const c_char, i32) -> Raw,
    free_config: unsafe extern "C" fn(Raw) -> c_int,
    arguments: unsafe extern "C" fn() -> *const c_void,
    init: unsafe extern "C" fn(Raw) -> Raw,
    free: unsafe extern "C" fn(Raw) -> c_int,
    start_stream: unsafe extern "C" fn(Raw) -> c_int,
    start: unsafe extern "C" fn(Raw) -> c_int,
    process: unsafe extern "C" fn(Raw, *const i16, usize, c_int, c_int) -> c_int,
    end: unsafe extern "C" fn(Raw) -> c_int,
    hypothesis: unsafe extern "C" fn(Raw, *mut i32) -> *const c_char,
    segments: unsafe extern "C" fn(Raw) -> Raw,
    next: unsafe extern "C" fn(Raw) -> Raw,
    word: unsafe extern "C" fn(Raw) -> *const c_char,
    frames: unsafe extern "C" fn(Raw, *mut c_int, *mut c_int),
    posterior: unsafe extern "C" fn(Raw, *mut i32, *mut i32, *mut i32) -> i32,
    _held: [Shared; 2],
}

impl Library {
    /// Opens both libraries; the error is a text for a person.
    pub(super) fn open() -> Result<Arc<Library>, String> {
        // SAFETY: the initialisers of these two libraries do nothing beyond what any C library's do.
        let (base, sphinx) = unsafe { (Shared::new("libsphinxbase.so.3"), Shared::new("libpocketsphinx.so.3")) };
        let (Ok(base), Ok(sphinx)) = (base, sphinx) else {
            return Err("libpocketsphinx.so.3 is missing: install the package libpocketsphinx3".into());
        };
        // The setting for a file of messages (`-logfn`) is no way to silence it: each new decoder closes the file to
        // which the others write.
        // SAFETY: the signature is that of sphinxbase/err.h of 0.8+5prealpha; null is allowed and stops all messages.
        let silenced = unsafe {
            base.get::<unsafe extern "C" fn(Raw)>(b"err_set_logfp\0").map(|set_log| set_log(std::ptr::null_mut()))
        };
        let library = silenced.and_then(|()| Library::symbols(base, sphinx));
        library.map_err(|cause| format!("libpocketsphinx.so.3 is of another version: {cause}"))
    }

    fn symbols(base: Shared, sphinx: Shared) -> Result<Arc<Library>, libloading::Error> {
        // SAFETY: the signatures are those of sphinxbase/cmd_ln.h and pocketsphinx.h of 0.8+5prealpha, the only version
        // with the soname 3; the libraries are held as long as the pointers.
        unsafe {
            Ok(Arc::new(Library {
                parse: *base.get(b"cmd_ln_parse_r\0")?,
                free_config: *base.get(b"cmd_ln_free_r\0")?,
                arguments: *sphinx.get(b"ps_args\0")?,
                init: *sphinx.get(b"ps_init\0")?,
                free: *sphinx.get(b"ps_free\0")?,
                start_stream: *sphinx.get(b"ps_start_stream\0")?,
                start: *sphinx.get(b"ps_start_utt\0")?,
                process: *sphinx.get(b"ps_process_raw\0")?,
                end: *sphinx.get(b"ps_end_utt\0")?,
                hypothesis: *sphinx.get(b"ps_get_hyp\0")?,
                segments: *sphinx.get(b"ps_seg_iter\0")?,
                next: *sphinx.get(b"ps_seg_next\0")?,
                word: *sphinx.get(b"ps_seg_word\0")?,
                frames: *sphinx.get(b"ps_seg_frames\0")?,
                posterior: *sphinx.get(b"ps_seg_prob\0")?,
                _held: [base, sphinx],
            }))
        }
    }
}

/// One decoder: about 100 MB and half a second to make, used again for stream after stream. Stays on the thread that
/// made it.
pub(super) struct Decoder {
    library: Arc<Library>,
    config: Raw,
    raw: Raw,
}

impl Decoder {
    /// Loads the model folder `model` (`en-us/`, `en-us.lm.bin`, `cmudict-en-us.dict`).
    pub(super) fn new(library: &Arc<Library>, model: &Path) -> Result<Decoder, String> {
        let file = |name: &str| model.join(name).to_string_lossy().into_owned();
        // The second pass (`fwdflat`) takes half a second at the end of a long turn and corrects next to nothing;
        // silence stays in, because word positions are counted in frames.
        let words = [
            "ringer",
            "-hmm",
            &file("en-us"),
            "-lm",
            &file("en-us.lm.bin"),
            "-dict",
            &file("cmudict-en-us.dict"),
            "-fwdflat",
            "no",
            "-remove_silence",
            "no",
        ]
        .map(|word| CString::new(word).unwrap_or_default());
        let pointers = words.each_ref().map(|word| word.as_ptr());
        let _one_at_a_time = MAKING.lock();
        // SAFETY: `pointers` are C strings that outlive the call, which copies them; `ps_args` is a static table.
        let config = unsafe {
            (library.parse)(std::ptr::null_mut(), (library.arguments)(), pointers.len() as i32, pointers.as_ptr(), 0)
        };
        if config.is_null() {
            return Err("the recognizer refused its settings".into());
        }
        // SAFETY: `config` is valid and owned here; the decoder takes its own reference.
        let raw = unsafe { (library.init)(config) };
        if raw.is_null() {
            // SAFETY: `config` is owned here and not used again.
            unsafe { (library.free_config)(config) };
            return Err(format!("no recognizer model in {}: install the package pocketsphinx-en-us", model.display()));
        }
        Ok(Decoder { library: library.clone(), config, raw })
    }

    /// Begins a stream at sample 0. False when the library refuses.
    pub(super) fn start(&mut self) -> bool {
        // SAFETY: `raw` is a live decoder with no utterance open.
        unsafe { (self.library.start_stream)(self.raw) >= 0 && (self.library.start)(self.raw) >= 0 }
    }

    /// Decodes 16 kHz mono.
    pub(super) fn push(&mut self, pcm: &[i16]) -> bool {
        // SAFETY: `raw` is a live decoder, the slice is valid for its length and only read.
        unsafe { (self.library.process)(self.raw, pcm.as_ptr(), pcm.len(), 0, 0) >= 0 }
    }

    /// Returns the words so far.
    pub(super) fn text(&mut self) -> String {
        // SAFETY: `raw` is a live decoder; the returned string is null or a C string owned by the decoder and is copied
        // here.
        let text = unsafe {
            let text = (self.library.hypothesis)(self.raw, std::ptr::null_mut());
            if text.is_null() { None } else { Some(CStr::from_ptr(text)) }
        };
        text.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Ends the stream. [`Decoder::text`] and [`Decoder::words`] then give the final result.
    pub(super) fn finish(&mut self) -> bool {
        // SAFETY: `raw` is a live decoder; ending an utterance twice is refused by the library, not undefined.
        unsafe { (self.library.end)(self.raw) >= 0 }
    }

    /// Returns the words with their positions; silence and noise marks are left out.
    pub(super) fn words(&mut self) -> Vec<RecognizedWord> {
        let mut words = Vec::new();
        // SAFETY: `raw` is a live decoder whose utterance is over.
        let mut at = unsafe { (self.library.segments)(self.raw) };
        while !at.is_null() {
            let (mut first, mut last) = (0, 0);
            // SAFETY: `at` is a live iterator (`ps_seg_next` frees it when it is done); out pointers are valid or null
            // where the library allows null; the word is null or a C string owned by the dictionary.
            let (name, posterior) = unsafe {
                (self.library.frames)(at, &mut first, &mut last);
                let null = std::ptr::null_mut();
                let name = (self.library.word)(at);
                let name = if name.is_null() { c"" } else { CStr::from_ptr(name) };
                (name.to_string_lossy(), (self.library.posterior)(at, null, null, null))
            };
            if let Some(text) = plain(&name) {
                words.push(RecognizedWord {
                    text: text.to_owned(),
                    from: Sample::from(first) * HOP,
                    to: (Sample::from(last) + 1) * HOP,
                    confidence: Some((f64::from(posterior) * LOG_BASE.ln()).exp().clamp(0.0, 1.0) as f32),
                });
            }
            // SAFETY: `at` is live and not used again.
            at = unsafe { (self.library.next)(at) };
        }
        words
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        let _one_at_a_time = MAKING.lock();
        // SAFETY: both are owned here (null is allowed for either) and not used again.
        unsafe {
            (self.library.free)(self.raw);
            (self.library.free_config)(self.config);
        }
    }
}

/// Returns the word without its pronunciation number; `None` for silence and noise marks.
fn plain(name: &str) -> Option<&str> {
    let word = name.split('(').next().unwrap_or_default();
    (!word.is_empty() && !word.starts_with(['<', '['])).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_pronunciation_numbers_are_no_words() {
        let check = |name, expect| assert_eq!(plain(name), expect, "{name}");
        check("hello(2)", Some("hello"));
        check("don't", Some("don't"));
        check("<sil>", None);
        check("[NOISE]", None);
        check("", None);
    }
}
