//! Progress of long work on a terminal: one line on standard error, gone when the work is done.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::config::variable;

/// Line of a number of bytes, with their total and the time that is left.
const BYTES: &str = "{prefix} [{bar:30}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
/// Line of bytes whose number is not known.
const SOME_BYTES: &str = "{spinner} {prefix} {bytes}, {bytes_per_sec}";
/// Line of a number of things.
const COUNT: &str = "{spinner} {prefix} {pos} {msg}";

/// Line of work that does not tell how far it is.
const WAITING: &str = "{spinner} {prefix} {elapsed_precise}";
/// Time between two drawings of such a line.
const TICK: Duration = Duration::from_millis(200);

/// A line that tells how far some work is. Nothing is shown where no person looks.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Returns the line of a download of so many bytes; `None`: the server does not tell.
    pub(crate) fn of_bytes(what: &str, total: Option<u64>) -> Progress {
        let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
        Progress::with(bar, what, if total.is_some() { BYTES } else { SOME_BYTES })
    }

    /// Returns the line of work whose things are counted.
    pub(crate) fn of_things(what: &str) -> Progress {
        Progress::with(ProgressBar::new_spinner(), what, COUNT)
    }

    fn with(bar: ProgressBar, what: &str, template: &str) -> Progress {
        if !std::io::stderr().is_terminal() || variable("CI").is_some() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(what.to_owned());
        Progress(bar)
    }

    /// Returns the line of work that does not tell how far it is.
    pub(crate) fn of_waiting(what: &str) -> Progress {
        let shown = Progress::with(ProgressBar::new_spinner(), what, WAITING);
        shown.0.enable_steady_tick(TICK);
        shown
    }

    /// Shows that so much more is done.
    pub(crate) fn add(&self, more: u64) {
        self.0.inc(more);
    }

    /// Shows how much is done, and what is being worked on.
    pub(crate) fn set(&self, done: u64, about: &str) {
        self.0.set_message(about.to_owned());
        self.0.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
