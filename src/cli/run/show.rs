//! Progress of running calls: a line each on a terminal, else a line for each that has ended. On standard error:
//! results go to standard output.

use std::io::IsTerminal;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::complain;
use crate::config::variable;
use crate::suite::Played;
use crate::suite::mask::mask;

/// Characters of words that are shown.
const WORDS_CHARS: usize = 60;

/// Progress lines of all calls.
pub(crate) struct Show {
    bars: MultiProgress,
    live: bool,
    quiet: bool,
    /// Values that are never printed.
    pub masked: Vec<String>,
}

/// The line of a call.
pub(crate) struct Line {
    bar: ProgressBar,
    name: String,
    live: bool,
    quiet: bool,
    masked: Vec<String>,
}

impl Show {
    /// Returns lines that move where standard error is a terminal and no build server reads it.
    pub(crate) fn new(quiet: bool, masked: Vec<String>) -> Show {
        let live = std::io::stderr().is_terminal() && variable("CI").is_none();
        let bars = MultiProgress::new();
        if !live || quiet {
            bars.set_draw_target(ProgressDrawTarget::hidden());
        }
        Show { bars, live, quiet, masked }
    }

    /// Adds the line of a call.
    pub(crate) fn line(&self, scenario: &str, seed: u64) -> Line {
        let bar = self.bars.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {elapsed_precise} {msg}") {
            bar.set_style(style);
        }
        let name = mask(&format!("{scenario} [seed {seed}]"), &self.masked);
        bar.set_prefix(name.clone());
        Line { bar, name, live: self.live, quiet: self.quiet, masked: self.masked.clone() }
    }

    /// Says that something could not be written.
    pub(crate) fn warn(&self, text: &str) {
        self.bars.suspend(|| complain(text));
    }

    /// Takes the lines away.
    pub(crate) fn clear(&self) {
        let _ = self.bars.clear();
    }
}

impl Line {
    /// Shows the state of the run in one line.
    pub(crate) fn state(&self, state: &str) {
        self.bar.set_message(state.to_owned());
        self.bar.tick();
    }

    /// Shows the last words of a side.
    pub(crate) fn words(&self, who: &str, words: &str) {
        if !words.is_empty() {
            let words: String = words.chars().filter(|c| !c.is_control()).take(WORDS_CHARS).collect();
            self.bar.set_message(mask(&format!("{who}: {words}"), &self.masked));
            self.bar.tick();
        }
    }

    /// Ends with the verdict.
    pub(crate) fn show_end(&self, played: &Played) {
        let why = if played.judgement.reason.is_empty() { "" } else { ": " };
        let text = format!("{} {}{why}{}", played.judgement.verdict.as_str(), self.name, played.judgement.reason);
        self.bar.finish_and_clear();
        if !self.live && !self.quiet {
            complain(mask(&text, &self.masked));
        }
    }
}
